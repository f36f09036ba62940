// Release images on offer: those of the settings, else those of the registry with the images that they lack.

import { Card, CardBody, CardTitle, Content, Label } from "@patternfly/react-core";
import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router-dom-v5-compat";
import { useResource } from "../api/resource";
import { ARCHIVES, type ArchiveList } from "../archives/records";
import { CarryInLink } from "../components/carry_in_link";
import { Copyable } from "../components/copyable";
import { type Column, DataTable } from "../components/data_table";
import { Loaded } from "../components/loaded";
import { RELEASE_IMAGES, type ReleaseImage, payloadArchitecture, releaseId } from "./records";

/** Names of missing images that are shown. */
const NAMED = 3;

export function ReleaseImages() {
  const { t } = useTranslation();
  const images = useResource<ReleaseImage[]>(RELEASE_IMAGES);
  // An older server: it offers the releases of its settings only.
  if (images.data === undefined && images.error?.status === 404) return null;
  return (
    <Card>
      <CardTitle component="h2">{t("Release images")}</CardTitle>
      <CardBody>
        <Content component="p">{t("Clusters are installed from these images. Those of the settings are in RELEASE_IMAGES of the API server; while that is empty, complete releases of the registry are on offer.")}</Content>
        <Loaded resource={images}>{(list) => <Table images={list} />}</Loaded>
      </CardBody>
    </Card>
  );
}

/** The images without which a release cannot be installed, and the archives that bring them. */
function Missing({ image: { version, cpu_architecture: name, missing: components = [] }, archives }: { image: ReleaseImage; archives: ArchiveList | undefined }) {
  const { t } = useTranslation();
  if (components.length === 0) return null;
  const names = components.slice(0, NAMED).join(", ");
  const source = archives?.sets.find(({ release_images: releases = [] }) => releases.includes(`${version}-${payloadArchitecture(name)}`));
  return (
    <>
      <Label isCompact status="warning">{t("Incomplete")}</Label>
      <div className="atoll-muted">{t("{{number}} images are not in the registry: {{names}}", { number: components.length, names: components.length > NAMED ? `${names} …` : names })}</div>
      {source && <Link to="/carry-in">{t("{{archive}} has this release", { archive: source.name })}</Link>}
    </>
  );
}

function Table({ images }: { images: ReleaseImage[] }) {
  const { t } = useTranslation();
  // Only administrators see them.
  const { data: archives } = useResource<ArchiveList>(images.some(({ missing = [] }) => missing.length > 0) ? ARCHIVES : undefined);
  const columns = useMemo<Column<ReleaseImage>[]>(() => {
    const source = ({ is_found: isFound }: ReleaseImage) => (isFound ? t("Registry") : t("Settings"));
    return [
      { id: "version", title: t("Version"), text: ({ version }) => version, cell: (image) => <>{image.version} {image.default && <Label isCompact>{t("Default")}</Label>} {image.is_signed && <Label isCompact>{t("With signature")}</Label>}<Missing image={image} archives={archives} /></> },
      { id: "architecture", title: t("Architecture"), text: ({ cpu_architecture: name }) => name, cell: ({ cpu_architecture: name }) => name },
      { id: "image", title: t("Image"), text: ({ url }) => url, cell: ({ url }) => <Copyable label={t("Image")}>{url}</Copyable> },
      { id: "source", title: t("Source"), text: source, cell: source },
    ];
  }, [t, archives]);
  return (
    <DataTable label={t("Release images")} scope="release-" columns={columns} rows={images} rowId={releaseId} startsDescending
      empty={{
        title: t("No release images"),
        body: t("Carry in the archives of a release: it is on offer once the registry has all its images. RELEASE_IMAGES of the API server can name others."),
        action: <CarryInLink />,
      }} />
  );
}
