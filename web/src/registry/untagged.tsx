// Manifests without a tag: platforms of indexes, signatures, and what lost its tag.

import { Button, Card, CardBody, CardTitle, Content } from "@patternfly/react-core";
import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import type { ListedManifest } from "../api/registry";
import { type Column, DataTable } from "../components/data_table";
import { bytes } from "../components/format";
import { Time } from "../components/time";
import { type Listing, called, listedArtifactType } from "./listed";
import { isIndex, purpose } from "./manifest";
import { DigestLink, ManifestLink, PurposeLabel } from "./referrers";

/** Indexes and subjects that a row shows by name. */
const NEEDERS = 3;

export function UntaggedManifests({ name, listing, remove }: { name: string; listing: Listing; remove: (digest: string) => void }) {
  const { t } = useTranslation();
  const rows = useMemo(() => listing.entries.filter(({ tags }) => tags.length === 0), [listing]);
  const columns = useMemo<Column<ListedManifest>[]>(() => {
    const size = ({ digest }: ListedManifest) => listing.sizes.get(digest);
    const needers = ({ digest, subject }: ListedManifest) => {
      const referred = subject === undefined ? undefined : listing.known.get(subject);
      return [...(referred ? [referred] : []), ...(listing.indexes.get(digest) ?? [])];
    };
    return [
      { id: "pushed", title: t("Pushed"), order: ({ pushedAt }) => Date.parse(pushedAt ?? "") || 0, cell: ({ pushedAt }) => <span className="atoll-time"><Time at={pushedAt} /></span> },
      { id: "digest", title: t("Digest"), text: ({ digest }) => digest, cell: ({ digest }) => <DigestLink name={name} digest={digest} /> },
      { id: "kind", title: t("Kind"), text: (row) => kindText(row, t), cell: (row) => <Kind row={row} /> },
      { id: "size", title: t("Size"), order: (row) => size(row) ?? 0, cell: (row) => <span className="atoll-nowrap">{bytes(size(row))}</span> },
      {
        id: "needed", title: t("Needed by"),
        text: (row) => needers(row).map(called).join(" "),
        cell: (row) => <NeededBy name={name} needers={needers(row)} subject={row.subject} />,
      },
      { id: "delete", title: t("Actions"), cell: ({ digest }) => <Button variant="link" isInline isDanger aria-label={t("Delete {{name}}", { name: digest })} onClick={() => remove(digest)}>{t("Delete")}</Button> },
    ];
  }, [t, name, listing, remove]);
  return (
    <Card>
      <CardTitle component="h2">{t("Manifests without a tag")}</CardTitle>
      <CardBody>
        {rows.length > 0 && <Content component="p">{t("Platforms of an index and signatures have no tag of their own. Others lost theirs to a later push, and stay until they are deleted or a retention rule says so.")}</Content>}
        <DataTable label={t("Manifests without a tag")} scope="untagged-" columns={columns} rows={rows} rowId={({ digest }) => digest} startsDescending
          empty={{ title: t("No manifest without a tag"), body: t("All manifests of this repository are reached by their tags, in the list above.") }} />
      </CardBody>
    </Card>
  );
}

type Translate = (text: string) => string;

function kindText(row: ListedManifest, t: Translate): string {
  if (row.mediaType === undefined) return t("Damaged");
  if (isIndex(row.mediaType, {})) return t("Index of several platforms");
  return listedArtifactType(row) ?? t("Image");
}

function Kind({ row }: { row: ListedManifest }) {
  const { t } = useTranslation();
  const type = listedArtifactType(row);
  return <>{type !== undefined && <PurposeLabel of={purpose({ digest: "", artifactType: type })} />} {kindText(row, t)}</>;
}

function NeededBy({ name, needers, subject }: { name: string; needers: ListedManifest[]; subject: string | undefined }) {
  const { t } = useTranslation();
  if (needers.length === 0) return <span className="atoll-muted">{subject === undefined ? t("Nothing") : t("Nothing: what it refers to is not here")}</span>;
  return (
    <>
      {needers.slice(0, NEEDERS).map(({ digest, tags }) => <div key={digest}><ManifestLink name={name} digest={digest} tag={tags[0]} /></div>)}
      {needers.length > NEEDERS && <div>{t("and {{count}} more", { count: needers.length - NEEDERS })}</div>}
    </>
  );
}
