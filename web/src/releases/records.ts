// Release images on offer: records of the installer API.

import { byName } from "../components/format";

export const RELEASE_IMAGES = "/release-images";

export interface ReleaseImage {
  /** Minor version. */
  openshift_version: string;
  /** Full version. */
  version: string;
  cpu_architecture: string;
  /** Reference of the image. */
  url: string;
  default?: boolean;
  /** Whether an administrator added it, and not the settings. */
  is_added: boolean;
  added_by: string;
  added_at: string;
  /** Whether it was found in the registry, and is in no list. */
  is_found?: boolean;
  /** Components whose images the registry lacks: such a release cannot be installed. */
  missing?: string[];
}

/** The body that adds a release image, or replaces the added one of its version and architecture. */
export interface ReleaseImageParams {
  version: string;
  cpu_architecture: string;
  url: string;
  default: boolean;
}

/** Architectures of release images. Source: openshift/assisted-service, RELEASE_IMAGES. */
export const ARCHITECTURES = ["x86_64", "arm64", "ppc64le", "s390x", "multi"];

/** `aarch64` is `arm64` in records. */
export function architecture(text: string): string {
  return text === "aarch64" ? "arm64" : text;
}

type Key = Pick<ReleaseImage, "version" | "cpu_architecture">;

export function releaseId({ version, cpu_architecture: name }: Key): string {
  return `${version} ${architecture(name)}`;
}

/** The release image on offer of a version and architecture. */
export function onOffer(images: ReleaseImage[], wanted: Key): ReleaseImage | undefined {
  return images.find((image) => releaseId(image) === releaseId(wanted));
}

/** Whether new clusters start with it: a default among the added ones takes the place of that of the settings. */
export function isDefault(image: ReleaseImage, images: ReleaseImage[]): boolean {
  if (!image.default) return false;
  return image.is_added || !images.some((other) => other.is_added && other.default);
}

const VERSION = /^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$/;
// The host has a dot, a port, or is this one: engines look for other images in registries of their own choice.
const IMAGE = /^(?:[\w-]+(?:\.[\w-]+)+(?::\d+)?|[\w-]+:\d+|\[[0-9a-f:]+\](?::\d+)?|localhost)\/[a-z0-9][a-z0-9._/-]*(?::[\w][\w.-]*)?(?:@sha256:[0-9a-f]{64})?$/i;

export function isVersion(text: string): boolean {
  return VERSION.test(text);
}

/** Whether a text is an image with its registry. Another reason to refuse it is the service's. */
export function isImage(text: string): boolean {
  return IMAGE.test(text);
}

/** Order of versions: those before a final release precede it. */
export function byVersion(one: string, other: string): number {
  const [[number = "", ...pre], [otherNumber = "", ...otherPre]] = [parts(one), parts(other)];
  return byName(number, otherNumber) || Number(pre.length === 0) - Number(otherPre.length === 0) || byName(one, other);
}

function parts(version: string): string[] {
  return version.replace(/-multi$/, "").split("-");
}
