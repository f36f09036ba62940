// The job that runs, on other pages: nothing while none does.

import { Card, CardBody, CardTitle } from "@patternfly/react-core";
import { useTranslation } from "react-i18next";
import { Link } from "react-router-dom-v5-compat";
import { StatusLabel } from "../components/status";
import { stateText } from "../rehearsal/states";
import { JobProgress } from "./job_progress";
import { useJobs } from "./jobs";
import { isActive, isRehearsal } from "./records";

export function RunningJob() {
  const { t } = useTranslation();
  const active = useJobs().data?.filter(isActive) ?? [];
  const job = active.find(({ state }) => state === "running") ?? active.at(-1);
  if (!job) return null;
  const isPlayed = isRehearsal(job);
  return (
    <Card isFullHeight>
      <CardTitle component="h2">{isPlayed ? <Link to="/rehearsal">{t("Rehearsal")}</Link> : <Link to="/carry-in">{t("Carry in")}</Link>}</CardTitle>
      <CardBody>
        <div>{job.archives} <StatusLabel status={job.state} /></div>
        {job.progress && (isPlayed ? <div>{stateText(t, job.progress.phase)}</div> : <JobProgress progress={job.progress} />)}
        {active.length > 1 && <div className="atoll-muted">{t("Jobs that wait: {{count}}", { count: active.length - 1 })}</div>}
      </CardBody>
    </Card>
  );
}
