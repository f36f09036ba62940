// Artifacts that refer to a manifest: signatures, bills of materials, attestations.

import { Label } from "@patternfly/react-core";
import { Table, Tbody, Td, Th, Thead, Tr } from "@patternfly/react-table";
import { useTranslation } from "react-i18next";
import { Link } from "react-router-dom-v5-compat";
import { type Descriptor, referrers, tagsAfter } from "../api/registry";
import { bytes } from "../components/format";
import { imagePath } from "./image_name";
import { RegistryLoaded } from "./log_in";
import { type Purpose, descriptors, pairs, purpose, shortDigest, shortTag, taggedSubject } from "./manifest";
import { useRegistry } from "./resource";

/** Referrers that are shown. */
const SHOWN = 100;
/** Annotations of each: its own page has all. */
const NOTES = 3;

/** A digest by its first digits, with the page of its manifest. */
export function DigestLink({ name, digest }: { name: string; digest: string }) {
  return <Link to={imagePath(name, digest)} title={digest} className="atoll-digest">{shortDigest(digest)}</Link>;
}

/** A manifest by its tag, if it has one. */
export function ManifestLink({ name, digest, tag }: { name: string; digest: string; tag: string | undefined }) {
  return tag === undefined ? <DigestLink name={name} digest={digest} /> : <Link to={imagePath(name, tag)} title={tag}>{shortTag(tag)}</Link>;
}

export function PurposeLabel({ of }: { of: Purpose | undefined }) {
  const { t } = useTranslation();
  const names: Record<Purpose, string> = { signature: t("Signature"), sbom: t("Bill of materials"), attestation: t("Attestation") };
  return of === undefined ? null : <Label isCompact color="blue">{names[of]}</Label>;
}

interface Found {
  entries: Descriptor[];
  /** Tags of the referrers tag scheme. */
  tags: string[];
}

/** Those of the referrers API, and of tools that keep them under tags made of the subject's digest. */
async function find(name: string, digest: string): Promise<Found> {
  const prefix = digest.replace(":", "-");
  // The list is in the order of the alphabet: the next tags after a shorter one begin with the digest.
  const [{ entries }, following] = await Promise.all([referrers(name, digest), tagsAfter(name, prefix.slice(0, -1), 20)]);
  return { entries: descriptors(entries), tags: following.filter((tag) => taggedSubject(tag)?.digest === digest) };
}

export function Referrers({ name, digest }: { name: string; digest: string }) {
  const { t } = useTranslation();
  const found = useRegistry(`referrers ${name} ${digest}`, () => find(name, digest));
  return (
    <RegistryLoaded resource={found}>
      {({ entries, tags }) => (
        <>
          {entries.length === 0 && tags.length === 0 && <p>{t("No signature, bill of materials or other artifact refers to it.")}</p>}
          {entries.length > 0 && <ReferrersTable name={name} entries={entries} />}
          {entries.length > SHOWN && <p>{t("{{count}} more are not shown", { count: entries.length - SHOWN })}</p>}
          {tags.length > 0 && (
            <p>
              {t("By tag:")}{" "}
              {tags.map((tag) => <span key={tag}><Link to={imagePath(name, tag)} className="atoll-mono">{tag}</Link> <PurposeLabel of={taggedSubject(tag)?.purpose} /> </span>)}
            </p>
          )}
        </>
      )}
    </RegistryLoaded>
  );
}

function ReferrersTable({ name, entries }: { name: string; entries: Descriptor[] }) {
  const { t } = useTranslation();
  return (
    <Table aria-label={t("Referrers")} variant="compact">
      <Thead><Tr><Th>{t("Artifact type")}</Th><Th>{t("Digest")}</Th><Th>{t("Size")}</Th><Th>{t("Annotations")}</Th></Tr></Thead>
      <Tbody>
        {entries.slice(0, SHOWN).map((one) => (
          <Tr key={one.digest}>
            <Td dataLabel={t("Artifact type")}><PurposeLabel of={purpose(one)} /> <span className="atoll-mono">{one.artifactType || one.mediaType}</span></Td>
            <Td dataLabel={t("Digest")}><DigestLink name={name} digest={one.digest} /></Td>
            <Td dataLabel={t("Size")}><span className="atoll-nowrap">{bytes(one.size)}</span></Td>
            <Td dataLabel={t("Annotations")}>{pairs(one.annotations).slice(0, NOTES).map(([key, value]) => <div key={key}>{key}: {value}</div>)}</Td>
          </Tr>
        ))}
      </Tbody>
    </Table>
  );
}
