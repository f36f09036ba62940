// The catalogs of the site, and the page of a site that serves none.

import { EmptyState, EmptyStateActions, EmptyStateBody, EmptyStateFooter } from "@patternfly/react-core";
import { useTranslation } from "react-i18next";
import { type Resource, useDocuments } from "../api/resource";
import { useServices } from "../api/site";
import { CarryInLink } from "../components/carry_in_link";
import { CATALOGS, type CatalogEntry } from "./records";

/** The catalogs of the site, and whether it has none: no catalog server, or one that is stopped or serves nothing yet. */
export function useCatalogs(): Resource<CatalogEntry[]> & { hasNone: boolean } {
  const services = useServices();
  const catalogs = useDocuments<CatalogEntry>(services?.catalogs ? CATALOGS : undefined);
  const hasNone = catalogs.data === undefined
    ? services?.catalogs === false || catalogs.error?.isUnavailable === true
    : catalogs.data.every(({ is_ready: isReady }) => !isReady);
  return { ...catalogs, hasNone };
}

export function NoCatalogs() {
  const { t } = useTranslation();
  return (
    <EmptyState titleText={t("No catalog is served")} headingLevel="h2">
      <EmptyStateBody>
        {t("Mirror an operator catalog, name it in CATALOGS, and start the catalog server: podman-compose --profile catalog up -d.")}
      </EmptyStateBody>
      <EmptyStateFooter><EmptyStateActions><CarryInLink /></EmptyStateActions></EmptyStateFooter>
    </EmptyState>
  );
}
