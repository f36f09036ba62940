import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import * as accessibility from "./accessibility";
import * as drafts from "./drafts";
import { patched } from "./patch";
import * as wizard from "./wizard";

const LIBRARY = "node_modules/@openshift-assisted/ui-lib/lib";
const ALL = [...accessibility.PATCHES, ...drafts.PATCHES, ...wizard.PATCHES];

test.each(ALL)("the patch of $file applies", (patch) => {
  const path = join(LIBRARY, patch.file);
  const result = patched([patch], path, readFileSync(path, "utf8"));
  for (const [, after] of patch.changes) expect(result).toContain(after);
});

test.each(Object.entries(wizard.MODULES))("%s is replaced by %s", (path, ours) => {
  expect([join(LIBRARY, `${path}.tsx`), join("src/wizard", ours)].filter((file) => !existsSync(file))).toEqual([]);
});

test("a patch that does not apply is an error", () => {
  expect(() => patched(ALL, `/lib/${ALL[0]?.file}`, "")).toThrow("adapt its patch");
});
