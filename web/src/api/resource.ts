// Data of the API in components: loaded once, shared, kept while the service is unavailable, read again on changes.

import { useEffect } from "react";
import useSWR, { type KeyedMutator, mutate, useSWRConfig } from "swr";
import { type ApiError, documents, get } from "./client";
import { onEvents } from "./events";
import { rested } from "./reading";

/** Changes without an event (heartbeats, percentages) appear after this time. Units: milliseconds. */
const REFRESH = 20_000;
const REFRESH_UNAVAILABLE = 2_000;
/** Components that appear together share a response; a page that is opened after a change does not. Units: milliseconds. */
const SHARED = 200;

export interface Resource<T> {
  data: T | undefined;
  error: ApiError | undefined;
  reload: KeyedMutator<T>;
}

function intervalOf<T>(known: { data?: T; error?: ApiError } | undefined, refresh: number | ((latest: T) => number)): number {
  const { data, error } = known ?? {};
  if (data !== undefined) return typeof refresh === "number" ? refresh : refresh(data);
  // A refusal stays for long: the service does not know the path, or the person may not read it.
  return error?.status === 403 || error?.status === 404 ? REFRESH : REFRESH_UNAVAILABLE;
}

/** The response to a GET of `path`; none while `path` is undefined. `refresh` may depend on the latest response. */
export function useResource<T>(path: string | undefined, refresh: number | ((latest: T) => number) = REFRESH): Resource<T> {
  const { cache } = useSWRConfig();
  const known = path === undefined ? undefined : (cache.get(path) as { data?: T; error?: ApiError } | undefined);
  // A number: another one starts another interval at once, and the same one continues through renderings.
  const interval = intervalOf(known, refresh);
  const { data, error, mutate: reload } = useSWR<T, ApiError>(path, (key: string) => get<T>(key), {
    refreshInterval: interval,
    dedupingInterval: SHARED,
    revalidateOnFocus: true,
    keepPreviousData: false,
    shouldRetryOnError: true,
    errorRetryInterval: REFRESH_UNAVAILABLE,
    onErrorRetry: (failure, _key, _config, retry, { retryCount }) => {
      if (failure.isUnavailable) setTimeout(() => void retry({ retryCount }), REFRESH_UNAVAILABLE);
    },
  });
  return { data, error, reload };
}

/** The documents at `url`, which change seldom: read once for a page. */
export function useDocuments<T>(url: string | undefined): Resource<T[]> {
  const { data, error, mutate: reload } = useSWR<T[], ApiError>(url, (key: string) => documents<T>(key), { revalidateOnFocus: false });
  return { data, error, reload };
}

/** Reads the resources of `paths` again when an event of `query` arrives. */
export function useLive(query: Record<string, string>, paths: (string | undefined)[]): void {
  const filter = new URLSearchParams(query).toString();
  const list = paths.filter((path) => path !== undefined).join("\n");
  useEffect(() => {
    const read = rested(() => Promise.all(list.split("\n").map((path) => mutate(path))));
    return onEvents(filter, read);
  }, [filter, list]);
}
