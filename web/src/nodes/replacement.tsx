// The replacement that is under way, or the last one: its steps, the wait, the window of two voters, the reason of a stop.

import { Alert, Card, CardBody, CardTitle, ExpandableSection } from "@patternfly/react-core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Facts } from "../components/facts";
import { instant, span } from "../components/format";
import { Reason } from "../components/reason";
import { Age, Time } from "../components/time";
import { StatusLabel } from "../components/status";
import type { NodeReplacement, RepairRun, ReplacementReport } from "./records";
import { RunCommand } from "./run_command";
import { KINDS } from "./states";
import { StepTable } from "./step_table";

interface Props {
  cluster: string;
  replacement: NodeReplacement;
}

export function Replacement({ cluster, replacement: { run, last } }: Props) {
  // A run with an ended replacement is another repair, or has not published its progress yet.
  const isOfRun = last?.state === "unfinished";
  return (
    <>
      {run && !isOfRun && <Repair run={run} />}
      {last && <Report cluster={cluster} last={last} run={isOfRun ? run : null} />}
    </>
  );
}

function Repair({ run }: { run: RepairRun }) {
  const { t } = useTranslation();
  return (
    <Card>
      <CardTitle component="h2">{t("A repair is under way")}</CardTitle>
      <CardBody><Run run={run} /></CardBody>
    </Card>
  );
}

function Report({ cluster, last, run }: { cluster: string; last: ReplacementReport; run: RepairRun | null }) {
  const { t } = useTranslation();
  // A wait is that of a run, and a stop is its end.
  const report: ReplacementReport = { ...last, waiting: run ? last.waiting : null, stopped: run ? null : last.stopped };
  const isUnfinished = report.state === "unfinished";
  return (
    <Card>
      <CardTitle component="h2">
        {t("Replacement of {{node}}", { node: report.old.name })} <StatusLabel status={isUnfinished ? (run ? "running" : "stopped") : report.state} />
      </CardTitle>
      <CardBody>
        {run && <Run run={run} />}
        {isUnfinished && <Now report={report} />}
        {isUnfinished && !run && <Continue cluster={cluster} report={report} />}
        {report.window && <TwoVoterWindow window={report.window} isUnfinished={isUnfinished} />}
        <Outline report={report} />
        {isUnfinished ? <StepTable steps={report.steps} report={report} /> : <Steps report={report} />}
      </CardBody>
    </Card>
  );
}

/** The process that holds the lease of repairs. Its times are those of its machine. */
function Run({ run: { holder, since, seen_at: seen } }: { run: RepairRun }) {
  const { t } = useTranslation();
  return (
    <Facts of={[
      [t("Run by"), holder],
      [t("Since"), <Time key="since" at={since} />],
      [t("Last sign of life"), <Age key="seen" at={seen} />],
    ]} />
  );
}

function Outline({ report: { kind, old, new: joining, updated_at: updated } }: { report: ReplacementReport }) {
  const { t } = useTranslation();
  const { title } = KINDS[kind];
  return (
    <Facts of={[
      [t("Node that leaves"), `${old.name} (${old.address})`],
      [t("New node"), `${joining.name} (${joining.address})`],
      [t("Order"), t(title)],
      [t("Updated"), <Time key="updated" at={updated} />],
    ]} />
  );
}

/** The step of this moment, also for screen readers when it changes. */
function Now({ report: { steps, waiting } }: { report: ReplacementReport }) {
  const { t } = useTranslation();
  const { title = "" } = waiting ?? steps.find(({ state }) => state === "started") ?? {};
  return (
    <>
      <p role="status" className="pf-v6-u-screen-reader">{title && t(title)}</p>
      {waiting && (
        <Alert isInline className="atoll-row" variant="info" variantLabel={t("Info")} title={t(title)}>
          <Reason text={waiting.reason} /> ({t("for")} <Age at={waiting.since} />)
        </Alert>
      )}
    </>
  );
}

/** Without a run, an unfinished replacement is continued by the same command. */
function Continue({ cluster, report: { old, stopped } }: { cluster: string; report: ReplacementReport }) {
  const { t } = useTranslation();
  return (
    <>
      <Alert isInline className="atoll-row" variant="warning" variantLabel={t("Warning")} title={t("Run the command again to continue")}>
        {stopped && <Stop stopped={stopped} />}
      </Alert>
      <RunCommand cluster={cluster} params={{ node: old.name }} />
    </>
  );
}

function Stop({ stopped: { title, reason } }: { stopped: NonNullable<ReplacementReport["stopped"]> }) {
  const { t } = useTranslation();
  return <>{t(title)}: <Reason text={reason} /></>;
}

function TwoVoterWindow({ window: { since, until }, isUnfinished }: { window: NonNullable<ReplacementReport["window"]>; isUnfinished: boolean }) {
  const { t } = useTranslation();
  const [from, to] = [instant(since), instant(until ?? undefined)];
  if (to === undefined && isUnfinished) {
    return (
      <Alert isInline className="atoll-row" variant="warning" variantLabel={t("Warning")} title={t("No voter can be spared: do not reboot a control node")}>
        {t("etcd has two voters")}: <Age at={since} />
      </Alert>
    );
  }
  return from === undefined || to === undefined ? null : <p>{t("etcd had two voters for {{time}}.", { time: span(to - from) })}</p>;
}

/** Steps of a replacement that has ended. */
function Steps({ report }: { report: ReplacementReport }) {
  const { t } = useTranslation();
  const [isOpen, setOpen] = useState(false);
  return (
    <ExpandableSection toggleText={t("Steps")} isExpanded={isOpen} onToggle={(_, isExpanded) => setOpen(isExpanded)}>
      {isOpen && <StepTable steps={report.steps} report={report} />}
    </ExpandableSection>
  );
}
