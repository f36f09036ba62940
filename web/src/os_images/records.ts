// OS images on offer: records of the installer API.

import { architecture } from "../releases/records";

export const OS_IMAGES = "/os-images";
/** The file of a publication whose entries are bodies of OS_IMAGES. Source: crates/mirror/src/platform/boot_images.rs. */
export const ARCHIVED_OS_IMAGES = "boot-images/os-images.json";

/** The body that adds an OS image, or replaces the added one of its platform version and architecture. */
export interface OsImageParams {
  /** Version of the platform, as 4.18. */
  openshift_version: string;
  cpu_architecture: string;
  /** Version of the operating system. */
  version: string;
  /** Of the live ISO. */
  url: string;
  /** Of the live ISO, in hexadecimal; empty when unknown. */
  sha256: string;
}

export interface OsImage extends OsImageParams {
  /** Whether an administrator added it, and not the settings. */
  is_added: boolean;
  added_by: string;
  added_at: string;
  /** Whether it was found in the registry, and is in no list. */
  is_found?: boolean;
}

/** Architectures of OS images. Source: openshift/assisted-service, OS_IMAGES. */
export const ARCHITECTURES = ["x86_64", "arm64", "ppc64le", "s390x"];

type Key = Pick<OsImage, "openshift_version" | "cpu_architecture">;

export function osImageId({ openshift_version: version, cpu_architecture: name }: Key): string {
  return `${version} ${architecture(name)}`;
}

/** The OS image on offer of a platform version and architecture. */
export function onOffer(images: OsImage[], wanted: Key): OsImage | undefined {
  return images.find((image) => osImageId(image) === osImageId(wanted));
}

const PLATFORM_VERSION = /^\d+\.\d+(\.\d+(-[0-9A-Za-z.-]+)?)?$/;
const OS_VERSION = /^[\w.+-]+$/;
const ADDRESS = /^(?:(?:https?|oci):\/\/[^\s/@?#]+\/|file:\/\/\/)[^\s?#]+$/;
const SHA256 = /^(?:[0-9a-f]{64})?$/i;

/** Names of members that the service would refuse. Another reason to refuse an image is the service's. */
export function wrongMembers({ openshift_version: platform, version, url, sha256 }: OsImageParams): (keyof OsImageParams)[] {
  const checks: [keyof OsImageParams, boolean][] = [
    ["openshift_version", PLATFORM_VERSION.test(platform)], ["version", OS_VERSION.test(version)], ["url", ADDRESS.test(url)], ["sha256", SHA256.test(sha256)],
  ];
  return checks.filter(([, isRight]) => !isRight).map(([member]) => member);
}
