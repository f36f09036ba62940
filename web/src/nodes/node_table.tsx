// Nodes, the control plane first, each with its Machine and its host.

import { Button, Label } from "@patternfly/react-core";
import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import { type Column, DataTable } from "../components/data_table";
import { byName } from "../components/format";
import { Reason } from "../components/reason";
import { StatusLabel } from "../components/status";
import { type ClusterNode, rowName } from "./records";

/** The control plane first, then by name. */
export function inOrder(nodes: ClusterNode[]): ClusterNode[] {
  return [...nodes].sort((one, other) => Number(other.is_control_plane) - Number(one.is_control_plane) || byName(rowName(one), rowName(other)));
}

const statusOf = ({ node, is_ready: isReady }: ClusterNode) => (node === null ? "missing" : isReady ? "ready" : "not-ready");

export function NodeTable({ nodes, plan }: { nodes: ClusterNode[]; plan: (node: ClusterNode) => void }) {
  const { t } = useTranslation();
  const rows = useMemo(() => inOrder(nodes), [nodes]);
  const columns = useMemo<Column<ClusterNode>[]>(() => {
    const places = new Map(rows.map((row, place) => [row, place]));
    const role = ({ is_control_plane: isControlPlane }: ClusterNode) => (isControlPlane ? t("Control plane") : t("Worker"));
    const power = ({ is_powered_on: isOn }: ClusterNode) => (isOn === null ? "–" : isOn ? t("Switched on") : t("Switched off"));
    return [
      { id: "node", title: t("Node"), order: (row) => places.get(row) ?? 0, text: (row) => `${rowName(row)} ${row.address} ${role(row)}`, cell: (row) => (
        <><span className="atoll-name">{row.node ?? t("without a node")}</span><div className="atoll-muted">{role(row)}</div><div className="atoll-mono atoll-address">{row.address}</div></>
      ) },
      { id: "status", title: t("Status"), text: (row) => `${statusOf(row)} ${row.reason}`, cell: (row) => (
        <><StatusLabel status={statusOf(row)} /> {row.is_cordoned && <Label isCompact>{t("Cordoned")}</Label>}<div><Reason text={row.reason} /></div></>
      ) },
      { id: "machine", title: t("Machine"), text: ({ machine, machine_phase: phase }) => `${machine ?? ""} ${phase}`, cell: ({ machine, machine_phase: phase }) => <>{machine ?? "–"}<div className="atoll-muted">{phase}</div></> },
      { id: "host", title: t("Host"), text: ({ host, host_state: state }) => `${host ?? ""} ${state}`, cell: ({ host, host_state: state }) => <>{host ?? "–"}<div className="atoll-muted">{state}</div></> },
      { id: "power", title: t("Power"), text: power, cell: power },
      { id: "error", title: t("Error"), text: ({ host_error: error }) => error, cell: ({ host_error: error }) => (error ? <Reason text={error} /> : "–") },
      { id: "actions", title: t("Actions"), cell: (row) => row.is_control_plane && row.node !== null && (
        <Button variant="secondary" size="sm" aria-label={t("Plan replacement: {{node}}", { node: row.node })} onClick={() => plan(row)}>{t("Plan replacement")}</Button>
      ) },
    ];
  }, [t, rows, plan]);
  return (
    <DataTable label={t("Nodes")} scope="node-" columns={columns} rows={rows} rowId={({ node, machine, host }) => [node, machine, host].join(" ")}
      choice={{ id: "state", title: t("Status"), of: statusOf }}
      empty={{ title: t("No nodes yet"), body: t("The cluster's API lists no node: look at the installation of its hosts.") }} />
  );
}
