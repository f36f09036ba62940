import { expect, test } from "vitest";
import { type Channel, head, upgradePath } from "./records";

const channel = (entries: Channel["entries"]): Channel => ({ schema: "olm.channel", name: "stable", package: "a", entries });

test("the head is the entry that no other one replaces or skips", () => {
  const entries = [{ name: "a.1" }, { name: "a.2", replaces: "a.1" }, { name: "a.3", replaces: "a.2", skips: ["a.2.1"] }, { name: "a.2.1" }];
  expect(head(channel(entries))).toBe("a.3");
  expect(upgradePath(channel(entries)).map(({ name }) => name)).toEqual(["a.3", "a.2", "a.1", "a.2.1"]);
});

test("a circle ends", () => {
  const entries = [{ name: "a.1", replaces: "a.2" }, { name: "a.2", replaces: "a.1" }, { name: "a.3", replaces: "a.1" }];
  expect(upgradePath(channel(entries))).toHaveLength(3);
});
