// Rows that are pasted: lines `name,address,user,password`, or with tabs, as spreadsheets copy them.

import { type BmcTarget, MAX_BMCS } from "./records";

/** Longer texts are refused whole. Units: UTF-16 code units. */
export const MAX_PASTED = 1 << 20;

/** A line that is no row. It does not repeat the line, which may hold a password. */
export interface LineProblem {
  /** From 1 on. */
  line: number;
  problem: string;
  values?: Record<string, string | number>;
}

export interface Pasted {
  rows: BmcTarget[];
  problems: LineProblem[];
  /** The lines with problems, for correction. */
  rest: string;
}

const PROBLEMS = {
  count: { problem: "It has {{count}} values instead of 4: name, address, user, password." },
  quote: { problem: "A quoted value does not end: write quotes within values twice." },
  many: { problem: "More than 1000 rows: boot these hosts later." },
  large: { problem: "The text is larger than 1 MiB: paste it in parts." },
};

/** A value of a line with commas: quoted, or up to the next comma. */
const VALUE = /\s*"((?:[^"]|"")*)"\s*(?:,|$)|([^,]*)(?:,|$)/y;

/** The values of a line; undefined when a quoted one does not end. */
function values(line: string): string[] | undefined {
  // Spreadsheets quote nothing within tabs.
  if (line.includes("\t")) return line.split("\t");
  const found: string[] = [];
  VALUE.lastIndex = 0;
  for (;;) {
    const [whole = "", quoted, plain = ""] = VALUE.exec(line) ?? [];
    if (quoted === undefined && plain.trimStart().startsWith('"')) return undefined;
    found.push(quoted?.replaceAll('""', '"') ?? plain.trim());
    if (!whole.endsWith(",")) return found;
  }
}

const isHeading = ([name = "", address = ""]: string[]) => name.trim().toLowerCase() === "name" && address.trim().toLowerCase() === "address";

/** The rows of a text, at most `room`. */
export function parsePasted(text: string, room = MAX_BMCS): Pasted {
  if (text.length > MAX_PASTED) return { rows: [], problems: [{ line: 1, ...PROBLEMS.large }], rest: text };
  const rows: BmcTarget[] = [];
  const problems: LineProblem[] = [];
  const rest: string[] = [];
  let isFirst = true;
  for (const [index, line] of text.split(/\r\n|\n|\r/).entries()) {
    if (line.trim() === "") continue;
    const found = values(line);
    const isHeaded = isFirst && found !== undefined && isHeading(found);
    isFirst = false;
    if (isHeaded) continue;
    const [name = "", address = "", username = "", password = ""] = found ?? [];
    const problem = found === undefined ? PROBLEMS.quote
      : found.length !== 4 ? { ...PROBLEMS.count, values: { count: found.length } }
        : rows.length >= room ? PROBLEMS.many : undefined;
    if (problem === undefined) rows.push({ name: name.trim(), address: address.trim(), username: username.trim(), password, disable_certificate_verification: false });
    else {
      problems.push({ line: index + 1, ...problem });
      rest.push(line);
    }
  }
  return { rows, problems, rest: rest.join("\n") };
}
