import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { PATCHES, patched } from "./accessibility";

const LIBRARY = "node_modules/@openshift-assisted/ui-lib/lib";

test.each(PATCHES)("the patch of $file applies", ({ file, changes }) => {
  const path = join(LIBRARY, file);
  const result = patched(path, readFileSync(path, "utf8"));
  for (const [, after] of changes) expect(result).toContain(after);
});

test("a patch that does not apply is an error", () => {
  expect(() => patched(`/lib/${PATCHES[0]?.file}`, "")).toThrow("adapt its patch");
});
