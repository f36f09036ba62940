// Requests to the installer API; failures are sentences with a remedy.

import { capitalized } from "./sentence";

export const BASE = "/api/assisted-install/v2";

/** Lists of hundreds of hosts take seconds; a service that hangs longer is unavailable. Units: milliseconds. */
const TIMEOUT = 30_000;

/** A failed request, as a person can read it. */
export class ApiError extends Error {
  constructor(
    /** What was wrong. */
    message: string,
    /** What to do about it. */
    readonly remedy: string,
    /** Status code; 0 without a response. */
    readonly status = 0,
    /** Values of places in both texts. */
    readonly values: Record<string, string | number> = {},
  ) {
    super(message);
  }

  /** Whether the service is starting or restarting: repeating the request helps. */
  get isUnavailable(): boolean {
    return this.status === 0 || this.status === 502 || this.status === 503 || this.status === 504;
  }
}

export const asApiError = (error: unknown): ApiError =>
  error instanceof ApiError ? error : new ApiError(String(error), "Report this defect.");

/** Causes of failures by the status of the response: texts of the locale files. */
export const CAUSES: Record<number | "other", [cause: string, remedy: string]> = {
  401: ["The service wants a login.", "Log in, or paste a new token."],
  403: ["You are not allowed to do this.", "Ask an administrator of the site for the role."],
  404: ["It does not exist any more.", "Return to the list."],
  409: ["The present state does not allow this.", "Wait until the state changes, or reset it."],
  429: ["Too many requests.", "Wait a moment; the page tries again."],
  500: ["The service failed.", "The log of the API server has the reason: podman logs api-server."],
  502: ["The service broke off.", "It may be restarting; the page tries again."],
  503: ["The service is not ready.", "It waits for its database; the page tries again."],
  504: ["The service did not respond in time.", "It is overloaded or its network is; the page tries again."],
  other: ["The service responded with {{status}}.", "Try again."],
};

/** The URL of `path` with a query. */
export function address(path: string, query: Record<string, string | number | boolean | undefined> = {}): string {
  const pairs = Object.entries(query).flatMap(([name, value]) =>
    value === undefined || value === "" ? [] : [[name, String(value)] as [string, string]],
  );
  const text = new URLSearchParams(pairs).toString();
  return `${BASE}${path}${text === "" ? "" : `?${text}`}`;
}

/** Difference between the clock of the service and this computer's: ages are right where clocks differ. Units: ms. */
let ahead = 0;

/** The service's time. Units: ms since 1970. */
export function serviceTime(): number {
  return Date.now() + ahead;
}

interface Options {
  method?: string;
  body?: unknown;
  signal?: AbortSignal;
}

/** Sends a request to the installer API; the body of the response, parsed, and its headers. Errors: `ApiError`. */
export async function request<T>(path: string, options: Options = {}): Promise<{ data: T; headers: Headers }> {
  const { text, headers } = await exchange(`${BASE}${path}`, options);
  return { data: parsed(text) as T, headers };
}

/** The JSON document at `url`. */
export async function document<T>(url: string): Promise<T> {
  return parsed((await exchange(url, {})).text) as T;
}

/** The file at `url`, as text. */
export async function file(url: string): Promise<string> {
  return (await exchange(url, {})).text;
}

/** The documents of a response to a GET of `url`: JSON lines, or one document. */
export async function documents<T>(url: string): Promise<T[]> {
  const { text, headers } = await exchange(url, {});
  if (!headers.get("content-type")?.includes("jsonl")) return parsed(text) as T[];
  return text.split("\n").flatMap((line) => (line === "" ? [] : [parsed(line) as T]));
}

async function exchange(url: string, { method = "GET", body, signal }: Options): Promise<{ text: string; headers: Headers }> {
  const headers: Record<string, string> = { accept: "application/json" };
  if (body !== undefined) headers["content-type"] = "application/json";
  const timeout = AbortSignal.timeout(TIMEOUT);
  const either = signal ? AbortSignal.any([timeout, signal]) : timeout;
  let response: Response;
  let text: string;
  try {
    response = await fetch(url, {
      method,
      headers,
      body: body === undefined ? null : JSON.stringify(body),
      signal: either,
    });
    text = await response.text();
  } catch (error) {
    if (signal?.aborted) throw error;
    const isSlow = error instanceof DOMException && error.name === "TimeoutError";
    throw isSlow
      ? failure(504, undefined)
      : new ApiError("This page cannot reach its server.", "Check the connection; the page tries again.");
  }
  if (url.startsWith(BASE)) noteSession(response.headers);
  const date = Date.parse(response.headers.get("date") ?? "");
  if (!Number.isNaN(date)) ahead = date - Date.now();
  if (!response.ok) {
    if (response.status === 401 && response.headers.has("atoll-session")) logIn();
    throw failure(response.status, parsed(text));
  }
  return { text, headers: response.headers };
}

/** The body of the response to a GET. */
export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  return (await request<T>(path, signal ? { signal } : {})).data;
}

/** Sends a change; the body of the response. */
export async function send<T>(method: string, path: string, body?: unknown): Promise<T> {
  return (await request<T>(path, { method, body })).data;
}

let hasSession = false;
const sessionListeners = new Set<() => void>();

/** Whether the person is logged in: the server adds the credentials itself, and scripts see only that there are some. */
export const session = {
  get: () => hasSession,
  subscribe(listener: () => void): () => void {
    sessionListeners.add(listener);
    return () => sessionListeners.delete(listener);
  },
};

function noteSession(headers: Headers): void {
  const isLoggedIn = headers.get("atoll-session") === "1";
  if (isLoggedIn === hasSession) return;
  hasSession = isLoggedIn;
  for (const listener of sessionListeners) listener();
}

function logIn(): void {
  location.assign(`/login?return_to=${encodeURIComponent(location.pathname + location.search)}`);
}

function failure(status: number, body: unknown): ApiError {
  const [cause, remedy] = CAUSES[status] ?? CAUSES.other;
  const { message, reason } = (body ?? {}) as { message?: unknown; reason?: unknown };
  const said = [message, reason].find((text) => typeof text === "string" && text.trim() !== "") as string | undefined;
  return new ApiError(said ? capitalized(said.trim()) : cause, remedy, status);
}

function parsed(text: string): unknown {
  if (text === "") return undefined;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
