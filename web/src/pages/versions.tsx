// Versions: releases that clusters can be installed with, and the components of the service.

import { Card, CardBody, CardTitle, DescriptionList, DescriptionListDescription, DescriptionListGroup, DescriptionListTerm, Label } from "@patternfly/react-core";
import { useTranslation } from "react-i18next";
import type { SiteCheck, Versions as VersionTable } from "../api/records";
import { useResource } from "../api/resource";
import { CarryInLink } from "../components/carry_in_link";
import { ChecksTable } from "../components/checks_table";
import { type Column, DataTable } from "../components/data_table";
import { Loaded } from "../components/loaded";
import { PageFrame } from "../components/page";
import { StatusLabel } from "../components/status";
import { OperatorCatalogs } from "../operator_catalogs/operator_catalogs";
import { OsImages } from "../os_images/os_images";
import { ReleaseImages } from "../releases/release_images";

type Row = VersionTable[string] & { version: string };

export default function Versions() {
  const { t } = useTranslation();
  const versions = useResource<VersionTable>("/openshift-versions", 60_000);
  const components = useResource<{ versions?: Record<string, string>; release_tag?: string }>("/component-versions", 60_000);
  // Only administrators see them.
  const report = useResource<{ checks: SiteCheck[] }>("/doctor", 60_000);
  const images = report.data?.checks.filter(({ group }) => group === "images") ?? [];
  const columns: Column<Row>[] = [
    { id: "version", title: t("Version"), text: ({ version }) => version, cell: (row) => <>{row.display_name ?? row.version} {row.default && <Label isCompact>{t("Default")}</Label>}</> },
    { id: "architectures", title: t("Architectures"), text: (row) => (row.cpu_architectures ?? []).join(", "), cell: (row) => (row.cpu_architectures ?? []).join(", ") },
    { id: "support", title: t("Support level"), text: (row) => row.support_level ?? "", cell: (row) => <StatusLabel status={row.support_level} /> },
  ];
  return (
    <PageFrame title={t("Versions")} actions={<CarryInLink />}>
      <Loaded resource={versions}>
        {(table) => (
          <DataTable label={t("Versions")} columns={columns} rowId={({ version }) => version} startsDescending
            rows={Object.entries(table).map(([version, row]) => ({ ...row, version }))}
            empty={{ title: t("No versions"), body: t("Mirror a release with atoll mirror, and publish its archive here; RELEASE_IMAGES of the API server names others."), action: <CarryInLink /> }} />
        )}
      </Loaded>
      <ReleaseImages />
      <OsImages />
      <OperatorCatalogs />
      {images.length > 0 && (
        <Card>
          <CardTitle component="h2">{t("Images of this site")}</CardTitle>
          <CardBody><ChecksTable checks={images} /></CardBody>
        </Card>
      )}
      <Loaded resource={components}>
        {({ versions: table = {}, release_tag: tag }) => (
          <Card>
            <CardTitle component="h2">{t("Components of the service")}</CardTitle>
            <CardBody>
              <DescriptionList isHorizontal>
                {Object.entries({ ...(tag && { "release-tag": tag }), ...table }).map(([name, value]) => (
                  <DescriptionListGroup key={name}>
                    <DescriptionListTerm>{name}</DescriptionListTerm>
                    <DescriptionListDescription className="atoll-mono">{value}</DescriptionListDescription>
                  </DescriptionListGroup>
                ))}
              </DescriptionList>
            </CardBody>
          </Card>
        )}
      </Loaded>
    </PageFrame>
  );
}
