// OS images on offer: those of the settings, else those of the registry.

import { Card, CardBody, CardTitle, Content } from "@patternfly/react-core";
import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import { useResource } from "../api/resource";
import { CarryInLink } from "../components/carry_in_link";
import { Copyable } from "../components/copyable";
import { type Column, DataTable } from "../components/data_table";
import { Loaded } from "../components/loaded";
import { OS_IMAGES, type OsImage, osImageId } from "./records";

export function OsImages() {
  const { t } = useTranslation();
  const images = useResource<OsImage[]>(OS_IMAGES);
  // An older server, or a person who is no administrator.
  if (images.data === undefined && (images.error?.status === 404 || images.error?.status === 403)) return null;
  return (
    <Card>
      <CardTitle component="h2">{t("OS images")}</CardTitle>
      <CardBody>
        <Content component="p">{t("Discovery images are made of OS images. A release needs one of its minor version and architecture.")}</Content>
        <Content component="p">{t("They are in OS_IMAGES; while that is empty, those of the complete releases of the registry are on offer, and the image service downloads them within minutes.")}</Content>
        <Loaded resource={images}>{(list) => <Table images={list} />}</Loaded>
      </CardBody>
    </Card>
  );
}

function Table({ images }: { images: OsImage[] }) {
  const { t } = useTranslation();
  const columns = useMemo<Column<OsImage>[]>(() => {
    const source = ({ is_found: isFound }: OsImage) => (isFound ? t("Registry") : t("Settings"));
    return [
      {
        id: "version", title: t("Version"), text: ({ openshift_version: platform, version }) => `${platform} ${version}`,
        cell: ({ openshift_version: platform, version }) => <>{platform}<div className="atoll-muted">{version}</div></>,
      },
      { id: "architecture", title: t("Architecture"), text: ({ cpu_architecture: name }) => name, cell: ({ cpu_architecture: name }) => name },
      { id: "image", title: t("Image"), text: ({ url }) => url, cell: ({ url }) => <Copyable label={t("Image")}>{url}</Copyable> },
      { id: "source", title: t("Source"), text: source, cell: source },
    ];
  }, [t]);
  return (
    <DataTable label={t("OS images")} scope="os-" columns={columns} rows={images} rowId={osImageId} startsDescending
      empty={{
        title: t("No OS images"),
        body: t("No host can boot a discovery image. A complete release in the registry brings its OS image; OS_IMAGES can name others."),
        action: <CarryInLink />,
      }} />
  );
}
