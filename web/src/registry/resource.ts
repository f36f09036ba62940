// Content of the registry in components: read again after a login or logout, details only of rows that are visible.

import { useEffect, useState, useSyncExternalStore } from "react";
import useSWR, { mutate } from "swr";
import { ApiError } from "../api/client";
import { type Login, isLoginAccepted, registryLogin } from "../api/registry";
import type { Resource } from "../api/resource";

const PREFIX = "registry ";
/** Requests for details of rows that are sent at a time. */
const CONCURRENCY = 4;
/** Units: milliseconds. */
const RETRY = 2_000;
/** Components that appear together share a response. It is not shown after a deletion or log-out. Units: milliseconds. */
const SHARED = 200;

const isOurs = (key: unknown) => typeof key === "string" && key.startsWith(PREFIX);

// Content is of the login that it was read with.
registryLogin.subscribe(() => void mutate(isOurs, undefined, { revalidate: true }));

export function useRegistryLogin(): Login | undefined {
  return useSyncExternalStore(registryLogin.subscribe, registryLogin.get);
}

/** The result of `read`, shared by its key; none while the key is undefined. `refresh` is the interval of further reads. */
export function useRegistry<T>(key: string | undefined, read: () => Promise<T>, refresh: (latest: T | undefined) => number = () => 0): Resource<T> {
  const { data, error, mutate: reload } = useSWR<T, ApiError>(key === undefined ? null : PREFIX + key, read, {
    refreshInterval: refresh,
    dedupingInterval: SHARED,
    revalidateOnFocus: false,
    revalidateOnReconnect: false,
    onErrorRetry: (failure, _key, _config, retry, { retryCount }) => {
      if (failure.isUnavailable) setTimeout(() => void retry({ retryCount }), Math.max(RETRY, Number(failure.values.seconds ?? 0) * 1000));
    },
  });
  return { data, error, reload };
}

/** Whether the registry has users or tokens; undefined until it is known. */
export function useHasLogins(): boolean | undefined {
  return useRegistry("logins", async () => !(await isLoginAccepted())).data;
}

/** Reads the registry's content again, after a change. */
export function reloadRegistry(): void {
  void mutate(isOurs);
}

/** Forgets the registry's content, before a page is left that shows what is deleted. */
export function forgetRegistry(): void {
  void mutate(isOurs, undefined, { revalidate: false });
}

export const asApiError = (error: unknown): ApiError =>
  error instanceof ApiError ? error : new ApiError(String(error), "Report this defect.");

/** Calls `load` for each of `ids`, a few at a time, until the signal ends it. */
export async function loadEach(ids: string[], load: (id: string) => Promise<void>, signal: AbortSignal): Promise<void> {
  const waiting = [...ids];
  const work = async () => {
    for (let id = waiting.shift(); id !== undefined && !signal.aborted; id = waiting.shift()) await load(id);
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, work));
}

export type Details<T> = ReadonlyMap<string, T | ApiError>;

/**
 * Details of those rows that are visible, by their ids: rows that no longer are do not delay others. `scope` names what
 * the ids belong to; details of another scope or login are not shown.
 */
export function useDetails<T>(scope: string, ids: string[], load: (id: string, signal: AbortSignal) => Promise<T>): Details<T> {
  const login = useRegistryLogin();
  const [known, setKnown] = useState<{ scope: string; login: Login | undefined; details: Details<T> }>({ scope, login, details: new Map() });
  const details: Details<T> = known.scope === scope && known.login === login ? known.details : new Map();
  const list = ids.join("\n");
  useEffect(() => {
    const stop = new AbortController();
    const isMissing = (detail: T | ApiError | undefined) => detail === undefined || (detail instanceof ApiError && detail.isUnavailable);
    const missing = list.split("\n").filter((id) => id !== "" && isMissing(details.get(id)));
    const set = (id: string, detail: T | ApiError) => {
      if (stop.signal.aborted) return;
      setKnown((before) => {
        const isSame = before.scope === scope && before.login === login;
        return { scope, login, details: new Map(isSame ? before.details : []).set(id, detail) };
      });
    };
    void loadEach(missing, (id) => load(id, stop.signal).then((detail) => set(id, detail), (error: unknown) => set(id, asApiError(error))), stop.signal);
    return () => stop.abort();
  }, [scope, login, list]);
  return details;
}
