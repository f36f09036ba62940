// Maintenance of the registry: disk use, quotas, garbage, comparison of content with digests, and of the folder with the index.

import { Alert, Button, Card, CardBody, CardTitle, Content } from "@patternfly/react-core";
import { Table, Tbody, Td, Th, Thead, Tr } from "@patternfly/react-table";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router-dom-v5-compat";
import { ApiError } from "../api/client";
import { type QuotaUsage, type RegistryUsage, type ReindexReport, type ScrubReport, type StorageUsage, registryDocument } from "../api/registry";
import type { Resource } from "../api/resource";
import { Copyable } from "../components/copyable";
import { Facts } from "../components/facts";
import { bytes } from "../components/format";
import { Failure } from "../components/loaded";
import { Percentage } from "../components/status";
import { Time } from "../components/time";
import { GarbageDialog } from "./garbage";
import { imagePath } from "./image_name";
import { RegistryLoaded } from "./log_in";
import { shortDigest } from "./manifest";
import { asApiError, useRegistry } from "./resource";

/** Interval of reading while something runs. Units: milliseconds. */
const WHILE_RUNNING = 2_000;
/** Share of free space below which pushes are soon refused. */
const SCARCE = 0.05;
/** Findings that are shown by name. */
const FINDINGS = 100;
const QUOTA_EXAMPLE = "quotas: [{repositories: [\"team/**\"], limit: 50GiB}]";

export function Maintenance() {
  const { t } = useTranslation();
  const usage = useRegistry("usage", () => registryDocument<RegistryUsage>("_atoll/usage"), (latest) => (latest?.storage && latest.storage.bytes === undefined ? WHILE_RUNNING : 0));
  const [isCollecting, setIsCollecting] = useState(false);
  // All of it takes the same right: refused once, not in each part.
  return (
    <RegistryLoaded resource={usage}>
      {({ quotas, storage }) => (
        <div className="atoll-tab">
          {storage && (
            <Card>
              <CardTitle component="h2">{t("Disk use")}</CardTitle>
              <CardBody><DiskUse storage={storage} /></CardBody>
            </Card>
          )}
          <Card>
            <CardTitle component="h2">{t("Quotas")}</CardTitle>
            <CardBody><Quotas quotas={quotas} /></CardBody>
          </Card>
          <Card>
            <CardTitle component="h2">{t("Garbage")}</CardTitle>
            <CardBody>
              <Content component="p">{t("The registry collects garbage once a day: tags that no retention rule keeps, and content that nothing refers to. It can be collected now; a dry run comes first.")}</Content>
              <Button variant="secondary" onClick={() => setIsCollecting(true)}>{t("Look for garbage")}</Button>
              {isCollecting && <GarbageDialog close={() => setIsCollecting(false)} />}
            </CardBody>
          </Card>
          <Scrub />
          <Reindex />
        </div>
      )}
    </RegistryLoaded>
  );
}

export function DiskUse({ storage: { repositories, blobs, bytes: content, counted_at: countedAt, capacity, free } }: { storage: StorageUsage }) {
  const { t } = useTranslation();
  const used = capacity === undefined || free === undefined ? undefined : capacity - free;
  return (
    <div className="atoll-tab">
      {capacity !== undefined && used !== undefined && (
        <>
          <Percentage value={capacity === 0 ? 0 : Math.round((used / capacity) * 100)} label={t("Used share of the file system")} />
          {free !== undefined && free < capacity * SCARCE && (
            <Alert isInline variant="warning" variantLabel={t("Warning")} title={t("The disk is almost full: once it is full, pushes and mirroring are refused.")}>
              {t("Collect garbage, delete images that nothing needs, or enlarge the disk.")}
            </Alert>
          )}
        </>
      )}
      <Facts of={[
        [t("Content of the registry"), content !== undefined && bytes(content)],
        [t("Blobs and manifests"), blobs],
        [t("Repositories"), repositories],
        [t("Counted"), countedAt && <Time at={countedAt} />],
        [t("Used on the file system"), used !== undefined && bytes(used)],
        [t("Free"), free !== undefined && bytes(free)],
        [t("Capacity"), capacity !== undefined && bytes(capacity)],
      ]} />
      {content === undefined && <Content component="p">{t("The content is being counted: the numbers appear in a moment.")}</Content>}
      {capacity === undefined && <Content component="p">{t("The content is in a bucket, which does not report its free space.")}</Content>}
    </div>
  );
}

function Quotas({ quotas }: { quotas: QuotaUsage[] }) {
  const { t } = useTranslation();
  if (quotas.length === 0) {
    return (
      <>
        <Content component="p">{t("Repositories may grow until the disk is full. Quotas are lines of the file of REGISTRY_STORAGE_POLICY_PATH, which is read again when it changes:")}</Content>
        <Copyable label={t("Quotas")}>{QUOTA_EXAMPLE}</Copyable>
      </>
    );
  }
  return (
    <Table aria-label={t("Quotas")} variant="compact">
      <Thead><Tr><Th>{t("Repositories")}</Th><Th>{t("Used")}</Th><Th>{t("Limit")}</Th><Th>{t("Share")}</Th></Tr></Thead>
      <Tbody>
        {quotas.map(({ repositories, used, limit }) => (
          <Tr key={repositories}>
            <Td dataLabel={t("Repositories")} className="atoll-mono">{repositories}</Td>
            <Td dataLabel={t("Used")}>{bytes(used)}</Td>
            <Td dataLabel={t("Limit")}>{bytes(limit)}</Td>
            <Td dataLabel={t("Share")}><Percentage value={limit === 0 ? 100 : Math.round((used / limit) * 100)} label={t("Share of {{repositories}}", { repositories })} /></Td>
          </Tr>
        ))}
      </Tbody>
    </Table>
  );
}

/** A button that starts something whose report is a resource. */
function Start<T>({ title, path, resource, isRunning }: { title: string; path: string; resource: Resource<T>; isRunning: boolean }) {
  const [state, setState] = useState<"idle" | "asking" | ApiError>("idle");
  const start = async () => {
    setState("asking");
    try {
      await resource.reload(await registryDocument<T>(path, { method: "POST" }), { revalidate: false });
      setState("idle");
    } catch (error) {
      setState(asApiError(error));
    }
  };
  return (
    <div>
      {typeof state === "object" && <Failure error={state} />}
      <Button variant="secondary" isDisabled={isRunning} isLoading={state === "asking"} onClick={() => void start()}>{title}</Button>
    </div>
  );
}

function Scrub() {
  const { t } = useTranslation();
  const path = "_atoll/scrub";
  const report = useRegistry("scrub", () => registryDocument<ScrubReport>(path), (latest) => (latest?.is_running ? WHILE_RUNNING : 0));
  return (
    <Card>
      <CardTitle component="h2">{t("Damaged content")}</CardTitle>
      <CardBody>
        <Content component="p">{t("The registry reads all of its content once a week and compares it with its digests. Damaged content is quarantined until it is pushed or mirrored again.")}</Content>
        <RegistryLoaded resource={report}>
          {({ is_running: isRunning, percent, started_at: start, ended_at: end, contents, bytes: size, damaged, missing, unread, findings }) => (
            <div className="atoll-tab">
              {isRunning && <Percentage value={percent} label={t("Check of all content")} />}
              <Facts of={[
                [t("Started"), start && <Time at={start} />],
                [t("Ended"), !isRunning && start && end && <Time at={end} />],
                [t("Contents compared"), contents],
                [t("Size"), bytes(size)],
                [t("Damaged"), damaged],
                [t("Missing"), missing],
                [t("Not readable for now"), unread],
              ]} />
              {!isRunning && start && damaged + missing + unread === 0 && <Alert isInline isPlain variant="success" variantLabel={t("Success")} title={t("No damage was found.")} />}
              {findings.length > 0 && <Findings findings={findings} />}
              <Start title={t("Check all content now")} path={path} resource={report} isRunning={isRunning} />
            </div>
          )}
        </RegistryLoaded>
      </CardBody>
    </Card>
  );
}

function Findings({ findings }: { findings: ScrubReport["findings"] }) {
  const { t } = useTranslation();
  return (
    <>
      <Table aria-label={t("Damaged content")} variant="compact">
        <Thead><Tr><Th>{t("Digest")}</Th><Th>{t("State")}</Th><Th>{t("Repositories")}</Th></Tr></Thead>
        <Tbody>
          {findings.slice(0, FINDINGS).map(({ digest, what, repositories }) => (
            <Tr key={digest}>
              <Td dataLabel={t("Digest")}><span className="atoll-digest" title={digest}>{shortDigest(digest)}</span></Td>
              <Td dataLabel={t("State")}>{what === "missing" ? t("Missing") : t("Damaged")}</Td>
              <Td dataLabel={t("Repositories")}>{repositories.map((name) => <div key={name}><Link to={imagePath(name)}>{name}</Link></div>)}</Td>
            </Tr>
          ))}
        </Tbody>
      </Table>
      {findings.length > FINDINGS && <p>{t("{{count}} more are not shown", { count: findings.length - FINDINGS })}</p>}
    </>
  );
}

function Reindex() {
  const { t } = useTranslation();
  const path = "_atoll/reindex";
  const report = useRegistry("reindex", () => registryDocument<ReindexReport>(path), (latest) => (latest?.is_finished === false ? WHILE_RUNNING : 0));
  // 405: the content is in a bucket, which has no index.
  const isBucket = report.error?.status === 405;
  return (
    <Card>
      <CardTitle component="h2">{t("Folder and index")}</CardTitle>
      <CardBody>
        <Content component="p">
          {isBucket ? t("The content is in a bucket, which has no index.") : t("After something else has changed the folder of the running registry (rsync, a restored backup), the index is compared with it. Nothing is removed.")}
        </Content>
        {!isBucket && (
          <RegistryLoaded resource={report}>
            {({ is_finished: isFinished, repositories, compared, adopted, failed }) => (
              <div className="atoll-tab">
                {!isFinished && <Percentage value={repositories === 0 ? 0 : Math.floor((compared / repositories) * 100)} label={t("Comparison of folder and index")} />}
                <Facts of={[
                  [t("Repositories"), repositories],
                  [t("Compared"), compared],
                  [t("Differed, read again"), adopted],
                  [t("Not readable"), failed],
                ]} />
                <Start title={t("Compare now")} path={path} resource={report} isRunning={!isFinished} />
              </div>
            )}
          </RegistryLoaded>
        )}
      </CardBody>
    </Card>
  );
}
