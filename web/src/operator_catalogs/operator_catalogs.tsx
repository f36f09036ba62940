// Operator catalogs of the registry, which new clusters get.

import { Card, CardBody, CardTitle, Content, Label } from "@patternfly/react-core";
import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import { useResource } from "../api/resource";
import { CarryInLink } from "../components/carry_in_link";
import { Copyable } from "../components/copyable";
import { type Column, DataTable } from "../components/data_table";
import { Loaded } from "../components/loaded";
import { OPERATOR_CATALOGS, type OperatorCatalog } from "./records";

export function OperatorCatalogs() {
  const { t } = useTranslation();
  const catalogs = useResource<OperatorCatalog[]>(OPERATOR_CATALOGS);
  // An older server.
  if (catalogs.data === undefined && catalogs.error?.status === 404) return null;
  return (
    <Card>
      <CardTitle component="h2">{t("Operator catalogs")}</CardTitle>
      <CardBody>
        <Content component="p">{t("New clusters have their operators from the catalogs of their minor version in the registry; OPERATOR_CATALOG_SOURCES can name others.")}</Content>
        <Loaded resource={catalogs}>{(list) => <Table catalogs={list} />}</Loaded>
      </CardBody>
    </Card>
  );
}

/** The images that the registry lacks: their operators cannot be installed. */
function Missing({ missing_repositories: number, missing: [first] = [] }: OperatorCatalog) {
  const { t } = useTranslation();
  if (number === 0) return null;
  return (
    <>
      <Label isCompact status="warning">{t("Incomplete")}</Label>
      <div className="atoll-muted">{t("{{number}} repositories that operators need are not in the registry, as that of {{first}}", { number, first })}</div>
    </>
  );
}

function Table({ catalogs }: { catalogs: OperatorCatalog[] }) {
  const { t } = useTranslation();
  const columns = useMemo<Column<OperatorCatalog>[]>(() => [
    { id: "version", title: t("Version"), text: ({ openshift_version: version }) => version, cell: (catalog) => <>{catalog.openshift_version} <Missing {...catalog} /></> },
    { id: "image", title: t("Image"), text: ({ image }) => image, cell: ({ image }) => <Copyable label={t("Image")}>{image}</Copyable> },
  ], [t]);
  return (
    <DataTable label={t("Operator catalogs")} scope="catalog-" columns={columns} rows={catalogs} rowId={({ image }) => image} startsDescending
      empty={{
        title: t("No operator catalogs"),
        body: t("Clusters have no operators beside those of the platform. Carry in the archives of a catalog: it is found by its tag, as v4.18."),
        action: <CarryInLink />,
      }} />
  );
}
