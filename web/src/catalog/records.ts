// Documents of file-based catalogs, as the query API has them. Source: operator-framework, file-based catalogs.

export const CATALOGS = "/services/catalogs";

export interface CatalogEntry {
  name: string;
  source: string;
  is_ready: boolean;
}

export interface Package {
  schema: "olm.package";
  name: string;
  defaultChannel?: string;
  description?: string;
}

export interface ChannelEntry {
  name: string;
  replaces?: string;
  skips?: string[];
  skipRange?: string;
}

export interface Channel {
  schema: "olm.channel";
  name: string;
  package: string;
  entries?: ChannelEntry[];
}

export interface Bundle {
  schema: "olm.bundle";
  name: string;
  package: string;
  image?: string;
  relatedImages?: { name?: string; image: string }[];
  properties?: { type: string; value: unknown }[];
}

export type Document = Package | Channel | Bundle | { schema: "olm.deprecations" };

/** The URL of the documents of a catalog that match. */
export function metas(catalog: string, query: Record<string, string>): string {
  return `${CATALOGS}/${encodeURIComponent(catalog)}/api/v1/metas?${new URLSearchParams(query).toString()}`;
}

/** The version of a bundle. */
export function version(bundle: Bundle): string {
  const value = bundle.properties?.find(({ type }) => type === "olm.package")?.value as { version?: string } | undefined;
  return value?.version ?? "";
}

/** The head of a channel: the entry that no other one replaces or skips. */
export function head(channel: Channel): string | undefined {
  const entries = channel.entries ?? [];
  const passed = new Set(entries.flatMap(({ replaces, skips }) => [...(replaces ? [replaces] : []), ...(skips ?? [])]));
  return entries.find(({ name }) => !passed.has(name))?.name;
}

/** The entries of a channel from its head down, each with those that upgrade to it at once. */
export function upgradePath(channel: Channel): ChannelEntry[] {
  const byName = new Map((channel.entries ?? []).map((entry) => [entry.name, entry]));
  const path: ChannelEntry[] = [];
  let next = head(channel);
  // A circle would never end: each entry is taken once.
  while (next !== undefined && byName.has(next)) {
    const entry: ChannelEntry = byName.get(next)!;
    byName.delete(next);
    path.push(entry);
    next = entry.replaces;
  }
  return [...path, ...byName.values()];
}
