// OS images on offer: those of the settings, and those that administrators added and can remove.

import { Button, Card, CardBody, CardTitle, Content } from "@patternfly/react-core";
import { useMemo, useState } from "react";
import type { TFunction } from "react-i18next";
import { useTranslation } from "react-i18next";
import { useResource } from "../api/resource";
import { type Action, ActionDialog } from "../components/action_dialog";
import { CarryInLink } from "../components/carry_in_link";
import { Copyable } from "../components/copyable";
import { type Column, DataTable } from "../components/data_table";
import { Loaded } from "../components/loaded";
import { Time } from "../components/time";
import { OsImageDialog } from "./os_image_dialog";
import { OS_IMAGES, type OsImage, osImageId } from "./records";

/** `onChange` is called after a change of what is on offer. */
export function OsImages({ onChange }: { onChange: () => void }) {
  const { t } = useTranslation();
  const images = useResource<OsImage[]>(OS_IMAGES);
  const [isAdding, setAdding] = useState(false);
  const [action, setAction] = useState<Action>();
  const done = () => {
    void images.reload();
    onChange();
  };
  // An older server, or a person who is no administrator.
  if (images.data === undefined && (images.error?.status === 404 || images.error?.status === 403)) return null;
  const add = <Button variant="secondary" onClick={() => setAdding(true)}>{t("Add an OS image")}</Button>;
  return (
    <Card>
      <CardTitle component="h2">{t("OS images")}</CardTitle>
      <CardBody>
        <Content component="p">{t("Discovery images are made of OS images. A release needs one of its minor version and architecture.")}</Content>
        <Content component="p">{t("Those of the settings are in OS_IMAGES, or in the file of OS_IMAGES_FILE, which API server and image service follow. Others are added here: the image service downloads them within minutes.")}</Content>
        <Loaded resource={images}>
          {(list) => (
            <>
              {list.length > 0 && add}
              <Table images={list} add={add} remove={(image) => setAction(removing(t, image))} />
              {isAdding && <OsImageDialog images={list} done={done} close={() => setAdding(false)} />}
            </>
          )}
        </Loaded>
      </CardBody>
      {action && <ActionDialog action={action} close={() => setAction(undefined)} done={done} />}
    </Card>
  );
}

function removing(t: TFunction, { openshift_version: version, cpu_architecture }: OsImage): Action {
  const path = `${OS_IMAGES}/${encodeURIComponent(version)}?${new URLSearchParams({ cpu_architecture }).toString()}`;
  return {
    title: t("Remove the OS image"),
    body: t("Discovery images of {{version}} for {{architecture}} can no longer be downloaded. Hosts that have booted go on.", { version, architecture: cpu_architecture }),
    changes: [{ method: "DELETE", path }],
    isDangerous: true,
    hasNoDryRun: true,
  };
}

interface TableProps {
  images: OsImage[];
  add: React.ReactNode;
  remove: (image: OsImage) => void;
}

function Table({ images, add, remove }: TableProps) {
  const { t } = useTranslation();
  const columns = useMemo<Column<OsImage>[]>(() => {
    const source = ({ is_added: isAdded, added_by: by, is_found: isFound }: OsImage) => {
      if (isAdded) return t("Added by {{user}}", { user: by || "–" });
      return isFound ? t("Registry") : t("Settings");
    };
    return [
      {
        id: "version", title: t("Version"), text: ({ openshift_version: platform, version }) => `${platform} ${version}`,
        cell: ({ openshift_version: platform, version }) => <>{platform}<div className="atoll-muted">{version}</div></>,
      },
      { id: "architecture", title: t("Architecture"), text: ({ cpu_architecture: name }) => name, cell: ({ cpu_architecture: name }) => name },
      { id: "image", title: t("Image"), text: ({ url }) => url, cell: ({ url }) => <Copyable label={t("Image")}>{url}</Copyable> },
      { id: "source", title: t("Source"), text: source, cell: (image) => <>{source(image)}{image.is_added && <div className="atoll-muted"><Time at={image.added_at} /></div>}</> },
      {
        id: "actions", title: t("Actions"), cell: (image) => image.is_added && (
          <Button variant="secondary" size="sm" isDanger aria-label={`${t("Remove")} ${osImageId(image)}`} onClick={() => remove(image)}>{t("Remove")}</Button>
        ),
      },
    ];
  }, [t, remove]);
  return (
    <DataTable label={t("OS images")} scope="os-" columns={columns} rows={images} rowId={osImageId} startsDescending
      empty={{
        title: t("No OS images"),
        body: t("No host can boot a discovery image. Archives of atoll mirror can have OS images; others are added by their address."),
        action: <>{add} <CarryInLink /></>,
      }} />
  );
}
