// Path of the wizard's pages, and their titles in the window.

import { Breadcrumb, BreadcrumbItem, PageSection } from "@patternfly/react-core";
import { useEffect } from "react";
import { useTranslation } from "react-i18next";
import { Link, useParams } from "react-router-dom-v5-compat";

export default function ClusterBreadcrumbs({ clusterName }: { clusterName?: string }) {
  const { t } = useTranslation();
  const { clusterId } = useParams();
  const title = clusterId === undefined ? t("Create a cluster") : (clusterName ?? clusterId);
  useEffect(() => {
    document.title = `${title} · Atoll`;
  }, [title]);
  return (
    <PageSection hasBodyWrapper={false}>
      <Breadcrumb>
        <BreadcrumbItem render={({ className }) => <Link className={className} to="/clusters">{t("Clusters")}</Link>} />
        {clusterId === undefined
          ? <BreadcrumbItem isActive>{title}</BreadcrumbItem>
          : <BreadcrumbItem render={({ className }) => <Link className={className} to={`/clusters/${clusterId}`}>{title}</Link>} />}
      </Breadcrumb>
    </PageSection>
  );
}
