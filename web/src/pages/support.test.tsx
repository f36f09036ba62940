import { expect, test } from "vitest";
import { withoutPrivate } from "./support";

test("members that may hold secrets are left out, at every depth", () => {
  const record = [{ name: "a", download_url: "x?token=1", http_proxy: "http://user:password@proxy", hosts: [{ id: "1", ssh_public_key: "k", ignition_config_overrides: "{}" }], count: 0, none: null }];
  expect(withoutPrivate(record)).toEqual([{ name: "a", hosts: [{ id: "1" }], count: 0, none: null }]);
});
