// Connectivity of the hosts: who reaches whom, as a table from row to column.

import { Content } from "@patternfly/react-core";
import { Table, Tbody, Td, Th, Thead, Tr } from "@patternfly/react-table";
import { useTranslation } from "react-i18next";
import { type Connectivity, type Host, hostName, inner } from "../api/records";
import { byName } from "../components/format";
import { StatusLabel } from "../components/status";

/** Larger tables cannot be read: the first hosts by name. */
const SHOWN = 30;

/** The state of the way from one host to another: layer 3, else layer 2. */
export function connection(from: Host, to: Host): { status: string; detail: string } | undefined {
  const remote = inner<Connectivity>(from.connectivity, {}).remote_hosts?.find(({ host_id: id }) => id === to.id);
  const tries = remote?.l3_connectivity?.length ? remote.l3_connectivity : remote?.l2_connectivity;
  if (!tries?.length) return undefined;
  const good = tries.filter(({ successful }) => successful).length;
  const status = good === tries.length ? "success" : good === 0 ? "failure" : "warning";
  const slowest = Math.max(0, ...(remote?.l3_connectivity ?? []).map(({ average_rtt_ms: ms }) => ms ?? 0));
  const loss = Math.max(0, ...(remote?.l3_connectivity ?? []).map(({ packet_loss_percentage: loss }) => loss ?? 0));
  return { status, detail: [`${good}/${tries.length}`, slowest > 0 && `${slowest.toFixed(1)} ms`, loss > 0 && `-${loss} %`].filter(Boolean).join(", ") };
}

export function Connections({ hosts }: { hosts: Host[] }) {
  const { t } = useTranslation();
  const sorted = [...hosts].sort((one, other) => byName(hostName(one), hostName(other))).slice(0, SHOWN);
  if (sorted.length < 2) return <Content component="p">{t("Connectivity is measured between two hosts and more.")}</Content>;
  return (
    <>
      <Content component="p">{t("Each row is a host that reaches the hosts of the columns.")} {hosts.length > SHOWN && t("The first {{count}} hosts are shown.", { count: SHOWN })}</Content>
      <div role="region" aria-label={t("Connectivity")} tabIndex={0} className="atoll-scroll atoll-matrix">
        <Table aria-label={t("Connectivity")} variant="compact" gridBreakPoint="">
          <Thead><Tr><Th screenReaderText={t("Host")} />{sorted.map((to) => <Th key={to.id} modifier="nowrap">{hostName(to)}</Th>)}</Tr></Thead>
          <Tbody>
            {sorted.map((from) => (
              <Tr key={from.id}>
                <Th scope="row" modifier="nowrap">{hostName(from)}</Th>
                {sorted.map((to) => {
                  const found = from.id === to.id ? undefined : connection(from, to);
                  return <Td key={to.id}>{found ? <span title={found.detail}><StatusLabel status={found.status} /></span> : "–"}</Td>;
                })}
              </Tr>
            ))}
          </Tbody>
        </Table>
      </div>
    </>
  );
}
