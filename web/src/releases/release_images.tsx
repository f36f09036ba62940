// Release images on offer: those of the settings, and those that administrators added and can change.

import { Button, Card, CardBody, CardTitle, Content, Flex, Label } from "@patternfly/react-core";
import { useMemo, useState } from "react";
import type { TFunction } from "react-i18next";
import { useTranslation } from "react-i18next";
import { useSearchParams } from "react-router-dom-v5-compat";
import { useResource } from "../api/resource";
import { type Action, ActionDialog } from "../components/action_dialog";
import { CarryInLink } from "../components/carry_in_link";
import { Copyable } from "../components/copyable";
import { type Column, DataTable } from "../components/data_table";
import { Loaded } from "../components/loaded";
import { Time } from "../components/time";
import { ADDING } from "./offer_release";
import { RELEASE_IMAGES, type ReleaseImage, isDefault, releaseId } from "./records";
import { ReleaseDialog } from "./release_dialog";

/** Names of missing images that are shown. */
const NAMED = 3;

/** Whether the dialog that adds a release is open, which is in the address: other pages link to it. */
function useAdding(): [isAdding: boolean, set: (isAdding: boolean) => void] {
  const [parameters, setParameters] = useSearchParams();
  const set = (isAdding: boolean) => setParameters((before) => {
    const after = new URLSearchParams(before);
    if (isAdding) after.set(ADDING, "");
    else after.delete(ADDING);
    return after;
  }, { replace: true });
  return [parameters.has(ADDING), set];
}

/** The button of the page's heading. Where there is no release image yet, the empty table has it. */
export function AddRelease() {
  const { data } = useResource<ReleaseImage[]>(RELEASE_IMAGES);
  return data === undefined || data.length === 0 ? null : <AddButton />;
}

function AddButton() {
  const { t } = useTranslation();
  const [, setAdding] = useAdding();
  return <Button onClick={() => setAdding(true)}>{t("Add a release")}</Button>;
}

/** `onChange` is called after a change of what is on offer. */
export function ReleaseImages({ onChange }: { onChange: () => void }) {
  const { t } = useTranslation();
  const images = useResource<ReleaseImage[]>(RELEASE_IMAGES);
  const [isAdding, setAdding] = useAdding();
  const [changed, setChanged] = useState<ReleaseImage>();
  const [action, setAction] = useState<Action>();
  const done = () => {
    void images.reload();
    onChange();
  };
  // An older server: it offers the releases of its settings only.
  if (images.data === undefined && images.error?.status === 404) return null;
  return (
    <Card>
      <CardTitle component="h2">{t("Release images")}</CardTitle>
      <CardBody>
        <Content component="p">{t("Clusters are installed from these images. Those of the settings are in RELEASE_IMAGES of the API server; while that is empty, complete releases of the registry are on offer. Others are added here, and are on offer within seconds.")}</Content>
        <Loaded resource={images}>
          {(list) => (
            <>
              <Table images={list} change={setChanged} remove={(image) => setAction(removing(t, image))} />
              {(isAdding || changed) && (
                <ReleaseDialog images={list} {...(changed && { changed })} done={done}
                  close={() => {
                    setChanged(undefined);
                    if (isAdding) setAdding(false);
                  }} />
              )}
            </>
          )}
        </Loaded>
      </CardBody>
      {action && <ActionDialog action={action} close={() => setAction(undefined)} done={done} />}
    </Card>
  );
}

function removing(t: TFunction, { version, cpu_architecture, url }: ReleaseImage): Action {
  const path = `${RELEASE_IMAGES}/${encodeURIComponent(version)}?${new URLSearchParams({ cpu_architecture }).toString()}`;
  return {
    title: t("Remove the release"),
    body: t("{{version}} for {{architecture}} is no longer on offer for new clusters. Clusters that exist keep their image, and the registry keeps {{url}}.", { version, architecture: cpu_architecture, url }),
    changes: [{ method: "DELETE", path }],
    isDangerous: true,
    hasNoDryRun: true,
  };
}

/** The images without which a release cannot be installed. */
function Missing({ components = [] }: { components: string[] | undefined }) {
  const { t } = useTranslation();
  if (components.length === 0) return null;
  const names = components.slice(0, NAMED).join(", ");
  return (
    <>
      <Label isCompact status="warning">{t("Incomplete")}</Label>
      <div className="atoll-muted">{t("{{number}} images are not in the registry: {{names}}", { number: components.length, names: components.length > NAMED ? `${names} …` : names })}</div>
    </>
  );
}

interface TableProps {
  images: ReleaseImage[];
  change: (image: ReleaseImage) => void;
  remove: (image: ReleaseImage) => void;
}

function Table({ images, change, remove }: TableProps) {
  const { t } = useTranslation();
  const columns = useMemo<Column<ReleaseImage>[]>(() => {
    const source = ({ is_added: isAdded, added_by: by, is_found: isFound }: ReleaseImage) => {
      if (isAdded) return t("Added by {{user}}", { user: by || "–" });
      return isFound ? t("Registry") : t("Settings");
    };
    return [
      { id: "version", title: t("Version"), text: ({ version }) => version, cell: (image) => <>{image.version} {isDefault(image, images) && <Label isCompact>{t("Default")}</Label>}<Missing components={image.missing} /></> },
      { id: "architecture", title: t("Architecture"), text: ({ cpu_architecture: name }) => name, cell: ({ cpu_architecture: name }) => name },
      { id: "image", title: t("Image"), text: ({ url }) => url, cell: ({ url }) => <Copyable label={t("Image")}>{url}</Copyable> },
      { id: "source", title: t("Source"), text: source, cell: (image) => <>{source(image)}{image.is_added && <div className="atoll-muted"><Time at={image.added_at} /></div>}</> },
      {
        id: "actions", title: t("Actions"), cell: (image) => image.is_added && (
          <Flex gap={{ default: "gapSm" }}>
            <Button variant="secondary" size="sm" aria-label={`${t("Change")} ${releaseId(image)}`} onClick={() => change(image)}>{t("Change")}</Button>
            <Button variant="secondary" size="sm" isDanger aria-label={`${t("Remove")} ${releaseId(image)}`} onClick={() => remove(image)}>{t("Remove")}</Button>
          </Flex>
        ),
      },
    ];
  }, [t, images]);
  return (
    <DataTable label={t("Release images")} scope="release-" columns={columns} rows={images} rowId={releaseId} startsDescending
      empty={{
        title: t("No release images"),
        body: t("Carry in the archives of a release, then add it here; RELEASE_IMAGES of the API server can name others."),
        action: <><AddButton /> <CarryInLink /></>,
      }} />
  );
}
