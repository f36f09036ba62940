// Hosts of a cluster or an infra-env: filter, details of hardware, and actions on many at once.

import { Alert, Button, Dropdown, DropdownItem, DropdownList, MenuToggle } from "@patternfly/react-core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { address } from "../api/client";
import { type Cluster, type Host, type Inventory, hostName, inner } from "../api/records";
import { type Action, ActionDialog, type Change } from "../components/action_dialog";
import { type Column, DataTable } from "../components/data_table";
import { bytes, words } from "../components/format";
import { HostStatusLabel, Percentage, hostState } from "../components/status";
import { Age } from "../components/time";
import { HostCause } from "../mistakes/host_cause";
import { MistakeList } from "../mistakes/mistake_list";
import { HostDetails } from "./host_details";
import { isEditable, mistakesIn } from "./installation";

interface Row {
  host: Host;
  inventory: Inventory;
  name: string;
}

const ROLES = ["auto-assign", "master", "worker"];

const addresses = ({ interfaces = [] }: Inventory) =>
  interfaces.flatMap((one) => [...(one.ipv4_addresses ?? []), ...(one.ipv6_addresses ?? [])]).map((cidr) => cidr.split("/")[0] ?? "");

/** What is searched beside the columns: what is written on the machine. */
const searched = ({ inventory, host }: Row) =>
  [host.id, inventory.system_vendor?.serial_number, inventory.bmc_address, ...(inventory.interfaces ?? []).map(({ mac_address: mac }) => mac)].join(" ");

interface Props {
  hosts: Host[];
  /** The cluster of all of them. */
  cluster?: Cluster;
  /** Clusters that hosts may be bound to. */
  clusters?: Cluster[];
  reload: () => void;
}

export function Hosts({ hosts, cluster, clusters = [], reload }: Props) {
  const { t } = useTranslation();
  const rows = hosts.map((host): Row => ({ host, inventory: inner<Inventory>(host.inventory, {}), name: hostName(host) }));
  const role = ({ host }: Row) => host.role ?? "";
  const editable = cluster && isEditable(cluster) ? cluster.id : undefined;
  const mistakes = cluster && isEditable(cluster) ? mistakesIn(cluster) : [];
  const columns: Column<Row>[] = [
    { id: "name", title: t("Host"), text: ({ name }) => name, cell: ({ name, inventory }) => <><span className="atoll-name">{name}</span><div className="atoll-muted">{inventory.system_vendor?.product_name}</div></> },
    { id: "role", title: t("Role"), text: role, cell: (row) => <>{t(words(role(row)))}{role(row) === "auto-assign" && row.host.suggested_role && <div className="atoll-muted">{t(words(row.host.suggested_role))}</div>}{row.host.bootstrap && <div className="atoll-muted">{t("bootstrap")}</div>}</> },
    { id: "status", title: t("Status"), text: ({ host }) => `${t(hostState(host.status))} ${host.progress?.current_stage ?? ""}`, cell: ({ host, name }) => (
      <>
        <HostStatusLabel status={host.status} />
        <Stage host={host} name={name} />
        <div className="atoll-muted">
          <HostCause host={{ name, status: host.status, validations: host.validations_info }} cluster={editable} otherwise={host.status_info} />
        </div>
      </>
    ) },
    { id: "cpu", title: t("CPUs"), order: ({ inventory }) => inventory.cpu?.count ?? 0, cell: ({ inventory }) => inventory.cpu?.count ?? "–" },
    { id: "memory", title: t("Memory"), order: ({ inventory }) => inventory.memory?.physical_bytes ?? 0, cell: ({ inventory }) => bytes(inventory.memory?.physical_bytes) },
    { id: "addresses", title: t("Addresses"), text: ({ inventory }) => addresses(inventory).join(" "), cell: ({ inventory }) => addresses(inventory).slice(0, 3).map((one) => <div key={one} className="atoll-mono atoll-address">{one}</div>) },
    { id: "seen", title: t("Last seen"), cell: ({ host }) => <Age at={host.checked_in_at} /> },
  ];
  return (
    <>
      {cluster && mistakes.length > 0 && <Mistakes mistakes={mistakes} cluster={cluster} />}
      <DataTable label={t("Hosts")} scope="hosts-" columns={columns} rows={rows} rowId={({ host }) => host.id} searched={searched}
        choice={{ id: "state", title: t("Status"), of: ({ host }) => host.status, word: hostState }}
        actions={(selected) => <HostActions hosts={selected.map(({ host }) => host)} canInstall={cluster?.status === "adding-hosts"} clusters={clusters} reload={reload} />}
        details={({ host, inventory }) => <HostDetails host={host} inventory={inventory} editable={editable} reload={reload} />}
        empty={{ title: t("No hosts yet"), body: t("Boot machines from the discovery image: they appear here by themselves.") }} />
    </>
  );
}

/** Those of the whole cluster, once: its hosts name their own. */
function Mistakes({ mistakes, cluster }: { mistakes: ReturnType<typeof mistakesIn>; cluster: Cluster }) {
  const { t } = useTranslation();
  const [variant, label, title] = mistakes.every(({ first }) => first.isWarning)
    ? (["info", t("Info"), t("Warnings")] as const)
    : (["warning", t("Warning"), t("To be corrected, the first one first")] as const);
  return <Alert isInline className="atoll-mistakes" variant={variant} variantLabel={label} title={title}><MistakeList mistakes={mistakes} cluster={cluster.id} /></Alert>;
}

/** The stage of an installation, with its progress. */
function Stage({ host: { progress, status }, name }: { host: Host; name: string }) {
  const { t } = useTranslation();
  if (!progress?.current_stage || status === "installed") return null;
  return (
    <>
      <div>{t(progress.current_stage)}</div>
      {progress.installation_percentage !== undefined && <Percentage value={progress.installation_percentage} label={name} />}
    </>
  );
}

interface ActionProps {
  hosts: Host[];
  /** Whether hosts are installed one by one: else they are with their cluster. */
  canInstall: boolean;
  clusters: Cluster[];
  reload: () => void;
}

function HostActions({ hosts, canInstall, clusters, reload }: ActionProps) {
  const { t } = useTranslation();
  const [isOpen, setOpen] = useState(false);
  const [action, setAction] = useState<Action>();
  const path = (host: Host) => `/infra-envs/${host.infra_env_id}/hosts/${host.id}`;
  const names = hosts.map(hostName).join(", ");
  const each = (change: (host: Host) => Change) => hosts.map(change);
  const post = (verb: string) => each((host) => ({ method: "POST", path: `${path(host)}/actions/${verb}` }));
  const canRetry = hosts.length > 0 && hosts.every(({ can_retry: isPossible }) => isPossible);
  const isReady = hosts.every(({ status }) => status === "known");
  const actions: (Action & { cause?: string })[] = [
    ...ROLES.map((role) => ({
      title: t("Role: {{role}}", { role: t(words(role)) }), body: names,
      changes: each((host) => ({ method: "PATCH", path: path(host), body: { host_role: role } })),
    })),
    ...clusters.map(({ id, name }) => ({
      title: t("Bind to {{cluster}}", { cluster: name ?? id }), body: names,
      changes: each((host) => ({ method: "POST", path: `${path(host)}/actions/bind`, body: { cluster_id: id } })),
    })),
    ...(canInstall ? [{ title: t("Install"), body: names, changes: post("install"), ...(!isReady && { cause: t("Only hosts that are ready can be installed.") }) }] : []),
    canRetry
      ? { title: t("Retry"), body: t("Retry the installation of {{hosts}}? Then boot from the discovery image again: the installation starts by itself once the host is ready. The other hosts continue.", { hosts: names }), changes: post("reset") }
      : { title: t("Reset"), body: names, changes: post("reset"), isDangerous: true },
    { title: t("Unbind"), body: names, changes: post("unbind"), isDangerous: true },
    { title: t("Delete"), body: names, changes: each((host) => ({ method: "DELETE", path: path(host) })), isDangerous: true },
  ];
  const first = hosts[0];
  return (
    <>
      <Dropdown isOpen={isOpen} onOpenChange={setOpen} onSelect={() => setOpen(false)}
        toggle={(toggle) => (
          <MenuToggle ref={toggle} isDisabled={hosts.length === 0} isExpanded={isOpen} onClick={() => setOpen(!isOpen)}>
            {t("Actions on {{count}} hosts", { count: hosts.length })}
          </MenuToggle>
        )}>
        <DropdownList>
          {actions.map((one) => <DropdownItem key={one.title} isDisabled={one.cause !== undefined} description={one.cause} onClick={() => setAction(one)}>{one.title}</DropdownItem>)}
        </DropdownList>
      </Dropdown>
      {first?.cluster_id && hosts.length === 1 && (
        <Button variant="link" component="a" download href={address(`/clusters/${first.cluster_id}/logs`, { logs_type: "host", host_id: first.id })}>{t("Logs")}</Button>
      )}
      {action && <ActionDialog action={action} close={() => setAction(undefined)} done={reload} />}
    </>
  );
}
