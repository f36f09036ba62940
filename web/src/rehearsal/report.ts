// The report of a rehearsal as texts: for the page, and in the form of atoll rehearse for others.

import type { TFunction } from "react-i18next";
import { words } from "../components/format";
import { type Mistake, mistakesOf } from "../mistakes/mistakes";
import type { RehearsalFinding, RehearsalResult } from "./records";

export type Outcome = "success" | "warning" | "danger";

/** An installed cluster with mistakes is a warning. */
export function outcomeOf({ good, verdict }: RehearsalResult): Outcome {
  return good ? "success" : verdict.startsWith("installed") ? "warning" : "danger";
}

/** The mistakes behind the findings: those that one correction ends are one. */
export const mistakesOfResult = ({ findings }: RehearsalResult): Mistake<RehearsalFinding>[] => mistakesOf(findings);

/** The verdict in the viewer's language; a verdict of another form as it is. */
export function verdictText(t: TFunction, result: RehearsalResult): string {
  const { verdict, findings } = result;
  const [, played, status = "", mistakes = ""] = /^(installed|not installed|not played)(?: \((.*)\))?, (no|\d+) mistakes?$/.exec(verdict) ?? [];
  const merged = findings.length - mistakesOfResult(result).length;
  const count = mistakes === "no" ? 0 : Number(mistakes) - merged;
  if (played === undefined) return verdict;
  if (played === "installed") return count === 0 ? t("Installed, no mistakes") : t("Installed, mistakes: {{count}}", { count });
  return played === "not played" ? t("Not played, mistakes: {{count}}", { count }) : t("Not installed ({{status}}), mistakes: {{count}}", { status: t(words(status)), count });
}

/** The report as atoll rehearse prints it. */
export function reportText({ verdict, findings }: RehearsalResult): string {
  const lines = findings.flatMap(({ id, host, observed, required, fix }) => [
    `${host || "cluster"}: ${id}`,
    ...Object.entries({ observed, required, fix }).flatMap(([name, text]) => (text === "" ? [] : [`  ${name.padEnd(9)} ${text}`])),
  ]);
  return [...lines, `Verdict: ${verdict}.`, ""].join("\n");
}
