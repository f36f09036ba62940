import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { TOPICS } from "../pages/help_topics";
import * as ours from "./help_links";

const MODULE = "node_modules/@openshift-assisted/ui-lib/lib/common/config/docs_links.ts";

test("every link of the library is ours", () => {
  const names = [...readFileSync(MODULE, "utf8").matchAll(/^export const (\w+)/gm)].map(([, name]) => name);
  expect(Object.keys(ours).sort()).toEqual(names.sort());
});

test("every link leads to a topic, or into the site", () => {
  const links = Object.values(ours).map((link) => (typeof link === "function" ? String(link("")) : link));
  const outside = links.filter((link) => {
    const topic = /^\/help#(.+)$/.exec(link)?.[1];
    return topic === undefined ? !/^(\/|\d+$)/.test(link) : !(topic in TOPICS);
  });
  expect(outside).toEqual([]);
});
