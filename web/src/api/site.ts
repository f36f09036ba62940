// The site: its services beside the installer API, and the session of the person.

import useSWR from "swr";
import { type ApiError, document } from "./client";

/** Services that the site has; the URLs are those for browsers. */
export interface SiteServices {
  catalogs: boolean;
  registry: string | null;
  /** Whether the server forwards requests to the registry; older servers do not name it. */
  registry_api?: boolean;
  /** Whether the registry's certificate can be downloaded. */
  registry_ca: boolean;
  downloads: string | null;
}

/** The services of the site; undefined until they are known. */
export function useServices(): SiteServices | undefined {
  return useSWR<SiteServices, ApiError>("/services", document, { revalidateOnFocus: false }).data;
}
