// One operator of a catalog: its channels with their upgrade paths, versions, and the images that it needs.

import { Card, CardBody, CardTitle, Label, LabelGroup } from "@patternfly/react-core";
import { Table, Tbody, Td, Th, Thead, Tr } from "@patternfly/react-table";
import { useTranslation } from "react-i18next";
import { Link, useParams } from "react-router-dom-v5-compat";
import { useDocuments } from "../api/resource";
import { Images } from "../catalog/images";
import { type Bundle, type Channel, type Document, type Package, head, metas, upgradePath, version } from "../catalog/records";
import { byName } from "../components/format";
import { Loaded } from "../components/loaded";
import { PageFrame } from "../components/page";
import { planWith } from "../mirror/plan";

export default function Operator() {
  const { t } = useTranslation();
  const { catalog = "", package: name = "" } = useParams();
  // The document of a package is named by itself, the others name it.
  const packages = useDocuments<Package>(metas(catalog, { schema: "olm.package", name }));
  const documents = useDocuments<Document>(metas(catalog, { package: name }));
  const defaultChannel = packages.data?.[0]?.defaultChannel;
  return (
    <PageFrame title={name} parents={[{ path: `/catalogs?catalog=${catalog}`, title: t("Operator catalogs") }]}
      actions={<Link to={planWith(catalog, name, defaultChannel)}>{t("Add to a mirror plan")}</Link>}>
      <Loaded resource={documents}>
        {(list) => {
          const channels = list.filter((document): document is Channel => document.schema === "olm.channel").sort((one, other) => byName(other.name, one.name));
          const bundles = new Map(list.filter((document): document is Bundle => document.schema === "olm.bundle").map((bundle) => [bundle.name, bundle]));
          return channels.map((channel) => (
            <Card key={channel.name}>
              <CardTitle component="h2">
                {channel.name} {channel.name === defaultChannel && <Label isCompact color="blue">{t("Default")}</Label>}
              </CardTitle>
              <CardBody><UpgradePath channel={channel} bundles={bundles} /></CardBody>
            </Card>
          ));
        }}
      </Loaded>
    </PageFrame>
  );
}

function UpgradePath({ channel, bundles }: { channel: Channel; bundles: Map<string, Bundle> }) {
  const { t } = useTranslation();
  const latest = head(channel);
  return (
    <Table aria-label={t("Versions of {{channel}}", { channel: channel.name })} variant="compact">
      <Thead><Tr><Th>{t("Version")}</Th><Th>{t("Replaces")}</Th><Th>{t("Skips")}</Th><Th>{t("Images")}</Th></Tr></Thead>
      <Tbody>
        {upgradePath(channel).map((entry) => {
          const bundle = bundles.get(entry.name);
          const images = [...new Set((bundle?.relatedImages ?? []).map(({ image }) => image))];
          return (
            <Tr key={entry.name}>
              <Td dataLabel={t("Version")}>{bundle ? version(bundle) : entry.name} {entry.name === latest && <Label isCompact color="green">{t("Head")}</Label>}</Td>
              <Td dataLabel={t("Replaces")}>{entry.replaces ?? "–"}</Td>
              <Td dataLabel={t("Skips")}>
                {entry.skipRange ?? ""}
                {entry.skips && <LabelGroup numLabels={3} collapsedText={t("${remaining} more")} expandedText={t("Show less")}>{entry.skips.map((skipped) => <Label isCompact key={skipped}>{skipped}</Label>)}</LabelGroup>}
              </Td>
              <Td dataLabel={t("Images")}>{images.length > 0 && <Images images={images} />}</Td>
            </Tr>
          );
        })}
      </Tbody>
    </Table>
  );
}
