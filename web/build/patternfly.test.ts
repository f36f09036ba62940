import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { LABELS, labelled } from "./patternfly";

const PATTERNFLY = "node_modules/@patternfly";

test.each(LABELS)("the labels of $file are translated", ({ file, texts = {}, changes = [] }) => {
  const path = join(PATTERNFLY, file);
  const result = labelled(path, readFileSync(path, "utf8"));
  for (const text of Object.values(texts)) expect(result).toContain(`ourTexts.t(${JSON.stringify(text)})`);
  for (const [, after] of changes) expect(result).toContain(after);
});

test("a label that is not there is an error", () => {
  expect(() => labelled(`/${LABELS[0]?.file}`, "")).toThrow("adapt its labels");
});

test("members are read when they are used", () => {
  expect(labelled("/react-table/dist/esm/components/Table/ActionsColumn.js", 'a({ "aria-label": "Kebab toggle" })'))
    .toContain('a({ get "aria-label"() { return ourTexts.t("Actions"); } })');
});
