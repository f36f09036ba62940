// One line about a manifest: kind, platforms, size and age, with as few requests as they need.

import { type Manifest, type StoredManifest, jsonBlob, manifest } from "../api/registry";
import { type ImageConfig, annotatedTime, artifactType, contentSize, descriptors, isImageConfig, isIndex, isTime, platformName } from "./manifest";

/** Manifests of an index that are read for its size: images are made for some ten platforms. */
const CHILDREN = 12;
/** Larger configurations are not read for a row of a table. Units: bytes. */
const CONFIG_LIMIT = 256 * 1024;

export interface Summary {
  digest?: string;
  isIndex: boolean;
  /** Type of an artifact that is no image. */
  artifactType?: string;
  platforms: string[];
  /** Units: bytes. Of the content, each blob counted once. */
  size: number;
  /** The index has more manifests than were read for the size. */
  isSizePartial: boolean;
  created?: string;
}

/** The configuration of an image, if it is a small one that can be read. */
async function config(name: string, image: Manifest, signal: AbortSignal): Promise<ImageConfig | undefined> {
  if (!isImageConfig(image.config) || (image.config.size ?? 0) > CONFIG_LIMIT) return undefined;
  return jsonBlob<ImageConfig>(name, image.config.digest, signal).catch(() => undefined);
}

export async function summary(name: string, reference: string, signal: AbortSignal): Promise<Summary> {
  const stored = await manifest(name, reference, signal);
  const { digest, mediaType, manifest: document } = stored;
  const type = artifactType(document);
  const found: Summary = {
    ...(digest !== undefined && { digest }),
    ...(type !== undefined && { artifactType: type }),
    isIndex: isIndex(mediaType, document),
    platforms: [],
    size: contentSize([document]),
    isSizePartial: false,
  };
  const created = found.isIndex ? await addChildren(found, name, stored, signal) : await addConfig(found, name, document, signal);
  const time = created ?? annotatedTime(document);
  return { ...found, ...(time !== undefined && { created: time }) };
}

async function addConfig(found: Summary, name: string, document: Manifest, signal: AbortSignal): Promise<string | undefined> {
  const image = await config(name, document, signal);
  const platform = platformName(image);
  if (platform !== undefined) found.platforms = [platform];
  return isTime(image?.created) ? image.created : undefined;
}

async function addChildren(found: Summary, name: string, { manifest: index }: StoredManifest, signal: AbortSignal): Promise<string | undefined> {
  const entries = descriptors(index.manifests);
  found.platforms = entries.flatMap(({ platform }) => platformName(platform) ?? []);
  found.isSizePartial = entries.length > CHILDREN;
  const children: Manifest[] = [];
  for (const { digest } of entries.slice(0, CHILDREN)) {
    // Indexes may have entries that were not mirrored.
    const child = await manifest(name, digest, signal).catch(() => undefined);
    if (child) children.push(child.manifest);
  }
  found.size = contentSize(children);
  const [first] = children;
  const image = annotatedTime(index) === undefined && first ? await config(name, first, signal) : undefined;
  return isTime(image?.created) ? image.created : undefined;
}
