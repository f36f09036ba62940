// Release images on offer: records of the installer API.

export const RELEASE_IMAGES = "/release-images";

export interface ReleaseImage {
  /** Minor version. */
  openshift_version: string;
  /** Full version. */
  version: string;
  cpu_architecture: string;
  /** Reference of the image. */
  url: string;
  /** Whether new clusters start with it. */
  default?: boolean;
  /** Whether it was found in the registry, and is in no list. */
  is_found?: boolean;
  /** Whether the registry has a signature of it. */
  is_signed?: boolean;
  /** Components whose images the registry lacks: such a release cannot be installed. */
  missing?: string[];
}

/** `aarch64` is `arm64` in records. */
export function architecture(text: string): string {
  return text === "aarch64" ? "arm64" : text;
}

/** As payloads spell it. */
export function payloadArchitecture(text: string): string {
  return text === "arm64" ? "aarch64" : text;
}

export function releaseId({ version, cpu_architecture: name }: ReleaseImage): string {
  return `${version} ${architecture(name)}`;
}
