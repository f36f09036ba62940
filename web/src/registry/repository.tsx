// One repository: its tags, with details of the visible ones, and its manifests without a tag.

import { Button, Card, CardBody, CardTitle, Content, Form, FormGroup, FormHelperText, HelperText, HelperTextItem, TextInput } from "@patternfly/react-core";
import { createContext, useContext, useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import { Link, useNavigate } from "react-router-dom-v5-compat";
import { ApiError } from "../api/client";
import { listedManifests, tags } from "../api/registry";
import { useServices } from "../api/site";
import { Copyable } from "../components/copyable";
import { type Column, DataTable } from "../components/data_table";
import { bytes } from "../components/format";
import { Cause } from "../components/loaded";
import { PageFrame } from "../components/page";
import { Time } from "../components/time";
import { DeletionDialog } from "./deletion";
import { imagePath, isDigest, pullCommand } from "./image_name";
import { type Listing, listing } from "./listed";
import { Account, RegistryLoaded } from "./log_in";
import { shortTag, taggedSubject } from "./manifest";
import { DigestLink, PurposeLabel, Referrers } from "./referrers";
import { ListIsCut } from "./repositories";
import { type Details, useDetails, useRegistry } from "./resource";
import { type Summary, summary } from "./summary";
import { UntaggedManifests } from "./untagged";

/** Platforms that a row shows by name. */
const PLATFORMS = 4;

// Columns stay the same when details arrive: a change of them sorts all rows anew.
const Summaries = createContext<Details<Summary>>(new Map());

export function Repository({ name }: { name: string }) {
  const { t } = useTranslation();
  const list = useRegistry(`tags ${name}`, () => tags(name));
  // After the list of tags, so that a refusal asks for one login.
  const manifests = useRegistry(list.data && `manifests ${name}`, () => readListing(name));
  const [shown, setShown] = useState<string[]>([]);
  const [deleted, setDeleted] = useState<string>();
  const [revision, setRevision] = useState(0);
  const known = manifests.data?.listing;
  const summaries = useDetails(`${name} ${revision}`, shown, (tag, signal) => summary(name, tag, signal));
  const columns = useMemo<Column<string>[]>(() => [
    { id: "tag", title: t("Tag"), text: (tag) => tag, cell: (tag) => <><Link to={imagePath(name, tag)} title={tag}>{shortTag(tag)}</Link> <PurposeLabel of={taggedSubject(tag)?.purpose} /></> },
    { id: "digest", title: t("Digest"), cell: (tag) => <DigestCell name={name} tag={tag} /> },
    { id: "platforms", title: t("Platforms"), cell: (tag) => <PlatformsCell tag={tag} /> },
    { id: "size", title: t("Size"), cell: (tag) => <SizeCell tag={tag} listed={listedSize(known, tag)} />, ...(known && { order: (tag: string) => listedSize(known, tag) ?? 0 }) },
    { id: "created", title: t("Created"), cell: (tag) => <CreatedCell tag={tag} /> },
    { id: "delete", title: t("Actions"), cell: (tag) => <Button variant="link" isInline isDanger aria-label={t("Delete {{name}}", { name: tag })} onClick={() => setDeleted(tag)}>{t("Delete")}</Button> },
  ], [t, name, known]);
  const readAgain = async () => {
    // The list first: the registry has no details of tags that are deleted.
    await Promise.all([list.reload(), manifests.reload()]);
    setRevision((before) => before + 1);
  };
  return (
    <PageFrame title={name} parents={[{ path: "/registry", title: t("Registry") }]} actions={<Account />}>
      <RegistryLoaded resource={list}>
        {({ entries, isCut }) => (
          <Summaries.Provider value={summaries}>
            {isCut && <ListIsCut count={entries.length} />}
            <DataTable label={t("Tags")} columns={columns} rows={entries} rowId={(tag) => tag} onShown={setShown} startsDescending
              details={(tag) => <TagDetails name={name} tag={tag} />}
              empty={{
                title: t("No tag"),
                body: t("Manifests of this repository have digests only, or it is empty; garbage collection removes empty repositories."),
                action: <Button component={(props) => <Link {...props} to="/registry?tab=maintenance" />}>{t("Maintenance")}</Button>,
              }} />
          </Summaries.Provider>
        )}
      </RegistryLoaded>
      {list.data && <RegistryLoaded resource={manifests}>
        {({ listing: found, isCut }) => (
          <>
            {found && <UntaggedManifests name={name} listing={found} remove={setDeleted} />}
            {found && isCut && <ListIsCut count={found.entries.length} />}
            {(!found || isCut) && <OpenByDigest name={name} isListed={found !== undefined} />}
          </>
        )}
      </RegistryLoaded>}
      {deleted !== undefined && (
        <DeletionDialog name={name} reference={deleted} close={() => setDeleted(undefined)} done={readAgain} />
      )}
    </PageFrame>
  );
}

interface FoundListing {
  /** None where the registry has no list of manifests. */
  listing?: Listing;
  isCut: boolean;
}

async function readListing(name: string): Promise<FoundListing> {
  const list = await listedManifests(name);
  return list ? { listing: listing(list.entries), isCut: list.isCut } : { isCut: false };
}

function listedSize(found: Listing | undefined, tag: string): number | undefined {
  const entry = found?.tagged.get(tag);
  return entry && found?.sizes.get(entry.digest);
}

/** Details of a visible tag; undefined while they are read, and where they are refused. */
function useSummary(tag: string): Summary | undefined {
  const found = useContext(Summaries).get(tag);
  return found instanceof ApiError ? undefined : found;
}

function DigestCell({ name, tag }: { name: string; tag: string }) {
  const found = useContext(Summaries).get(tag);
  if (found instanceof ApiError) return <div className="atoll-muted"><Cause error={found} /></div>;
  if (found?.digest === undefined) return <>–</>;
  return <DigestLink name={name} digest={found.digest} />;
}

function PlatformsCell({ tag }: { tag: string }) {
  const { t } = useTranslation();
  const found = useSummary(tag);
  if (!found) return <>–</>;
  const { platforms, artifactType } = found;
  if (platforms.length === 0) return <>{artifactType ?? "–"}</>;
  return <>{platforms.slice(0, PLATFORMS).join(", ")}{platforms.length > PLATFORMS && ` ${t("and {{count}} more", { count: platforms.length - PLATFORMS })}`}</>;
}

function SizeCell({ tag, listed }: { tag: string; listed: number | undefined }) {
  const found = useSummary(tag);
  if (listed !== undefined) return <span className="atoll-nowrap">{bytes(listed)}</span>;
  return <span className="atoll-nowrap">{found?.isSizePartial && "> "}{bytes(found?.size)}</span>;
}

function CreatedCell({ tag }: { tag: string }) {
  return <span className="atoll-time"><Time at={useSummary(tag)?.created} /></span>;
}

function TagDetails({ name, tag }: { name: string; tag: string }) {
  const { t } = useTranslation();
  const services = useServices();
  const digest = useSummary(tag)?.digest;
  return (
    <>
      <div className="atoll-row">{t("Pull")}: <Copyable label={t("Command")}>{pullCommand(services?.registry, name, tag)}</Copyable></div>
      {digest !== undefined && <Referrers name={name} digest={digest} />}
    </>
  );
}

/** Where no request lists manifests without a tag, or not all of them, they are opened by their digests. */
function OpenByDigest({ name, isListed }: { name: string; isListed: boolean }) {
  const { t } = useTranslation();
  const navigate = useNavigate();
  const [digest, setDigest] = useState("");
  const isWrong = digest !== "" && !isDigest(digest.trim());
  return (
    <Card>
      <CardTitle component="h2">{isListed ? t("Manifests that are not listed") : t("Manifests without a tag")}</CardTitle>
      <CardBody>
        {!isListed && <Content component="p">{t("The protocol of registries lists tags only (GET /v2/NAME/tags/list). Signatures and other artifacts without a tag are in the details of the tag that they refer to; platforms are on the page of their index. Others are opened by their digest.")}</Content>}
        <Form onSubmit={(event) => {
          event.preventDefault();
          if (digest !== "" && !isWrong) navigate(imagePath(name, digest.trim()));
        }}>
          <FormGroup label={t("Digest")} fieldId="digest">
            <TextInput id="digest" value={digest} placeholder="sha256:…" onChange={(_, value) => setDigest(value)} autoComplete="off" {...(isWrong && { validated: "error" as const })} />
            {isWrong && <FormHelperText><HelperText><HelperTextItem variant="error">{t("A digest is sha256: and 64 hexadecimal digits.")}</HelperTextItem></HelperText></FormHelperText>}
          </FormGroup>
          <div><Button type="submit" variant="secondary" isDisabled={digest === "" || isWrong}>{t("Open")}</Button></div>
        </Form>
      </CardBody>
    </Card>
  );
}
