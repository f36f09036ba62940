// The installer API, with failures as sentences.

export const BASE = "/api/assisted-install/v2";

// Units: milliseconds. A service that hangs is as good as away; lists of hundreds of hosts take seconds.
const PATIENCE = 30_000;

/** A failure that can be shown to a person. */
export class Failure extends Error {
  constructor(message, { status = 0, isAway = false } = {}) {
    super(message);
    this.status = status;
    /** The service is starting or restarting: what is on the page stays, and asking again helps. */
    this.isAway = isAway;
  }
}

const MEANINGS = {
  401: "The service wants a login for this.",
  403: "The service does not allow this.",
  404: "It does not exist (any more).",
  501: "This version of the service does not offer it yet.",
  502: "The service broke off; it may be restarting.",
  503: "The service is starting, or waits for its database.",
  504: "The service did not answer in time.",
};

// What the service's clock is ahead of this computer's: ages stay true where clocks differ.
let ahead = 0;

/** The service's time, in milliseconds. */
export function now() {
  return Date.now() + ahead;
}

/** Where the answer to `path` with `query` is found. */
export function address(path, query = {}) {
  const pairs = Object.entries(query).filter(([, value]) => value !== undefined && value !== "");
  const text = new URLSearchParams(pairs).toString();
  return BASE + path + (text ? `?${text}` : "");
}

/** The parsed answer and its headers. */
export async function ask(path, { query, signal, ...request } = {}) {
  let response;
  try {
    const patience = AbortSignal.timeout(PATIENCE);
    response = await fetch(address(path, query), { headers: { accept: "application/json" }, ...request,
      signal: signal ? AbortSignal.any([signal, patience]) : patience });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    if (error.name === "TimeoutError") throw new Failure(MEANINGS[504], { isAway: true });
    throw new Failure("This page cannot reach its own server.", { isAway: true });
  }
  // The server adds the credentials of a session; scripts see only that there is one.
  const session = response.headers.get("atoll-session");
  document.getElementById("account").hidden = session !== "1";
  const hasLogIn = session !== null;
  const date = Date.parse(response.headers.get("date"));
  if (!Number.isNaN(date)) ahead = date - Date.now();
  const text = await response.text();
  const body = parsed(text);
  if (response.ok) {
    if (body === undefined) throw new Failure("The service sent something that is not JSON.");
    return { body, headers: response.headers };
  }
  const status = response.status;
  if (status === 401 && hasLogIn) location.assign(`/login?return_to=${encodeURIComponent(location.pathname + location.search)}`);
  const reason = body?.message ?? body?.reason ?? MEANINGS[status] ?? `The service answered ${status}.`;
  throw new Failure(sentence(String(reason)), { status, isAway: [502, 503, 504].includes(status) });
}

/** The answer alone. */
export async function get(path, options) {
  return (await ask(path, options)).body;
}

/** Changes members of a record; the answer is the changed record. */
export async function change(path, members) {
  const headers = { accept: "application/json", "content-type": "application/json" };
  return (await ask(path, { method: "PATCH", headers, body: JSON.stringify(members) })).body;
}

/** JSON that travels as text inside a record; `fallback` when it is empty or broken. */
export function inner(text, fallback) {
  return (text && parsed(text)) ?? fallback;
}

function sentence(text) {
  const plain = text.trim();
  return plain.charAt(0).toUpperCase() + plain.slice(1);
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
