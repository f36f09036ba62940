// Rehearsal: the installation of a site is played with simulated hosts, and its mistakes are named before a real host boots.

import { Card, CardBody, CardTitle, Content, EmptyState, EmptyStateBody } from "@patternfly/react-core";
import { useEffect, useState } from "react";
import { useTranslation } from "react-i18next";
import { useSearchParams } from "react-router-dom-v5-compat";
import { ApiError, asApiError, send } from "../api/client";
import { useResource } from "../api/resource";
import { JOBS, type Job, LATEST_REHEARSALS, isActive, isRehearsal } from "../archives/records";
import { type Action, ActionDialog } from "../components/action_dialog";
import { Copyable } from "../components/copyable";
import { Loaded } from "../components/loaded";
import { PageFrame } from "../components/page";
import { EMPTY, paramsOf } from "../rehearsal/draft";
import { OPTIONS, type RehearsalOptions } from "../rehearsal/records";
import { RehearsalForm } from "../rehearsal/rehearsal_form";
import { RehearsalHistory } from "../rehearsal/rehearsal_history";
import { ShownRehearsal } from "../rehearsal/shown_rehearsal";

/** Profiles and faults change with the version of the server. Units: milliseconds. */
const REFRESH = 10 * 60_000;
/** Parameter of the address: the rehearsal that is shown, also after a reload. */
const SHOWN = "job";

/** A refused site is corrected in the form, not sent again. */
function refusal(error: unknown): ApiError {
  const refused = asApiError(error);
  return refused.status === 400 ? new ApiError(refused.message, "Correct it, and rehearse again.", 400) : refused;
}

export default function Rehearsal() {
  const { t } = useTranslation();
  const options = useResource<RehearsalOptions>(OPTIONS, REFRESH);
  const jobs = useResource<Job[]>(LATEST_REHEARSALS);
  const [parameters, setParameters] = useSearchParams();
  const [draft, setDraft] = useState(EMPTY);
  const [isStarting, setStarting] = useState(false);
  const [failure, setFailure] = useState<ApiError>();
  const [action, setAction] = useState<Action>();
  const [isAsked, setAsked] = useState(false);
  const rehearsals = jobs.data?.filter(isRehearsal);
  const shown = parameters.get(SHOWN) ?? undefined;

  const show = (id: string | undefined, isReplaced = false) =>
    setParameters((before) => {
      // Filter and page of the mistakes are those of another result.
      const kept = [...before].filter(([name]) => name !== SHOWN && !name.startsWith("mistake-"));
      return new URLSearchParams(id === undefined ? kept : [...kept, [SHOWN, id]]);
    }, { replace: isReplaced });

  // A running one is shown, whose result would leave the page with its end.
  const active = rehearsals?.filter(isActive) ?? [];
  const running = (active.find(({ state }) => state === "running") ?? active.at(-1))?.id;
  useEffect(() => {
    if (shown === undefined && running !== undefined) show(running, true);
  }, [shown, running]);

  const start = async () => {
    setStarting(true);
    setFailure(undefined);
    try {
      const { id } = await send<Job>("POST", JOBS, { kind: "rehearsal", rehearsal: paramsOf(draft) });
      setAsked(true);
      show(id);
      await jobs.reload();
    } catch (error) {
      setFailure(refusal(error));
    }
    setStarting(false);
  };
  const removed = () => {
    const [change] = action?.changes ?? [];
    if (shown !== undefined && change?.path.endsWith(`/${shown}`)) show(undefined, true);
    void jobs.reload();
  };
  if (options.data === undefined && options.error?.status === 404) return <PageFrame title={t("Rehearsal")}><NoRehearsals /></PageFrame>;
  return (
    <PageFrame title={t("Rehearsal")}>
      <Content component="p">{t("The installation is played with simulated hosts before the first real one is switched on. Each mistake is named with its host and its remedy.")}</Content>
      {shown !== undefined && <ShownRehearsal key={shown} id={shown} isAsked={isAsked} onEnd={() => void jobs.reload()} />}
      <Card>
        <CardTitle component="h2">{t("New rehearsal")}</CardTitle>
        <CardBody>
          <Loaded resource={options}>
            {(data) => <RehearsalForm options={data} draft={draft} change={setDraft} start={() => void start()} isStarting={isStarting} failure={failure} />}
          </Loaded>
        </CardBody>
      </Card>
      <Card>
        <CardTitle component="h2">{t("Earlier rehearsals")}</CardTitle>
        <CardBody>
          <Loaded resource={{ ...jobs, data: rehearsals }}>
            {(list) => <RehearsalHistory jobs={list} confirm={setAction} show={({ id }) => { setAsked(true); show(id); }} />}
          </Loaded>
        </CardBody>
      </Card>
      {action && <ActionDialog action={action} close={() => setAction(undefined)} done={removed} />}
    </PageFrame>
  );
}

function NoRehearsals() {
  const { t } = useTranslation();
  return (
    <EmptyState titleText={t("This version of the server has no rehearsals")} headingLevel="h2">
      <EmptyStateBody>
        {t("Upgrade it, or rehearse on the command line:")} <Copyable label={t("Command")}>atoll rehearse site.yaml</Copyable>
      </EmptyStateBody>
    </EmptyState>
  );
}
