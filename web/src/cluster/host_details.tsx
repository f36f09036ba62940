// A host: its name, failing validations, disks and network interfaces.

import { Button, Content, InputGroup, InputGroupItem, TextInput } from "@patternfly/react-core";
import { Table, Tbody, Td, Th, Thead, Tr } from "@patternfly/react-table";
import { useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import type { ApiError } from "../api/client";
import { send } from "../api/client";
import { type Host, type Inventory, hostName } from "../api/records";
import { gigabytes } from "../components/format";
import { Failure } from "../components/loaded";
import { Reason } from "../components/reason";
import { StatusLabel } from "../components/status";
import { DraftNotice, useDraft } from "../drafts/draft";
import { FixLink } from "../mistakes/fix_link";
import { topicOf } from "../mistakes/topics";
import { failedValidations } from "../mistakes/validations";

interface Props {
  host: Host;
  inventory: Inventory;
  /** The id of the cluster, while the wizard can change it. */
  editable: string | undefined;
  reload: () => void;
}

export function HostDetails({ host, inventory, editable, reload }: Props) {
  const { t } = useTranslation();
  const saved = hostName(host);
  const start = useMemo(() => ({ name: saved }), [saved]);
  const draft = useDraft(`host ${host.id}`, start);
  const { name } = draft.values;
  const [error, setError] = useState<ApiError>();
  const path = `/infra-envs/${host.infra_env_id}/hosts/${host.id}`;
  const change = (members: object) =>
    send("PATCH", path, members).then(() => {
      setError(undefined);
      reload();
    }, setError);
  const failed = failedValidations(host.validations_info, "");
  return (
    <>
      {error && <Failure error={error} />}
      {draft.isRestored && <DraftNotice discard={draft.end} />}
      <InputGroup>
        <InputGroupItem isFill><TextInput aria-label={t("Name of the host")} value={name} onChange={(_, value) => draft.change({ name: value })} /></InputGroupItem>
        <InputGroupItem>
          <Button variant="control" isDisabled={name === saved} onClick={() => void change({ host_name: name })}>{t("Rename")}</Button>
        </InputGroupItem>
      </InputGroup>
      {failed.length > 0 && (
        <>
          <Content component="h3">{t("Failing validations")}</Content>
          <ul>
            {failed.map(({ id, isWarning, observed }) => (
              <li key={id}><StatusLabel status={isWarning ? "warning" : "failure"} /> <Reason text={observed} /> <FixLink topic={topicOf(id)} cluster={editable} /> <code>{id}</code></li>
            ))}
          </ul>
        </>
      )}
      <Table aria-label={t("Disks")} variant="compact">
        <Thead><Tr><Th>{t("Disk")}</Th><Th>{t("Type")}</Th><Th>{t("Size")}</Th><Th>{t("Model and serial number")}</Th><Th>{t("Installation")}</Th></Tr></Thead>
        <Tbody>
          {(inventory.disks ?? []).map((disk, index) => {
            const reasons = disk.installation_eligibility?.not_eligible_reasons ?? [];
            const isChosen = !!disk.id && disk.id === host.installation_disk_id;
            return (
              <Tr key={disk.id ?? disk.path ?? index}>
                <Td dataLabel={t("Disk")} className="atoll-mono">{disk.name ?? disk.path}</Td>
                <Td dataLabel={t("Type")}>{disk.drive_type}</Td>
                <Td dataLabel={t("Size")}>{gigabytes(disk.size_bytes)}</Td>
                <Td dataLabel={t("Model and serial number")}>{[disk.vendor, disk.model, disk.serial].filter(Boolean).join(" ")}</Td>
                <Td dataLabel={t("Installation")}>
                  {isChosen ? t("chosen") : reasons.length > 0 ? reasons.join("; ") : (
                    <Button variant="link" isInline onClick={() => void change({ disks_selected_config: [{ id: disk.id, role: "install" }] })}>{t("Choose")}</Button>
                  )}
                </Td>
              </Tr>
            );
          })}
        </Tbody>
      </Table>
      <Table aria-label={t("Network interfaces")} variant="compact">
        <Thead><Tr><Th>{t("Interface")}</Th><Th>MAC</Th><Th>{t("Speed")}</Th><Th>{t("Addresses")}</Th></Tr></Thead>
        <Tbody>
          {(inventory.interfaces ?? []).map((one) => (
            <Tr key={one.name}>
              <Td dataLabel={t("Interface")}>{one.name} {one.has_carrier === false && t("(no carrier)")}</Td>
              <Td dataLabel="MAC" className="atoll-mono">{one.mac_address}</Td>
              <Td dataLabel={t("Speed")}>{one.speed_mbps && one.speed_mbps > 0 ? `${one.speed_mbps} Mbit/s` : "–"}</Td>
              <Td dataLabel={t("Addresses")} className="atoll-mono">{[...(one.ipv4_addresses ?? []), ...(one.ipv6_addresses ?? [])].join(" ")}</Td>
            </Tr>
          ))}
        </Tbody>
      </Table>
    </>
  );
}
