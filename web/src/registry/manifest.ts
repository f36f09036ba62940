// Manifests as pages show them: kinds, platforms, sizes. Everything in them was pushed by others, and may be malformed.

import type { Descriptor, Manifest, Platform } from "../api/registry";

const INDEXES = ["application/vnd.oci.image.index.v1+json", "application/vnd.docker.distribution.manifest.list.v2+json"];
const CONFIGS = ["application/vnd.oci.image.config.v1+json", "application/vnd.docker.container.image.v1+json"];
/** Source: image-spec, annotations. */
const CREATED = "org.opencontainers.image.created";
/** Media type of a config without content. Source: image-spec, guidance for an empty descriptor. */
const EMPTY = "application/vnd.oci.empty.v1+json";

/** An image's configuration. Source: image-spec, config. */
export interface ImageConfig {
  created?: string;
  architecture?: string;
  os?: string;
  variant?: string;
  config?: {
    Entrypoint?: string[] | null;
    Cmd?: string[] | null;
    Env?: string[] | null;
    User?: string;
    WorkingDir?: string;
    Labels?: Record<string, string> | null;
  } | null;
  history?: { created_by?: string; empty_layer?: boolean }[] | null;
}

const isText = (value: unknown): value is string => typeof value === "string";

/** The texts of a list that may be malformed. */
export function texts(list: unknown): string[] {
  return Array.isArray(list) ? list.filter(isText) : [];
}

/** The pairs of texts of a map that may be malformed, in the order of their names. */
export function pairs(map: unknown): [string, string][] {
  if (typeof map !== "object" || map === null) return [];
  return Object.entries(map).filter((pair): pair is [string, string] => isText(pair[1])).sort(([one], [other]) => one.localeCompare(other));
}

/** The descriptors of a list that may be malformed. */
export function descriptors(list: unknown): Descriptor[] {
  return Array.isArray(list) ? (list as unknown[]).filter((one): one is Descriptor => typeof one === "object" && one !== null && isText((one as Descriptor).digest)) : [];
}

/** `os/architecture[/variant]`; undefined for none, and for attestations, whose platform is `unknown`. */
export function platformName(platform: Platform | undefined): string | undefined {
  const parts = [platform?.os, platform?.architecture, platform?.variant].filter((part): part is string => isText(part) && part !== "");
  return parts.some((part) => part !== "unknown") ? parts.join("/") : undefined;
}

export function isIndex(mediaType: string, manifest: Manifest): boolean {
  return INDEXES.includes(mediaType) || (!manifest.config && Array.isArray(manifest.manifests));
}

export function isImageConfig(config: Descriptor | undefined): config is Descriptor {
  return config !== undefined && isText(config.digest) && CONFIGS.includes(config.mediaType ?? "");
}

/** The type of an artifact that is no image; undefined of images and indexes of them. */
export function artifactType(manifest: Manifest): string | undefined {
  if (isText(manifest.artifactType) && manifest.artifactType !== "") return manifest.artifactType;
  const config = manifest.config?.mediaType;
  return config && !CONFIGS.includes(config) && config !== EMPTY ? config : undefined;
}

/** Size of the blobs that manifests need, each counted once. Units: bytes. */
export function contentSize(manifests: Manifest[]): number {
  const sizes = new Map<string, number>();
  for (const { config, layers } of manifests) {
    for (const { digest, size } of descriptors([config, ...descriptors(layers)])) sizes.set(digest, typeof size === "number" ? size : 0);
  }
  return [...sizes.values()].reduce((sum, size) => sum + size, 0);
}

/** When the content was made, by its annotations. */
export function annotatedTime(manifest: Manifest): string | undefined {
  const time = manifest.annotations?.[CREATED];
  return isTime(time) ? time : undefined;
}

export function isTime(text: unknown): text is string {
  return isText(text) && !Number.isNaN(Date.parse(text));
}

/** Names of environment variables: values may be secrets. */
export function variables(config: ImageConfig): string[] {
  return texts(config.config?.Env).map((pair) => pair.split("=")[0] ?? "");
}

/** The commands that made the layers, lowest first; none when their number is another one. */
export function commands(config: ImageConfig | undefined, layers: number): string[] {
  const steps = Array.isArray(config?.history) ? config.history.filter((step) => step?.empty_layer !== true) : [];
  return steps.length === layers ? steps.map((step) => (isText(step?.created_by) ? step.created_by : "")) : [];
}

/** Purposes of artifacts that refer to images. */
export type Purpose = "signature" | "sbom" | "attestation";

const PURPOSES: [RegExp, Purpose][] = [
  [/in-toto|dsse|attestation|vnd\.dev\.cosign\.att/, "attestation"],
  [/spdx|cyclonedx|syft|sbom/, "sbom"],
  [/cosign|sigstore|notary|signature|simplesigning/, "signature"],
];
/** Endings of tags of cosign's scheme. */
const ENDINGS: Record<string, Purpose> = { sig: "signature", att: "attestation", sbom: "sbom" };
/** Source: sigstore, bundles as referrers. */
const BUNDLE_CONTENT = "dev.sigstore.bundle.content";

/** The purpose of an artifact by its type. */
export function purpose({ artifactType: type, mediaType, annotations }: Descriptor): Purpose | undefined {
  if (annotations?.[BUNDLE_CONTENT] === "dsse-envelope") return "attestation";
  const text = (isText(type) && type !== "" ? type : mediaType) ?? "";
  return PURPOSES.find(([pattern]) => pattern.test(text))?.[1];
}

/** The manifest that a tag of the referrers tag scheme is for, and its purpose where the tag says it. */
export function taggedSubject(tag: string): { digest: string; purpose?: Purpose } | undefined {
  const [, algorithm, hex, ending] = /^(sha256|sha512)-([0-9a-f]{64,128})(?:\.(\w+))?$/.exec(tag) ?? [];
  if (!algorithm || !hex) return undefined;
  const known = ending === undefined ? undefined : ENDINGS[ending];
  return { digest: `${algorithm}:${hex}`, ...(known && { purpose: known }) };
}

/** A tag, with the first digits only of a digest in it. */
export function shortTag(tag: string): string {
  return taggedSubject(tag) ? tag.replace(/^(\w+-[0-9a-f]{12})[0-9a-f]+/, "$1…") : tag;
}

/** The first digits of a digest, which people compare. */
export function shortDigest(digest: string): string {
  const [algorithm, hex = ""] = digest.split(":");
  return `${algorithm}:${hex.slice(0, 12)}`;
}
