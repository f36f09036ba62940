import { expect, test } from "vitest";
import { hostStates, stateText } from "./states";

const t = ((text: string) => text) as never;

test("states are in the order of an installation", () => {
  const hosts = { "installed, Done": 1, error: 1, "installing-in-progress, Rebooting": 2, "installing-in-progress, Writing image to disk": 3, known: 1 };
  expect(hostStates(hosts).map(({ status, stage, count }) => `${count} ${status} ${stage}`)).toEqual([
    "1 known ", "3 installing-in-progress Writing image to disk", "2 installing-in-progress Rebooting", "1 installed Done", "1 error ",
  ]);
  expect(hostStates()).toEqual([]);
});

test.each([
  ["preparing-for-installation", "Preparing for installation"],
  ["installing, Installing", "Installing"],
  ["finalizing, Waiting for cluster operators", "Finalizing: Waiting for cluster operators"],
  ["", ""],
])("%s", (state, text) => expect(stateText(t, state)).toBe(text));
