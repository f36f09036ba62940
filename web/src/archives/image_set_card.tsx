// An image set: its archive sets by sequence, with gaps, and what can be done with each.

import { Alert, Button, Card, CardBody, CardTitle, Flex, Label, Pagination } from "@patternfly/react-core";
import { Table, Tbody, Td, Th, Thead, Tr } from "@patternfly/react-table";
import { useId, useState } from "react";
import { useTranslation } from "react-i18next";
import type { Action } from "../components/action_dialog";
import { bytes } from "../components/format";
import { usePaginationTitles } from "../components/pagination_titles";
import { Reason } from "../components/reason";
import { StatusLabel } from "../components/status";
import { Time } from "../components/time";
import { type Gap, type ImageSet, isGap, isPublished } from "./image_sets";
import { cancelling, pruning } from "./job_actions";
import { JobProgress } from "./job_progress";
import { outcome } from "./outcome";
import { type ArchiveSet, type Job, type JobKind, isActive } from "./records";

const PAGE = 20;
const SHOWN_LINES = 3;

const hasFiles = ({ publication }: Job) => (publication?.files.length ?? 0) > 0;

/** Actions of the page, for its image sets. */
export interface SetActions {
  hasRegistry: boolean;
  /** Name of the set whose job is being created. */
  starting: string | undefined;
  start: (kind: JobKind, set: ArchiveSet) => void;
  confirm: (action: Action) => void;
  show: (job: Job) => void;
}

interface Props {
  imageSet: ImageSet;
  jobs: Job[];
  actions: SetActions;
}

export function ImageSetCard({ imageSet: { uid, isUnknown, isSingleUse, published, rows }, jobs, actions }: Props) {
  const { t } = useTranslation();
  const titles = usePaginationTitles();
  const [wantedPage, setPage] = useState(1);
  const page = Math.min(wantedPage, Math.max(1, Math.ceil(rows.length / PAGE)));
  const heading = useId();
  return (
    <Card>
      <CardTitle component="h2" id={heading}>
        {isUnknown ? t("Unreadable archives") : <>{t("Image set")} <code>{uid}</code></>}{" "}
        {isSingleUse && !isUnknown && <Label isCompact>{t("Without history")}</Label>}
        {published > 0 && <Label isCompact color="green">{t("In the registry up to sequence {{published}}", { published })}</Label>}
      </CardTitle>
      <CardBody>
        <div className="atoll-scroll">
          <Table aria-labelledby={heading} variant="compact">
            <Thead>
              <Tr>
                <Th>{t("Sequence")}</Th><Th>{t("Content")}</Th><Th>{t("Status")}</Th><Th screenReaderText={t("Actions")} />
              </Tr>
            </Thead>
            <Tbody>
              {rows.slice((page - 1) * PAGE, page * PAGE).map((row) => isGap(row)
                ? <GapRow key={`gap ${row.first}`} gap={row} />
                : <SetRow key={row.name} set={row} jobs={jobs.filter(({ archives }) => archives === row.name)} actions={actions} />)}
            </Tbody>
          </Table>
        </div>
        {rows.length > PAGE && (
          <Pagination itemCount={rows.length} page={page} perPage={PAGE} titles={titles} isCompact perPageOptions={[{ title: String(PAGE), value: PAGE }]}
            onSetPage={(_, value) => setPage(value)} />
        )}
      </CardBody>
    </Card>
  );
}

function GapRow({ gap: { first, last } }: { gap: Gap }) {
  const { t } = useTranslation();
  const title = first === last ? t("Sequence {{first}} is missing", { first }) : t("Sequences {{first}} to {{last}} are missing", { first, last });
  return (
    <Tr>
      <Td colSpan={4}>
        <Alert isInline isPlain variant="warning" variantLabel={t("Warning")} title={title}>
          {t("Copy its files, from mirror_seq{{first}}_000000.tar on, into the folder: they are where atoll mirror packed them.", { first })}
        </Alert>
      </Td>
    </Tr>
  );
}

function SetRow({ set, jobs, actions }: { set: ArchiveSet; jobs: Job[]; actions: SetActions }) {
  const { t } = useTranslation();
  const reason = useId();
  const { name, sequence, created_at: packed, releases, catalogs, images, files, bytes: size, step } = set;
  const isOver = isPublished(set);
  const active = jobs.find(isActive);
  const isBusy = active !== undefined || actions.starting === name;
  const isPublishable = actions.hasRegistry && (step === "next" || step === "unknown");
  // A published set gets its manifests again, without a change of the registry.
  const isRepeatable = actions.hasRegistry && step === "published" && !jobs.some(hasFiles);
  return (
    <Tr>
      <Td dataLabel={t("Sequence")}>
        <strong>{sequence}</strong>
        <div className="atoll-muted"><Time at={packed} /></div>
      </Td>
      <Td dataLabel={t("Content")}>
        <Lines shown={SHOWN_LINES} lines={[...releases, ...catalogs]} />
        {images > 0 && <div>{t("Images: {{count}}", { count: images })}</div>}
        {!isOver && size > 0 && <div>{t("At most {{size}} to send", { size: bytes(size) })}</div>}
        <div className="atoll-muted">
          {t("Files: {{count}}", { count: files.length })} <Lines shown={0} lines={files.map((file) => `${file.name} (${bytes(file.size)})`)} />
        </div>
      </Td>
      <Td dataLabel={t("Status")}>
        <StatusLabel status={isOver ? "published" : step} />
        <div id={reason}>
          {isOver ? t("The registry has this sequence already.") : <Reason text={set.reason} />}
        </div>
        <LastJob jobs={jobs} isOver={isOver} actions={actions} />
      </Td>
      <Td dataLabel={t("Actions")}>
        {active
          ? <Button variant="secondary" aria-label={t("Cancel the job of sequence {{sequence}}", { sequence })} onClick={() => actions.confirm(cancelling(t, active))}>{t("Cancel")}</Button>
          : (
            <Flex gap={{ default: "gapSm" }}>
              <Button variant="secondary" isDisabled={isBusy} aria-label={t("Verify sequence {{sequence}}", { sequence })} onClick={() => actions.start("verify-archives", set)}>{t("Verify")}</Button>
              {isRepeatable
                ? <Button variant="secondary" isDisabled={isBusy} aria-label={t("Manifests of sequence {{sequence}}", { sequence })} onClick={() => actions.start("publish-archives", set)}>{t("Manifests")}</Button>
                : !isOver && (
                  <Button isDisabled={isBusy} isAriaDisabled={!isPublishable} aria-describedby={actions.hasRegistry ? reason : NO_REGISTRY} aria-label={t("Publish sequence {{sequence}}", { sequence })}
                    onClick={() => isPublishable && actions.start("publish-archives", set)}>{t("Publish")}</Button>
                )}
            </Flex>
          )}
      </Td>
    </Tr>
  );
}

/** Id of the alert that says that there is no registry. */
export const NO_REGISTRY = "no-registry";

/** The job that is active, or else the end of the last one, and the manifests of the last publication. */
function LastJob({ jobs, isOver, actions }: { jobs: Job[]; isOver: boolean; actions: SetActions }) {
  const { t } = useTranslation();
  const active = jobs.find(isActive);
  if (active) {
    const { state, progress } = active;
    return progress && state === "running" ? <JobProgress progress={progress} /> : <StatusLabel status={state} />;
  }
  const [last] = jobs;
  if (!last) return null;
  const text = outcome(t, last);
  const prunes = isOver ? 0 : (last.publication?.unconfirmed_prunes ?? 0);
  const publication = jobs.find(hasFiles);
  return (
    <div className="atoll-row">
      <StatusLabel status={last.state} /> <Time at={last.ended_at} />
      {text && <div className="atoll-clamp" title={text}>{text}</div>}
      <Flex>
        {prunes > 0 && <Button variant="danger" size="sm" onClick={() => actions.confirm(pruning(t, last))}>{t("Publish and remove {{count}} images", { count: prunes })}</Button>}
        {last !== publication && <Button variant="link" isInline onClick={() => actions.show(last)}>{t("Details")}</Button>}
        {publication && <Button variant="link" isInline onClick={() => actions.show(publication)}>{t("Manifests for clusters")}</Button>}
      </Flex>
    </div>
  );
}

/** The first lines, and the others on request. */
function Lines({ lines, shown: limit }: { lines: string[]; shown: number }) {
  const { t } = useTranslation();
  const [isWhole, setWhole] = useState(false);
  const shown = isWhole ? lines : lines.slice(0, limit);
  return (
    <>
      {shown.map((line, index) => <div key={index}>{line}</div>)}
      {shown.length < lines.length && <Button variant="link" isInline onClick={() => setWhole(true)}>{t("Show all ({{count}})", { count: lines.length })}</Button>}
    </>
  );
}
