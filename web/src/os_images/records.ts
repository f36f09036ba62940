// OS images on offer: records of the installer API.

import { architecture } from "../releases/records";

export const OS_IMAGES = "/os-images";

export interface OsImage {
  /** Version of the platform, as 4.18. */
  openshift_version: string;
  cpu_architecture: string;
  /** Version of the operating system. */
  version: string;
  /** Of the live ISO. */
  url: string;
  /** Whether it was found in the registry, and is in no list. */
  is_found?: boolean;
}

export function osImageId({ openshift_version: version, cpu_architecture: name }: OsImage): string {
  return `${version} ${architecture(name)}`;
}
