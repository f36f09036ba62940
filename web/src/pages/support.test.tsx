import { expect, test } from "vitest";
import { withoutPrivate } from "./support";

test("links and keys are left out, at every depth", () => {
  const record = [{ name: "a", download_url: "x?token=1", hosts: [{ id: "1", ssh_public_key: "k" }], count: 0, none: null }];
  expect(withoutPrivate(record)).toEqual([{ name: "a", hosts: [{ id: "1" }], count: 0, none: null }]);
});
