// The page of a site that serves no catalog.

import { EmptyState, EmptyStateBody } from "@patternfly/react-core";
import { useTranslation } from "react-i18next";
import type { Resource } from "../api/resource";
import type { CatalogEntry } from "./records";

/** Whether the site has no catalog server, or one that serves nothing yet. */
export function isWithoutCatalogs({ data, error }: Resource<CatalogEntry[]>): boolean {
  return data === undefined ? error?.status === 404 || error?.isUnavailable === true : data.every(({ is_ready: isReady }) => !isReady);
}

export function NoCatalogs() {
  const { t } = useTranslation();
  return (
    <EmptyState titleText={t("No catalog is served")} headingLevel="h2">
      <EmptyStateBody>
        {t("Mirror an operator catalog, name it in CATALOGS, and start the catalog server: podman-compose --profile catalog up -d.")}
      </EmptyStateBody>
    </EmptyState>
  );
}
