// A job with everything that is known of it: progress, reason, results, files.

import { Alert, Button, Flex, List, ListItem } from "@patternfly/react-core";
import { useTranslation } from "react-i18next";
import type { Action } from "../components/action_dialog";
import { Facts } from "../components/facts";
import { bytes, instant, span } from "../components/format";
import { Time } from "../components/time";
import { cancelling, pruning, removing } from "./job_actions";
import { JobFiles } from "./job_files";
import { JobProgress } from "./job_progress";
import { outcome } from "./outcome";
import { type ArchivePublication, type ArchiveVerification, type Job, isActive, isLatest } from "./records";

/** How long a job ran; undefined while it is not known. Units: milliseconds. */
export function duration({ started_at: start, ended_at: end }: Job): number | undefined {
  const [from, to] = [instant(start), instant(end)];
  return from === undefined || to === undefined ? undefined : to - from;
}

interface Props {
  job: Job;
  /** All jobs, the newest first. */
  jobs: Job[];
  /** Opens the dialog of an action. */
  confirm: (action: Action) => void;
}

export function JobDetails({ job, jobs, confirm }: Props) {
  const { t } = useTranslation();
  const { state, progress, verification, publication } = job;
  const ran = duration(job);
  const prunes = publication?.unconfirmed_prunes ?? 0;
  const result = outcome(t, job);
  return (
    <Flex direction={{ default: "column" }} alignItems={{ default: "alignItemsStretch" }}>
      <Facts of={[
        [t("Archives"), <code key="archives">{job.archives}</code>],
        [t("Started by"), job.created_by || "–"],
        [t("Started"), <Time key="started" at={job.started_at} />],
        [t("Duration"), ran === undefined ? "–" : span(ran)],
      ]} />
      {progress && isActive(job) && <JobProgress progress={progress} />}
      {result && !isActive(job) && (
        <Alert isInline variant={state === "succeeded" ? "success" : "danger"} variantLabel={state === "succeeded" ? t("Success") : t("Error")} title={result} />
      )}
      {prunes > 0 && isLatest(job, jobs) && (
        <div><Button variant="danger" onClick={() => confirm(pruning(t, job))}>{t("Publish and remove {{count}} images", { count: prunes })}</Button></div>
      )}
      {verification && <Verification verification={verification} />}
      {publication && prunes === 0 && <Publication publication={publication} />}
      {publication && publication.files.length > 0 && <JobFiles job={job.id} files={publication.files} />}
      <div>
        {isActive(job)
          ? <Button variant="secondary" onClick={() => confirm(cancelling(t, job))}>{t("Cancel the job")}</Button>
          : <Button variant="secondary" isDanger onClick={() => confirm(removing(t, job))}>{t("Remove the job")}</Button>}
      </div>
    </Flex>
  );
}

function Verification({ verification }: { verification: ArchiveVerification }) {
  const { t } = useTranslation();
  const { files, members, hashed_bytes: hashed, is_signed: isSigned, faults, fault_count: count } = verification;
  return (
    <>
      <Facts of={[
        [t("Files"), files],
        [t("Members"), members],
        [t("Compared"), bytes(hashed)],
        [t("Signature"), isSigned ? t("There is one: atoll mirror verify --key FILE checks whose it is.") : t("Not signed")],
      ]} />
      {faults.length > 0 && (
        <section aria-label={t("Faults")} className="atoll-report" tabIndex={0}>
          <List>{faults.map((fault, index) => <ListItem key={index}>{fault}</ListItem>)}</List>
          {count > faults.length && <p>{t("These are the first {{shown}} of {{count}} faults.", { shown: faults.length, count })}</p>}
        </section>
      )}
    </>
  );
}

function Publication({ publication }: { publication: ArchivePublication }) {
  const { t } = useTranslation();
  const { is_unchanged: isUnchanged, images, catalogs, sent_blobs: blobs, sent_bytes: sent, pruned } = publication;
  return isUnchanged ? null : (
    <Facts of={[
      [t("Images"), images],
      [t("Catalogs"), catalogs],
      [t("Blobs sent"), blobs === 0 ? t("none: the registry had all") : `${blobs}, ${bytes(sent)}`],
      [t("Images removed"), pruned],
    ]} />
  );
}
