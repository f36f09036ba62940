// Client of the site's container registry, through the server of this page. Source: distribution-spec.

import { ApiError } from "./client";
import { capitalized } from "./sentence";

const BASE = "/services/registry/v2";
/** Units: milliseconds. */
const TIMEOUT = 30_000;
/** Entries of a page of a list: registries refuse more. */
const PAGE = 1000;
/** Entries of a list that are loaded at the most. */
export const LIST_LIMIT = 20_000;
/** The list of all manifests of a repository, which is not of the protocol. Source: crates/registry, manifest_list. */
const MANIFEST_LIST = "_atoll/manifests";
/** Referrers of a manifest that are loaded at the most. */
const REFERRERS_LIMIT = 1000;

const MANIFESTS = [
  "application/vnd.oci.image.index.v1+json",
  "application/vnd.oci.image.manifest.v1+json",
  "application/vnd.docker.distribution.manifest.list.v2+json",
  "application/vnd.docker.distribution.manifest.v2+json",
  "application/vnd.docker.distribution.manifest.v1+prettyjws",
  "*/*",
].join(", ");

/** Causes of refusals by their status: texts of the locale files. */
export const REGISTRY_CAUSES: Record<number | "deletion" | "other", [cause: string, remedy: string]> = {
  401: ["The registry wants a login.", "Log in with a user of the registry."],
  403: [
    "Your login has no right for this: {{action}} in {{repositories}}.",
    "A rule in the file of REGISTRY_AUTH_POLICY_PATH grants it to passwords, the scope {{scope}} to tokens.",
  ],
  404: ["The registry does not have this.", "It may have been deleted: return to the list."],
  405: ["The registry does not support this.", "Its settings or its storage do not allow it."],
  409: ["The registry's rules do not allow this.", "The rules are in the file of REGISTRY_STORAGE_POLICY_PATH."],
  429: ["Too many failed logins.", "Wait {{seconds}} seconds, then log in with the right password."],
  500: ["The registry failed.", "Its log has the reason: podman logs atoll_registry_1."],
  502: ["The registry cannot be reached.", "It may be restarting; the page tries again."],
  503: ["The registry is not ready.", "It may be starting; the page tries again."],
  504: ["The registry did not respond in time.", "It is overloaded, or its storage is; the page tries again."],
  deletion: ["Deleting is switched off in the registry.", "Set REGISTRY_STORAGE_DELETE_ENABLED=true in its settings, and restart it."],
  other: ["The registry responded with {{status}}.", "Try again."],
};

/** A login: kept in the memory of this tab only. */
export interface Login {
  /** Name of the user; none with a token. */
  user?: string;
  authorization: string;
}

let login: Login | undefined;
const loginListeners = new Set<() => void>();

/** The login that requests are sent with. */
export const registryLogin = {
  get: () => login,
  set(changed: Login | undefined): void {
    login = changed;
    for (const listener of loginListeners) listener();
  },
  subscribe(listener: () => void): () => void {
    loginListeners.add(listener);
    return () => loginListeners.delete(listener);
  },
};

/** The login of a user and a password. Source: RFC 7617, with UTF-8. */
export function passwordLogin(user: string, password: string): Login {
  const bytes = new TextEncoder().encode(`${user}:${password}`);
  return { user, authorization: `Basic ${btoa(String.fromCharCode(...bytes))}` };
}

export function tokenLogin(token: string): Login {
  return { authorization: `Bearer ${token.trim()}` };
}

/** The query of the page after this one: targets of links are those of the registry, not of this page's server. */
export function nextQuery(link: string | null): string | undefined {
  for (const [, target, parameters] of (link ?? "").matchAll(/<([^>]*)>([^,<]*)/g)) {
    if (/;\s*rel="?next"?(;|\s|$)/i.test(parameters ?? "")) return target?.split("?")[1]?.split("#")[0];
  }
  return undefined;
}

export interface Right {
  action: "pull" | "push" | "delete";
  /** Pattern of repositories. */
  repositories: string;
  /** Scope of a token. Source: distribution, "Token Scope Documentation". */
  scope: string;
}

/** The right that a request needs; `path` is below the base. */
export function neededRight(method: string, path: string): Right {
  const [resource = "", query] = path.split("?");
  const listed = resource === MANIFEST_LIST && new URLSearchParams(query).get("repository");
  if (listed) return { action: "pull", repositories: listed, scope: `repository:${listed}:pull` };
  if (resource.startsWith("_atoll/")) return { action: "delete", repositories: "**", scope: "registry:maintenance:*" };
  if (resource === "_catalog") return { action: "pull", repositories: "**", scope: "registry:catalog:*" };
  const repositories = resource.replace(/\/(manifests|blobs|referrers|tags)\/[^/]*$/, "");
  const action = method === "DELETE" ? "delete" : "pull";
  return { action, repositories, scope: `repository:${repositories}:${action}` };
}

/** The failure that a response reports. Bodies are those of the protocol, or of this page's server. */
export function refusal(method: string, path: string, status: number, body: unknown, retryAfter: string | null): ApiError {
  const { errors, message, reason } = (body ?? {}) as { errors?: { message?: unknown }[]; message?: unknown; reason?: unknown };
  const said = [errors?.[0]?.message, message, reason].find((text) => typeof text === "string" && text !== "") as string | undefined;
  const isDeletion = status === 405 && method === "DELETE" && !/read-only|copy of another/.test(said ?? "");
  const [cause, remedy] = REGISTRY_CAUSES[isDeletion ? "deletion" : status] ?? REGISTRY_CAUSES.other;
  const values = { ...neededRight(method, path), seconds: Number(retryAfter) || 1 };
  // Of these, our texts say more than those of registries; refusals of this page's server have no errors.
  const isOurs = isDeletion || said === undefined || (errors !== undefined && [401, 403, 404, 429].includes(status));
  return new ApiError(isOurs ? cause : capitalized(said), remedy, status, values);
}

interface Options {
  method?: string;
  accept?: string;
  signal?: AbortSignal;
  /** Units: milliseconds. None: as long as it takes. */
  timeout?: number | null;
  /** Instead of the present login. */
  as?: Login;
}

/** Sends a request below the protocol's base; the text of the response and its headers. Errors: `ApiError`. */
export async function registryRequest(path: string, options: Options = {}): Promise<{ text: string; headers: Headers }> {
  const { method = "GET", accept = "application/json", signal, timeout = TIMEOUT, as = login } = options;
  const headers: Record<string, string> = { accept };
  if (as) headers.authorization = as.authorization;
  const signals = [signal, timeout === null ? undefined : AbortSignal.timeout(timeout)].filter((one) => one !== undefined);
  const either = signals.length > 1 ? AbortSignal.any(signals) : signals[0];
  let response: Response;
  let text: string;
  try {
    // Redirects lead to storage that the page's security policy does not allow.
    response = await fetch(`${BASE}/${path}`, { method, headers, signal: either ?? null, cache: "no-store", redirect: "error" });
    text = await response.text();
  } catch (error) {
    if (signal?.aborted) throw error;
    if (error instanceof DOMException && error.name === "TimeoutError") throw refusal(method, path, 504, undefined, null);
    throw new ApiError("This page cannot reach its server.", "Check the connection; the page tries again.");
  }
  if (!response.ok) throw refusal(method, path, response.status, parsed(text), response.headers.get("retry-after"));
  return { text, headers: response.headers };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** The JSON document at `path`. Errors: also when it is none. */
export async function registryDocument<T>(path: string, options: Options = {}): Promise<T> {
  const document = parsed((await registryRequest(path, options)).text);
  if (document === undefined || document === null) throw new ApiError("The registry sent something that is not readable.", "Its log has the reason: podman logs atoll_registry_1.");
  return document as T;
}

/** Whether the registry lets in this login, or requests without one: it asks here for a login where it has users. */
export async function isLoginAccepted(as?: Login): Promise<boolean> {
  try {
    await registryRequest("", as ? { as } : {});
    return true;
  } catch (error) {
    if (error instanceof ApiError && error.status === 401) return false;
    throw error;
  }
}

export interface Listed<T> {
  entries: T[];
  /** There are more than are loaded. */
  isCut: boolean;
}

/** The entries of a list, page by page. */
async function pages<T>(path: string, entriesOf: (document: never) => T[] | null | undefined, limit: number, signal?: AbortSignal): Promise<Listed<T>> {
  const entries: T[] = [];
  const [resource, parameters] = path.split("?");
  let query: string | undefined = `n=${Math.min(PAGE, limit)}${parameters === undefined ? "" : `&${parameters}`}`;
  const asked = new Set<string>();
  while (query !== undefined && !asked.has(query)) {
    if (entries.length >= limit) return { entries: entries.slice(0, limit), isCut: true };
    asked.add(query);
    const { text, headers } = await registryRequest(`${resource}?${query}`, signal ? { signal } : {});
    entries.push(...(entriesOf((parsed(text) ?? {}) as never) ?? []));
    query = nextQuery(headers.get("link"));
  }
  return { entries: entries.slice(0, limit), isCut: entries.length > limit };
}

/** The repositories that the login may see. */
export function repositories(): Promise<Listed<string>> {
  return pages("_catalog", ({ repositories: names }: { repositories?: string[] | null }) => names, LIST_LIMIT);
}

/** The tags of a repository, in the order of the alphabet. */
export function tags(name: string, signal?: AbortSignal): Promise<Listed<string>> {
  return pages(`${name}/tags/list`, ({ tags: names }: { tags?: string[] | null }) => names, LIST_LIMIT, signal);
}

/** A manifest of a list. Source: crates/registry, manifest_list. */
export interface ListedManifest {
  digest: string;
  /** None of damaged manifests; they have no size either. */
  mediaType?: string;
  /** Units: bytes. Of the manifest itself. */
  size?: number;
  /** Of images, the media type of the config. */
  artifactType?: string;
  subject?: string;
  /** Units: bytes. Of config and layers. */
  contentSize?: number;
  /** Of an index. */
  manifests?: string[];
  tags: string[];
  pushedAt?: string;
}

/** All manifests of a repository, tagged or not; undefined where the registry has no such list. */
export async function listedManifests(name: string, signal?: AbortSignal): Promise<Listed<ListedManifest> | undefined> {
  try {
    const path = `${MANIFEST_LIST}?repository=${encodeURIComponent(name)}`;
    return await pages(path, ({ manifests }: { manifests?: ListedManifest[] | null }) => manifests, LIST_LIMIT, signal);
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return undefined;
    throw error;
  }
}

/** Up to `count` tags after `after`. */
export async function tagsAfter(name: string, after: string, count: number): Promise<string[]> {
  const query = new URLSearchParams({ n: String(count), last: after });
  const { tags: names } = await registryDocument<{ tags?: string[] | null }>(`${name}/tags/list?${query.toString()}`);
  return names ?? [];
}

/** A reference from one content to another. Source: image-spec, descriptor. */
export interface Descriptor {
  mediaType?: string;
  digest: string;
  /** Units: bytes. */
  size?: number;
  annotations?: Record<string, string>;
  artifactType?: string;
  platform?: Platform;
}

export interface Platform {
  os?: string;
  architecture?: string;
  variant?: string;
}

/** A manifest or index, of the OCI or of Docker. */
export interface Manifest {
  mediaType?: string;
  artifactType?: string;
  config?: Descriptor;
  layers?: Descriptor[];
  manifests?: Descriptor[];
  subject?: Descriptor;
  annotations?: Record<string, string> | null;
}

export interface StoredManifest {
  /** None where the registry does not name it. */
  digest?: string;
  mediaType: string;
  /** Units: bytes. Of the manifest itself. */
  size: number;
  manifest: Manifest;
}

/** A manifest by its tag or digest. */
export async function manifest(name: string, reference: string, signal?: AbortSignal): Promise<StoredManifest> {
  const { text, headers } = await registryRequest(`${name}/manifests/${reference}`, { accept: MANIFESTS, ...(signal && { signal }) });
  const document = (parsed(text) ?? {}) as Manifest;
  const digest = headers.get("docker-content-digest") ?? (reference.includes(":") ? reference : undefined);
  return {
    ...(digest !== undefined && { digest }),
    mediaType: document.mediaType ?? mediaTypeOf(headers),
    size: new TextEncoder().encode(text).length,
    manifest: document,
  };
}

/** Digest and media type of the manifest of a tag or digest; undefined where the repository has none. */
export async function resolve(name: string, reference: string, signal?: AbortSignal): Promise<{ digest: string; mediaType: string } | undefined> {
  try {
    const { headers } = await registryRequest(`${name}/manifests/${reference}`, { method: "HEAD", accept: MANIFESTS, ...(signal && { signal }) });
    return { digest: headers.get("docker-content-digest") ?? reference, mediaType: mediaTypeOf(headers) };
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return undefined;
    throw error;
  }
}

function mediaTypeOf(headers: Headers): string {
  return headers.get("content-type")?.split(";")[0]?.trim() ?? "";
}

/** A blob that is a JSON document. */
export function jsonBlob<T>(name: string, digest: string, signal?: AbortSignal): Promise<T> {
  return registryDocument<T>(`${name}/blobs/${digest}`, { accept: "*/*", ...(signal && { signal }) });
}

/** Signatures, bills of materials and others that refer to a manifest; none where the registry has no such list. */
export async function referrers(name: string, digest: string, signal?: AbortSignal): Promise<Listed<Descriptor>> {
  try {
    return await pages(`${name}/referrers/${digest}`, ({ manifests }: { manifests?: Descriptor[] | null }) => manifests, REFERRERS_LIMIT, signal);
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return { entries: [], isCut: false };
    throw error;
  }
}

/** Deletes a tag, or a manifest with all its tags. */
export async function remove(name: string, reference: string): Promise<void> {
  await registryRequest(`${name}/manifests/${reference}`, { method: "DELETE" });
}

/** Content that a collection removed, or would remove. Source: crates/registry, gc. */
export interface Garbage {
  /** None without rules of retention. */
  retention?: { is_dry: boolean; tags: number; manifests: number; repositories: { repository: string; tags: string[]; manifests: string[] }[] } | null;
  manifests: number;
  links: number;
  blobs: number;
  /** Units: bytes. */
  bytes: number;
  repositories: number;
}

/** Collects garbage, which may take minutes; with `isDry`, only counts it. It continues when the request is aborted. */
export async function collectGarbage(isDry: boolean, signal?: AbortSignal): Promise<Garbage> {
  const path = `_atoll/gc${isDry ? "?dryrun=true" : ""}`;
  const result = await registryDocument<Garbage | { errors: unknown[] }>(path, { method: "POST", timeout: null, ...(signal && { signal }) });
  // The status is sent before the collection ends.
  if ("errors" in result) throw refusal("POST", path, 500, result, null);
  return result;
}

/** The report of a scrub. Source: crates/registry, scrub. */
export interface ScrubReport {
  is_running: boolean;
  percent: number;
  started_at?: string | null;
  ended_at?: string | null;
  contents: number;
  /** Units: bytes. */
  bytes: number;
  damaged: number;
  missing: number;
  unread: number;
  findings: { digest: string; what: "damaged" | "missing"; repositories: string[] }[];
}

/** Progress of a comparison of folder and index. Source: crates/blob-store, adoption. */
export interface ReindexReport {
  is_finished: boolean;
  repositories: number;
  compared: number;
  adopted: number;
  failed: number;
}

/** Usage of the storage. Source: crates/registry, usage. */
export interface StorageUsage {
  /** None while the first count of the registry takes long. */
  repositories?: number;
  /** Blobs and manifests, each counted once. */
  blobs?: number;
  /** Units: bytes. Of these. */
  bytes?: number;
  counted_at?: string;
  /** Units: bytes. Of the file system; none of a bucket. */
  capacity?: number;
  /** Units: bytes. */
  free?: number;
}

export interface RegistryUsage {
  quotas: QuotaUsage[];
  /** None of older registries. */
  storage?: StorageUsage;
}

export interface QuotaUsage {
  /** Patterns of the repositories. */
  repositories: string;
  /** Units: bytes. */
  limit: number;
  /** Units: bytes. */
  used: number;
}
