// One rehearsal, from waiting to its result.

import { Alert, Button, Card, CardBody, CardTitle, Flex } from "@patternfly/react-core";
import { useEffect, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { type ApiError, asApiError, send } from "../api/client";
import { useResource } from "../api/resource";
import { sentenceOf } from "../api/sentence";
import { duration } from "../archives/job_details";
import { JOBS, type Job, isActive } from "../archives/records";
import { span } from "../components/format";
import { Failure, Loaded } from "../components/loaded";
import { ReasonDetails } from "../components/reason";
import { StatusLabel } from "../components/status";
import { Age, Time } from "../components/time";
import { RehearsalProgress } from "./rehearsal_progress";
import { RehearsalResult } from "./rehearsal_result";

/** Units: milliseconds. */
const REFRESH_ACTIVE = 1_000;
const NEVER = 0;

interface Props {
  id: string;
  /** Whether the person has just asked for it: the focus moves to it. */
  isAsked: boolean;
  onEnd: () => void;
}

export function ShownRehearsal({ id, isAsked, onEnd }: Props) {
  const { t } = useTranslation();
  const title = useRef<HTMLSpanElement>(null);
  const job = useResource<Job>(`${JOBS}/${encodeURIComponent(id)}`, (latest) => (isActive(latest) ? REFRESH_ACTIVE : NEVER));
  const state = job.data?.state;
  // Else "Succeeded" would be beside the mistakes.
  const hasResult = job.data?.rehearsal !== undefined;
  const wasActive = useRef(false);
  useEffect(() => {
    if (isAsked) title.current?.focus();
  }, [id, isAsked]);
  useEffect(() => {
    if (!job.data) return;
    if (wasActive.current && !isActive(job.data)) onEnd();
    wasActive.current = isActive(job.data);
  }, [state]);
  return (
    <Card>
      <CardTitle component="h2"><span ref={title} tabIndex={-1}>{t("Rehearsal")}</span> {!hasResult && <StatusLabel status={state} />}</CardTitle>
      <CardBody>
        <Loaded resource={job}>
          {(data) => (
            <Flex direction={{ default: "column" }} alignItems={{ default: "alignItemsStretch" }}>
              <Details job={data} />
              {isActive(data) && <Cancel id={id} reload={() => job.reload()} />}
            </Flex>
          )}
        </Loaded>
      </CardBody>
    </Card>
  );
}

function Details({ job }: { job: Job }) {
  const { t } = useTranslation();
  const { state, progress, reason, rehearsal } = job;
  const ran = duration(job);
  return (
    <>
      <p className="atoll-muted">
        <Time at={job.created_at} /> · {job.created_by}
        {ran === undefined ? state === "running" && <> · {t("Duration")}: <Age at={job.started_at} /></> : <> · {t("Duration")}: {span(ran)}</>}
      </p>
      {state === "queued" && <p role="status">{t("It waits for the end of the rehearsals before it: one plays at a time.")}</p>}
      {state === "running" && <RehearsalProgress progress={progress} />}
      {state === "cancelled" && <Alert isInline variant="info" variantLabel={t("Info")} title={t("The rehearsal was cancelled: it has no result.")} />}
      {state === "failed" && (
        <Alert isInline variant="danger" variantLabel={t("Error")} title={reason ? sentenceOf(reason) : t("The rehearsal failed.")}>{t("This is no mistake of the site. Rehearse again; the log of the API server has the reason.")}{reason && <ReasonDetails text={reason} />}</Alert>
      )}
      {rehearsal && <RehearsalResult result={rehearsal} />}
    </>
  );
}

/** Without a confirmation: nothing is lost but a minute. */
function Cancel({ id, reload }: { id: string; reload: () => Promise<unknown> }) {
  const { t } = useTranslation();
  const [isBusy, setBusy] = useState(false);
  const [failure, setFailure] = useState<ApiError>();
  const cancel = async () => {
    setBusy(true);
    setFailure(undefined);
    try {
      await send("POST", `${JOBS}/${encodeURIComponent(id)}/actions/cancel`);
      await reload();
    } catch (error) {
      setFailure(asApiError(error));
      setBusy(false);
    }
  };
  return (
    <>
      {failure && <Failure error={failure} />}
      <div><Button variant="secondary" isLoading={isBusy} isDisabled={isBusy} onClick={() => void cancel()}>{t("Cancel the rehearsal")}</Button></div>
    </>
  );
}
