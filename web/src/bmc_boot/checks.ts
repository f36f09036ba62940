// Checks of BMCs before they are sent: the bounds of the installer API, whose refusals are shown beside the same fields.

import { parseAddress } from "./bmc_address";
import { type BmcTarget, MAX_CREDENTIAL, MAX_NAME } from "./records";

export const FIELDS = ["name", "address", "username", "password"] as const;
export type Field = (typeof FIELDS)[number];

/** A problem of a field: a text of the locale files, and its values. */
export interface Problem {
  problem: string;
  values?: Record<string, string | number>;
  /** Nothing was typed yet: shown when the form is sent. */
  isMissing?: boolean;
}

/** Problems of a row by field. */
export type RowProblems = Partial<Record<Field, Problem>>;

const PROBLEMS = {
  noName: { problem: "The name is missing.", isMissing: true },
  noUser: { problem: "The user name is missing.", isMissing: true },
  noPassword: { problem: "The password is missing.", isMissing: true },
  longName: { problem: "The name has more than 253 characters." },
  name: { problem: "A name has lower-case letters, digits, dots and inner hyphens." },
  longCredential: { problem: "It has more than 4096 bytes." },
  control: { problem: "It has a line end or another control character: remove it." },
  twice: { problem: "Row {{row}} has the same: each host has its own." },
};

const NAME = /^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/;

function nameProblem(name: string): Problem | undefined {
  if (name === "") return PROBLEMS.noName;
  if (name.length > MAX_NAME) return PROBLEMS.longName;
  return name.split(".").every((label) => NAME.test(label)) ? undefined : PROBLEMS.name;
}

function credentialProblem(text: string, missing: Problem): Problem | undefined {
  if (text === "") return missing;
  if (new TextEncoder().encode(text).length > MAX_CREDENTIAL) return PROBLEMS.longCredential;
  return /\p{Cc}/u.test(text) ? PROBLEMS.control : undefined;
}

/** Whether a row has anything. */
export function isTyped(target: BmcTarget): boolean {
  return FIELDS.some((field) => target[field] !== "");
}

/** The problems of each row; none of rows without anything. */
export function problemsOf(targets: BmcTarget[]): RowProblems[] {
  const seen = new Map<string, number>();
  const repeated = (key: string, row: number): Problem | undefined => {
    const other = seen.get(key);
    if (other === undefined) seen.set(key, row);
    return other === undefined ? undefined : { ...PROBLEMS.twice, values: { row: other } };
  };
  return targets.map((target, index) => {
    if (!isTyped(target)) return {};
    const row = index + 1;
    const parsed = parseAddress(target.address);
    const problems: Record<Field, Problem | undefined> = {
      name: nameProblem(target.name) ?? repeated(`name ${target.name}`, row),
      address: "problem" in parsed ? { ...parsed, isMissing: target.address === "" } : repeated(`system ${parsed.system}`, row),
      username: credentialProblem(target.username, PROBLEMS.noUser),
      password: credentialProblem(target.password, PROBLEMS.noPassword),
    };
    return Object.fromEntries(Object.entries(problems).filter(([, problem]) => problem !== undefined));
  });
}

/** The first problem by row and field. */
export function firstProblem(problems: RowProblems[]): { row: number; field: Field } | undefined {
  const row = problems.findIndex((one) => Object.keys(one).length > 0);
  const field = FIELDS.find((one) => problems[row]?.[one]);
  return field === undefined ? undefined : { row, field };
}
