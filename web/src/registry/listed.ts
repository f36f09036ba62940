// The list of all manifests of a repository: sizes, and what needs a manifest, without reading each.

import { type ListedManifest } from "../api/registry";
import { artifactType, shortDigest } from "./manifest";

/** What a repository has, by the digests of its manifests. */
export interface Listing {
  entries: ListedManifest[];
  known: ReadonlyMap<string, ListedManifest>;
  /** Sizes of manifests with their content; those of an index with its manifests. Units: bytes. */
  sizes: ReadonlyMap<string, number>;
  /** The indexes that name a manifest. */
  indexes: ReadonlyMap<string, ListedManifest[]>;
  /** The manifests of tags. */
  tagged: ReadonlyMap<string, ListedManifest>;
}

const own = ({ size = 0, contentSize = 0 }: ListedManifest) => size + contentSize;

export function listing(entries: ListedManifest[]): Listing {
  const known = new Map(entries.map((entry) => [entry.digest, entry]));
  const indexes = new Map<string, ListedManifest[]>();
  const sizes = new Map<string, number>();
  const tagged = new Map<string, ListedManifest>();
  for (const entry of entries) {
    // An index may name a manifest twice, and manifests that are not here.
    const children = [...new Set(entry.manifests ?? [])];
    for (const child of children) indexes.set(child, [...(indexes.get(child) ?? []), entry]);
    const parts = children.flatMap((child) => known.get(child) ?? []);
    if (entry.mediaType !== undefined) sizes.set(entry.digest, parts.reduce((sum, part) => sum + own(part), own(entry)));
    for (const tag of entry.tags) tagged.set(tag, entry);
  }
  return { entries, known, sizes, indexes, tagged };
}

/** A manifest as people call it: its first tag, else the first digits of its digest. */
export function called({ digest, tags }: ListedManifest): string {
  return tags[0] ?? shortDigest(digest);
}

/** The type of an artifact that is no image: without one, lists have the type of the config. */
export function listedArtifactType(entry: ListedManifest): string | undefined {
  return artifactType({ config: { digest: "", ...(entry.artifactType !== undefined && { mediaType: entry.artifactType }) } });
}
