import { expect, test } from "vitest";
import type { ReplacementReport, ReplacementStep } from "./records";
import { markOf } from "./states";

const step = (members: Partial<ReplacementStep>): ReplacementStep => ({ step: "join-node", title: "", state: "planned", only_waits: false, undo: "stays", ...members });
const report = (members: Partial<ReplacementReport>) => ({ state: "unfinished", waiting: null, stopped: null, ...members }) as ReplacementReport;
const here = { step: "join-node", title: "", reason: "" };

test.each<[string, ReplacementStep, ReplacementReport | undefined]>([
  ["Planned", step({}), undefined],
  ["Waits for others", step({ only_waits: true }), undefined],
  ["Done already", step({ state: "done" }), undefined],
  ["Finished", step({ state: "finished" }), report({ waiting: { ...here, since: "" } })],
  ["In progress", step({ state: "started" }), report({})],
  ["In progress", step({ state: "started", step: "boot-node" }), report({ waiting: { ...here, since: "" } })],
  ["Waiting", step({ state: "started" }), report({ waiting: { ...here, since: "" } })],
  ["Stopped", step({ state: "started" }), report({ stopped: here })],
  ["Stopped", step({ state: "started" }), report({ state: "aborted" })],
  ["Planned", step({}), report({ state: "aborted", stopped: { ...here, step: "boot-node" } })],
])("%s", (title, one, of) => expect(markOf(one, of).title).toBe(title));
