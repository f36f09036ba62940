// Hosts boot the discovery image of an infra-env by their BMCs: the form, and the progress of each host.

import { Alert, Card, CardBody, CardTitle, Content, EmptyState, EmptyStateActions, EmptyStateBody, EmptyStateFooter } from "@patternfly/react-core";
import { useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { Link, useParams } from "react-router-dom-v5-compat";
import type { InfraEnv } from "../api/records";
import { useResource } from "../api/resource";
import { BootForm } from "../bmc_boot/boot_form";
import { BootProgress } from "../bmc_boot/boot_progress";
import { useBoots } from "../bmc_boot/boots";
import { EMPTY, withFailed } from "../bmc_boot/form_values";
import { type BmcBootHost, type BmcTarget, bmcBootPath } from "../bmc_boot/records";
import { Loaded } from "../components/loaded";
import { PageFrame } from "../components/page";
import { useDraft } from "../drafts/draft";

export default function BmcBootPage() {
  const { t } = useTranslation();
  const { id = "" } = useParams();
  const infraEnv = useResource<InfraEnv>(`/infra-envs/${encodeURIComponent(id)}`);
  return (
    <PageFrame title={t("Boot hosts by their BMCs")} parents={[{ path: "/infra-envs", title: t("Discovery images") }]}>
      <Loaded resource={infraEnv}>{(data) => <Boots key={data.id} infraEnv={data} />}</Loaded>
    </PageFrame>
  );
}

function Boots({ infraEnv: { id, name, type, cluster_id: cluster } }: { infraEnv: InfraEnv }) {
  const { t } = useTranslation();
  const boots = useBoots(id);
  const draft = useDraft(`bmc boot ${id}`, EMPTY);
  const [isRetry, setRetry] = useState(false);
  /** Without credentials. */
  const [sent, setSent] = useState<BmcTarget[]>([]);
  const title = useRef<HTMLSpanElement>(null);
  const path = bmcBootPath(id);
  // An older server.
  if (boots.data === undefined && boots.error?.status === 404) return <NoBoots />;
  const retry = (failed: BmcBootHost[]) => {
    draft.change((before) => ({ ...before, bmcs: withFailed(before.bmcs, failed, sent) }));
    setRetry(true);
    title.current?.focus();
  };
  return (
    <div className="atoll-tab">
      <Content component="p">
        {t("Each BMC gives its host the discovery image {{name}}, and switches it on.", { name: name || id })}{" "}
        {cluster && <>{t("Hosts that have booted appear in the cluster:")} <Link to={`/clusters/${cluster}?tab=hosts`}>{t("Hosts")}</Link></>}
      </Content>
      <Card>
        <CardTitle component="h2"><span ref={title} tabIndex={-1}>{t("New boots")}</span></CardTitle>
        <CardBody>
          {isRetry && (
            <Alert isInline variant="info" variantLabel={t("Info")} title={t("Enter the user names and passwords again: they are not stored.")} className="atoll-draft" />
          )}
          <BootForm path={path} imageType={type} draft={draft} started={(list, rows) => {
            setRetry(false);
            setSent(rows.map((row) => ({ ...row, username: "", password: "" })));
            void boots.reload(list, false);
          }} />
        </CardBody>
      </Card>
      <Loaded resource={boots}>{({ hosts }) => <BootProgress path={path} hosts={hosts} reload={() => void boots.reload()} retry={retry} />}</Loaded>
    </div>
  );
}

function NoBoots() {
  const { t } = useTranslation();
  return (
    <EmptyState titleText={t("This version of the server boots no hosts by BMCs")} headingLevel="h2">
      <EmptyStateBody>{t("Upgrade it, or boot the hosts from the discovery image in another way.")}</EmptyStateBody>
      <EmptyStateFooter><EmptyStateActions><Link to="/infra-envs">{t("Discovery images")}</Link></EmptyStateActions></EmptyStateFooter>
    </EmptyState>
  );
}
