// The jobs of the site, the newest first, each with its results.

import { useTranslation } from "react-i18next";
import type { Action } from "../components/action_dialog";
import { type Column, DataTable } from "../components/data_table";
import { instant, span } from "../components/format";
import { StatusLabel } from "../components/status";
import { Time } from "../components/time";
import { JobDetails, duration } from "./job_details";
import { kindText, outcome } from "./outcome";
import { type Job, isActive } from "./records";

export function JobHistory({ jobs, confirm }: { jobs: Job[]; confirm: (action: Action) => void }) {
  const { t } = useTranslation();
  const result = (job: Job) => (isActive(job) ? "" : outcome(t, job));
  const columns: Column<Job>[] = [
    { id: "created", title: t("Created"), order: ({ created_at: at }) => instant(at) ?? 0, cell: ({ created_at: at }) => <Time at={at} /> },
    { id: "kind", title: t("Job"), text: ({ kind, archives }) => `${kindText(t, kind)} ${archives ?? ""}`, cell: ({ kind, archives }) => <>{kindText(t, kind)}<div className="atoll-muted">{archives}</div></> },
    { id: "status", title: t("Status"), text: ({ state }) => state, cell: ({ state }) => <StatusLabel status={state} /> },
    { id: "result", title: t("Result"), text: result, cell: (job) => <div className="atoll-clamp" title={result(job)}>{result(job) || "–"}</div> },
    { id: "duration", title: t("Duration"), order: (job) => duration(job) ?? 0, cell: (job) => { const ran = duration(job); return ran === undefined ? "–" : span(ran); } },
  ];
  return (
    <DataTable label={t("Jobs")} scope="job-" columns={columns} rows={jobs} rowId={({ id }) => id} searched={({ created_by: by }) => by} startsDescending
      choice={{ id: "state", title: t("Status"), of: ({ state }) => state }}
      details={(job) => <JobDetails job={job} jobs={jobs} confirm={confirm} />}
      empty={{ title: t("No jobs yet"), body: t("Verify or publish archives: the jobs and their results are listed here.") }} />
  );
}
