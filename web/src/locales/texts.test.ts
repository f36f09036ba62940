// Each language has every text of the pages, and no other.

import { readFileSync, readdirSync } from "node:fs";
import ts from "typescript";
import { describe, expect, test } from "vitest";
import { LABELS, VARIANTS } from "../../build/patternfly";
import { CAUSES } from "../api/client";
import { REGISTRY_CAUSES } from "../api/registry";
import { USES } from "../archives/result_files";
import { words } from "../components/format";
import { TOPICS } from "../pages/help_topics";
import { GROUPS } from "../pages/routes";

const SOURCES = "src";
const LOCALES = `${SOURCES}/locales`;
const CRATES = "../crates";

/** Sets of identifiers that pages show as words: file and enum, whose values are quoted. */
const ENUMS: [file: string, name: string][] = [
  ["model/src/cluster.rs", "ClusterStatus"],
  ["model/src/cluster.rs", "FinalizingStage"],
  ["model/src/host/values.rs", "HostStatus"],
  ["model/src/host/values.rs", "HostRole"],
  ["model/src/host/values.rs", "HostStage"],
  ["model/src/events.rs", "EventSeverity"],
  ["model/src/explain.rs", "ExplanationOutcome"],
  ["model/src/explain.rs", "CauseStatus"],
  ["model/src/versions.rs", "ReleaseSupportLevel"],
  ["model/src/operators.rs", "OperatorStatus"],
  ["doctor/src/report.rs", "CheckStatus"],
  ["doctor/src/report.rs", "CheckGroup"],
  ["model/src/bmc_boot.rs", "BmcBootState"],
  ["redfish/src/boot_step.rs", "BootStep"],
  ["model/src/jobs.rs", "JobState"],
  ["model/src/jobs.rs", "ArchiveStep"],
  ["mirror/src/progress.rs", "Phase"],
];
/** Statuses that the pages make themselves: of connections, nodes, replacements. */
const STATUSES = ["success", "warning", "failure", "missing", "stopped", "aborted", "completed"];
/** The first step of a boot by a BMC, which has no row in its table. */
const FIRST_STEP = "connect";

/** Members that are texts, of tables that pages are drawn from. */
const MEMBERS = ["title", "problem", "help"];
/** Arguments of `t` that are no literals: all of them members as above, texts of the tables below, or of the service. */
const VARIABLES = ["group", "title", "help", "page.title", "text", "problem", "result.problem", "error.message", "error.remedy", "progress.current_stage", "purpose", "when", "effect"];

function identifiers([file, name]: [string, string]): string[] {
  const source = readFileSync(`${CRATES}/${file}`, "utf8");
  const body = new RegExp(`^(?: *pub enum|impl) ${name} \\{\n([^}]*"[^}]*)\\}`, "m").exec(source)?.[1] ?? "";
  return [...body.matchAll(/"([^"]+)"/g)].map(([, text]) => text!);
}

/** Words of the tables of profiles and faults, which the pages of rehearsals show. */
function simulated(): string[] {
  const source = (name: string) => readFileSync(`${CRATES}/host-sim/src/${name}.rs`, "utf8");
  const purposes = [...source("profile").matchAll(/^ +purpose: "([^"]+)",$/gm)].map(([, text]) => text!);
  const faults = [...source("fault").matchAll(/row\(\s*HostFault::\w+,\s*"[^"]+",\s*"([^"]+)",\s*"([^"]+)",?\s*\)/g)];
  return [...purposes, ...faults.flatMap(([, when, effect]) => [when!, effect!])];
}

/** Titles of the steps of a replacement. */
function replacementSteps(): string[] {
  const source = readFileSync(`${CRATES}/replacement/src/step_id.rs`, "utf8");
  return [...source.matchAll(/^ +Self::\w+ => "([^"]+)",$/gm)].map(([, text]) => text!);
}

interface Found {
  literals: string[];
  variables: string[];
}

/** Texts of the sources: arguments of `t` and of `ApiError`, members of tables. */
function collect(): Found {
  const found: Found = { literals: [], variables: [] };
  const visit = (node: ts.Node): void => {
    if (ts.isCallExpression(node) && ts.isIdentifier(node.expression) && node.expression.text === "t") {
      const [argument] = node.arguments;
      if (argument && ts.isStringLiteralLike(argument)) found.literals.push(argument.text);
      else found.variables.push(argument?.getText() ?? "");
    } else if (ts.isNewExpression(node) && node.expression.getText() === "ApiError") {
      found.literals.push(...(node.arguments ?? []).flatMap((one) => (ts.isStringLiteralLike(one) ? [one.text] : [])));
    } else if (ts.isPropertyAssignment(node) && MEMBERS.includes(node.name.getText()) && ts.isStringLiteralLike(node.initializer)) {
      found.literals.push(node.initializer.text);
    }
    ts.forEachChild(node, visit);
  };
  for (const file of readdirSync(SOURCES, { recursive: true, encoding: "utf8" })) {
    if (!/\.tsx?$/.test(file) || /\.test\.tsx?$/.test(file)) continue;
    visit(ts.createSourceFile(file, readFileSync(`${SOURCES}/${file}`, "utf8"), ts.ScriptTarget.Latest, true));
  }
  return found;
}

/** Texts that the build gives to controls of the library and of PatternFly. */
const GIVEN = [
  ...readdirSync("build").flatMap((file) => [...readFileSync(`build/${file}`, "utf8").matchAll(/ourTexts\.t\("([^"]+)"[),]/g)].map(([, text]) => text!)),
  ...LABELS.flatMap(({ texts = {} }) => Object.values(texts)),
  ...Object.values(VARIANTS),
];

const FOUND = collect();
const TEXTS = [...new Set([
  ...FOUND.literals,
  ...GIVEN,
  ...GROUPS,
  ...simulated(),
  ...replacementSteps(),
  ...Object.values(TOPICS).flatMap(({ paragraphs }) => paragraphs),
  ...Object.values(USES).flatMap(({ title, text }) => [title, text]),
  ...Object.values(CAUSES).flat(),
  ...Object.values(REGISTRY_CAUSES).flat(),
  ...[...ENUMS.flatMap(identifiers), ...STATUSES, FIRST_STEP].map(words),
])].sort();

/** Places of values, in the order of the alphabet: languages differ in theirs. */
const places = (text: string) => (text.match(/\{\{[^}]+\}\}|\$\{[^}]+\}/g) ?? []).sort();

test("texts of the sources are found", () => {
  expect(FOUND.literals).toContain("Create a cluster");
  expect(simulated()).toContain("the clock is an hour slow");
  expect(replacementSteps()).toContain("Remove the old member from etcd");
  expect(ENUMS.filter((one) => identifiers(one).length < 3)).toEqual([]);
});

test("texts in variables are known", () => {
  expect(FOUND.variables.filter((text) => !VARIABLES.includes(text) && !/^(?:words|word|hostState)\(.+\)$/.test(text))).toEqual([]);
});

describe.each(["es", "fr", "ja", "ko", "zh"])("%s", (language) => {
  const texts = JSON.parse(readFileSync(`${LOCALES}/${language}.json`, "utf8")) as Record<string, string>;

  test("every text is there, and no other", () => {
    expect(TEXTS.filter((text) => !(text in texts))).toEqual([]);
    expect(Object.keys(texts).filter((text) => !TEXTS.includes(text))).toEqual([]);
  });

  test("no text is empty, values keep their places", () => {
    expect(Object.entries(texts).filter(([text, value]) => value.trim() === "" || places(text).join() !== places(value).join())).toEqual([]);
  });
});
