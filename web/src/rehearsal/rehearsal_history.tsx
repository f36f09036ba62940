// The rehearsals of this server, the newest first.

import { Button, Flex, Label } from "@patternfly/react-core";
import type { TFunction } from "react-i18next";
import { useTranslation } from "react-i18next";
import { duration } from "../archives/job_details";
import { JOBS, type Job, isActive } from "../archives/records";
import type { Action } from "../components/action_dialog";
import { type Column, DataTable } from "../components/data_table";
import { instant, localTime, span } from "../components/format";
import { StatusLabel } from "../components/status";
import { Time } from "../components/time";
import { outcomeOf, verdictText } from "./report";

interface Props {
  jobs: Job[];
  show: (job: Job) => void;
  confirm: (action: Action) => void;
}

function removing(t: TFunction, { id }: Job): Action {
  return {
    title: t("Remove the rehearsal"),
    body: t("Its result is removed from the server. Download it before, if you need it."),
    changes: [{ method: "DELETE", path: `${JOBS}/${id}` }],
    isDangerous: true,
    hasNoDryRun: true,
  };
}

export function RehearsalHistory({ jobs, show, confirm }: Props) {
  const { t } = useTranslation();
  const result = ({ rehearsal, reason = "" }: Job) => (rehearsal ? verdictText(t, rehearsal) : reason);
  const columns: Column<Job>[] = [
    { id: "created", title: t("Created"), order: ({ created_at: at }) => instant(at) ?? 0, cell: ({ created_at: at, created_by: by }) => <><Time at={at} /><div className="atoll-muted">{by}</div></> },
    { id: "subject", title: t("Site"), text: ({ rehearsal }) => rehearsal?.subject ?? "", cell: ({ rehearsal }) => rehearsal?.subject || "–" },
    { id: "result", title: t("Result"), text: (job) => result(job) || job.state, cell: (job) => job.rehearsal
      ? <Label isCompact status={outcomeOf(job.rehearsal)} textMaxWidth="none">{result(job)}</Label>
      : <><StatusLabel status={job.state} /><div className="atoll-clamp" title={result(job)}>{result(job)}</div></> },
    { id: "duration", title: t("Duration"), order: (job) => duration(job) ?? 0, cell: (job) => { const ran = duration(job); return ran === undefined ? "–" : span(ran); } },
    { id: "actions", title: t("Actions"), cell: (job) => {
      const time = localTime(job.created_at);
      return (
        <Flex gap={{ default: "gapSm" }}>
          <Button variant="link" isInline aria-label={`${t("Show")} ${time}`} onClick={() => show(job)}>{t("Show")}</Button>
          {!isActive(job) && <Button variant="link" isInline isDanger aria-label={`${t("Remove")} ${time}`} onClick={() => confirm(removing(t, job))}>{t("Remove")}</Button>}
        </Flex>
      );
    } },
  ];
  return (
    <DataTable label={t("Earlier rehearsals")} scope="rehearsal-" columns={columns} rows={jobs} rowId={({ id }) => id} searched={({ created_by: by }) => by} startsDescending
      empty={{ title: t("No rehearsals yet"), body: t("Rehearse your site or a profile: the results are listed here.") }} />
  );
}
