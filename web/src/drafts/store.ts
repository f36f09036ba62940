// Drafts: values that a person typed and has not saved yet, in the session storage of the browser's tab. They survive a
// reload and a restart of the service, and end with the tab. Secrets are never among them.

const PREFIX = "atoll-draft:";
/** Longer drafts are not kept: browsers give all of a site 5 MB. Units: UTF-16 code units. */
const MAX_LENGTH = 1 << 20;

/** Members that are secrets by their names. */
const SECRET_MEMBER = /pull_?secret|password|passphrase|token/i;
/** Members whose texts may contain secrets. */
const CONFIDENTIAL_MEMBER = /proxy|manifest/i;
/** Secrets within texts: URLs with a password, private keys, logins of registries, manifests of kind Secret. */
const SECRET_TEXTS = [/:\/\/[^/\s@]*:[^/\s@]*@/, /PRIVATE KEY-----/, /["']?auths?["']?\s*:\s*[{"']/, /^\s*["']?kind["']?\s*:\s*["']?Secret\b/m];
/** Stands in a draft for a text that is not kept. */
const LEFT_OUT = "\u0000left out";

export type Values = Record<string, unknown>;

const same = (one: unknown, other: unknown) => JSON.stringify(one) === JSON.stringify(other);

/** Whether a form with these values may contain secrets, which it then has to say. */
export function mayHoldSecrets(values: object): boolean {
  return Object.keys(values).some((name) => SECRET_MEMBER.test(name) || CONFIDENTIAL_MEMBER.test(name));
}

/** The members of `values` that differ from `saved`. */
export function changesOf(values: object, saved: object): Values {
  const before = saved as Values;
  return Object.fromEntries(Object.entries(values).filter(([name, value]) => !same(value, before[name])));
}

function withoutSecrets(value: unknown, name = ""): unknown {
  if (SECRET_MEMBER.test(name)) return LEFT_OUT;
  if (typeof value === "string") return SECRET_TEXTS.some((secret) => secret.test(value)) ? LEFT_OUT : value;
  if (Array.isArray(value)) return value.map((item) => withoutSecrets(item));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([member, inner]) => [member, withoutSecrets(inner, member)]));
}

/** The value of a draft; what it does not keep is as saved. */
function completed(draft: unknown, saved: unknown): unknown {
  if (draft === LEFT_OUT) return saved ?? "";
  if (Array.isArray(draft)) {
    // Items have their saved counterparts as long as none was added or removed.
    const counterparts = Array.isArray(saved) && saved.length === draft.length ? saved : [];
    return draft.map((item, index) => completed(item, counterparts[index]));
  }
  if (typeof draft !== "object" || draft === null) return draft;
  const before = typeof saved === "object" && saved !== null ? (saved as Values) : {};
  return Object.fromEntries(Object.entries(draft).map(([name, inner]) => [name, completed(inner, before[name])]));
}

/** Keeps the changes as the draft of `form`; without any, there is none. */
export function keepDraft(form: string, changes: Values): void {
  const text = JSON.stringify(withoutSecrets(changes));
  if (Object.keys(changes).length === 0 || text.length > MAX_LENGTH) return dropDraft(form);
  try {
    sessionStorage.setItem(PREFIX + form, text);
  } catch {
    // The storage is full: an older draft would be restored as if it were the last one.
    dropDraft(form);
  }
}

/** The values of `form` with those of its draft; none without a draft that differs from what is saved. */
export function draftOver<T extends object>(form: string, saved: T): T | undefined {
  const text = sessionStorage.getItem(PREFIX + form);
  if (text === null) return undefined;
  try {
    const values = { ...saved, ...(completed(JSON.parse(text), saved) as Partial<T>) };
    if (!same(values, saved)) return values;
  } catch {
    // Not written by this page.
  }
  dropDraft(form);
  return undefined;
}

export function dropDraft(form: string): void {
  sessionStorage.removeItem(PREFIX + form);
}

/** Drops all drafts: they are those of the person who logs out. */
export function dropDrafts(): void {
  for (const key of Object.keys(sessionStorage)) if (key.startsWith(PREFIX)) sessionStorage.removeItem(key);
}
