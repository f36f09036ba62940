// Carry in: archives that were packed outside are verified, and published into the registry of the site.

import {
  Alert, Button, Card, CardBody, CardTitle, Content, EmptyState, EmptyStateActions, EmptyStateBody, EmptyStateFooter, Modal, ModalBody,
  ModalHeader, Pagination,
} from "@patternfly/react-core";
import { type ReactNode, useState } from "react";
import { useTranslation } from "react-i18next";
import { type ApiError, asApiError, send } from "../api/client";
import { useResource } from "../api/resource";
import { HowTo } from "../archives/how_to";
import { ImageSetCard, NO_REGISTRY, type SetActions } from "../archives/image_set_card";
import { imageSets } from "../archives/image_sets";
import { JobDetails } from "../archives/job_details";
import { JobHistory } from "../archives/job_history";
import { useJobs } from "../archives/jobs";
import { kindText } from "../archives/outcome";
import { ARCHIVES, type ArchiveList, type ArchiveSet, JOBS, type Job, type JobKind, LATEST_ARCHIVE_JOBS, isActive } from "../archives/records";
import { type Action, ActionDialog } from "../components/action_dialog";
import { words } from "../components/format";
import { Failure, Loaded } from "../components/loaded";
import { PageFrame } from "../components/page";
import { usePaginationTitles } from "../components/pagination_titles";

/** The server asks the registry for each answer. Units: milliseconds. */
const REFRESH = 60_000;
/** Image sets on a page. */
const PAGE = 10;

export default function CarryIn() {
  const { t } = useTranslation();
  const archives = useResource<ArchiveList>(ARCHIVES, REFRESH);
  const jobs = useJobs(LATEST_ARCHIVE_JOBS, () => void archives.reload());
  const [starting, setStarting] = useState<string>();
  const [failure, setFailure] = useState<ApiError>();
  const [action, setAction] = useState<Action>();
  const [shown, setShown] = useState<string>();
  const hasNoJobs = archives.data === undefined && archives.error?.status === 404;

  const start = async (kind: JobKind, { name }: ArchiveSet) => {
    setStarting(name);
    setFailure(undefined);
    try {
      await send<Job>("POST", JOBS, { kind, archives: name });
      await jobs.reload();
    } catch (error) {
      setFailure(asApiError(error));
    }
    setStarting(undefined);
  };
  const actions: Omit<SetActions, "hasRegistry"> = {
    starting,
    start: (kind, set) => void start(kind, set),
    confirm: setAction,
    show: ({ id }) => setShown(id),
  };
  // Archives that have left the folder may have had some.
  const shownJob = jobs.data?.find(({ id }) => id === shown);
  return (
    <PageFrame title={t("Carry in")} actions={!hasNoJobs && <SearchAgain reload={() => void archives.reload()} />}>
      <Content component="p">{t("Archives that atoll mirror packed outside, on their way into the registry of this site. Jobs continue without this page.")}</Content>
      {failure && <Failure error={failure} />}
      <Announced jobs={jobs.data ?? []} />
      {hasNoJobs
        ? (
          <Nothing title={t("This version of the server has no jobs")}>
            {t("Upgrade it, or publish archives on the command line: atoll mirror --from FOLDER docker://REGISTRY.")}
          </Nothing>
        )
        : <Loaded resource={archives}>{(list) => <Archives list={list} jobs={jobs.data ?? []} actions={actions} reload={() => void archives.reload()} />}</Loaded>}
      {!hasNoJobs && (
        <Card>
          <CardTitle component="h2">{t("Jobs")}</CardTitle>
          <CardBody><Loaded resource={jobs}>{(list) => <JobHistory jobs={list} confirm={setAction} />}</Loaded></CardBody>
        </Card>
      )}
      <Card>
        <CardTitle component="h2">{t("How archives get here")}</CardTitle>
        <CardBody><HowTo folder={archives.data?.folder ?? ""} /></CardBody>
      </Card>
      {shownJob && (
        <Modal isOpen variant="large" onClose={() => setShown(undefined)} aria-label={kindText(t, shownJob.kind)}>
          <ModalHeader title={kindText(t, shownJob.kind)} />
          <ModalBody tabIndex={0} role="region" aria-label={t("Details")}><JobDetails job={shownJob} jobs={jobs.data ?? []} confirm={setAction} /></ModalBody>
        </Modal>
      )}
      {action && <ActionDialog action={action} close={() => setAction(undefined)} done={() => void jobs.reload()} />}
    </PageFrame>
  );
}

function SearchAgain({ reload }: { reload: () => void }) {
  const { t } = useTranslation();
  return <Button variant="secondary" onClick={reload}>{t("Search again")}</Button>;
}

function Nothing({ title, children, action }: { title: string; children: ReactNode; action?: ReactNode }) {
  return (
    <EmptyState titleText={title} headingLevel="h2">
      <EmptyStateBody>{children}</EmptyStateBody>
      {action && <EmptyStateFooter><EmptyStateActions>{action}</EmptyStateActions></EmptyStateFooter>}
    </EmptyState>
  );
}

/** The states of jobs for screen readers, when they change. */
function Announced({ jobs }: { jobs: Job[] }) {
  const { t } = useTranslation();
  const [first] = jobs;
  return (
    <p role="status" className="pf-v6-u-screen-reader">
      {first && `${first.archives}: ${isActive(first) && first.progress ? t(words(first.progress.phase)) : t(words(first.state))}`}
    </p>
  );
}

interface ArchivesProps {
  list: ArchiveList;
  jobs: Job[];
  actions: Omit<SetActions, "hasRegistry">;
  reload: () => void;
}

function Archives({ list, jobs, actions, reload }: ArchivesProps) {
  const { t } = useTranslation();
  const titles = usePaginationTitles();
  const [wantedPage, setPage] = useState(1);
  const { folder, registry, sets, omitted_sets: omitted = 0, registry_reason: reason } = list;
  if (folder === "") {
    return (
      <Nothing title={t("No folder of archives is set")}>
        {t("Name it in ARCHIVES_DIR of the API server, and restart it. In the pod the folder archives beside compose.yaml is mounted there: atoll pod up applies the change.")}
      </Nothing>
    );
  }
  const groups = imageSets(sets);
  const page = Math.min(wantedPage, Math.max(1, Math.ceil(groups.length / PAGE)));
  return (
    <>
      {registry === "" && (
        <Alert id={NO_REGISTRY} isInline variant="warning" variantLabel={t("Warning")} title={t("No registry is set: archives can be verified, and not published")}>
          {t("Name it in ARCHIVES_REGISTRY of the API server, and a login that may push in ARCHIVES_REGISTRY_AUTH_FILE; restart it.")}
        </Alert>
      )}
      {reason && (
        <Alert isInline variant="warning" variantLabel={t("Warning")} title={t("The registry was not asked for its sequences")}>{reason}</Alert>
      )}
      {omitted > 0 && (
        <Alert isInline variant="warning" variantLabel={t("Warning")} title={t("Archive sets that are not listed: {{count}}", { count: omitted })}>
          {t("Move published ones out of the folder, and search again.")}
        </Alert>
      )}
      <Content component="p">
        {t("Folder")}: <code>{folder}</code>{registry !== "" && <> · {t("Registry")}: <code>{registry}</code></>}
      </Content>
      {groups.length === 0
        ? (
          <Nothing title={t("No archives yet")} action={<SearchAgain reload={reload} />}>
            {t("Copy files named mirror_seq1_000000.tar and so on into {{folder}}.", { folder })}
          </Nothing>
        )
        : groups.slice((page - 1) * PAGE, page * PAGE).map((imageSet) => (
          <ImageSetCard key={imageSet.uid} imageSet={imageSet} jobs={jobs} actions={{ ...actions, hasRegistry: registry !== "" }} />
        ))}
      {groups.length > PAGE && (
        <Pagination itemCount={groups.length} page={page} perPage={PAGE} titles={titles} perPageOptions={[{ title: String(PAGE), value: PAGE }]}
          onSetPage={(_, value) => setPage(value)} />
      )}
    </>
  );
}
