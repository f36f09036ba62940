// The boots of an infra-env: the last one of each host, with its step, its reason and its warning.

import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import { type Column, DataTable } from "../components/data_table";
import { instant, words } from "../components/format";
import { Reason } from "../components/reason";
import { StatusLabel } from "../components/status";
import { Age } from "../components/time";
import type { BmcBootHost } from "./records";

/** Time of the last change of the state. */
export function changedAt({ state, requested_at: requested, started_at: started, ended_at: ended }: BmcBootHost): string {
  if (state === "done" || state === "failed") return ended;
  return state === "waiting" || instant(started) === undefined ? requested : started;
}

export function BootTable({ hosts }: { hosts: BmcBootHost[] }) {
  const { t } = useTranslation();
  const columns = useMemo<Column<BmcBootHost>[]>(() => {
    const step = ({ state, step: name }: BmcBootHost) => (name ? t(words(name)) : state === "installing" ? t("Waits for the end of the installation") : "");
    return [
      { id: "name", title: t("Host"), text: ({ name, address }) => `${name} ${address}`, cell: ({ name, address }) => <><span className="atoll-name">{name}</span><div className="atoll-muted atoll-mono">{address}</div></> },
      { id: "status", title: t("Status"), text: (host) => `${host.state} ${step(host)}`, cell: (host) => <><StatusLabel status={host.state} /><div>{step(host)}</div></> },
      { id: "since", title: t("Since"), order: (host) => instant(changedAt(host)) ?? 0, cell: (host) => <Age at={changedAt(host)} /> },
      { id: "result", title: t("Reason"), text: ({ error = "", warning = "" }) => `${error} ${warning}`, cell: ({ error, warning }) => (
        <>
          <Reason text={error} />
          {warning && <div><StatusLabel status="warning" /> {warning}</div>}
          {!error && !warning && "–"}
        </>
      ) },
    ];
  }, [t]);
  return (
    <DataTable label={t("Boots by BMCs")} scope="boot-" columns={columns} rows={hosts} rowId={({ name }) => name} searched={({ requested_by: by }) => by}
      choice={{ id: "state", title: t("Status"), of: ({ state }) => state }}
      empty={{ title: t("No boots yet"), body: t("Enter the BMCs of your hosts above, or paste them: their progress is listed here.") }} />
  );
}
