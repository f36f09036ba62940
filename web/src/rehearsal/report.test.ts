import { expect, test } from "vitest";
import { mistakesOfResult, outcomeOf, reportText, verdictText } from "./report";

const t = ((text: string, values: Record<string, unknown> = {}) => text.replace(/\{\{(\w+)\}\}/g, (_, name: string) => String(values[name]))) as never;
const result = (verdict: string, good = false) => ({ verdict, good, findings: [] });

test.each([
  ["installed, no mistakes", true, "success", "Installed, no mistakes"],
  ["installed, 1 mistake", false, "warning", "Installed, mistakes: 1"],
  ["not installed (preparing-for-installation), 12 mistakes", false, "danger", "Not installed (Preparing for installation), mistakes: 12"],
  ["not played, 2 mistakes", false, "danger", "Not played, mistakes: 2"],
  ["1 of 3 clusters installed, 1 mistake", false, "danger", "1 of 3 clusters installed, 1 mistake"],
])("%s", (verdict, good, outcome, text) => {
  expect(outcomeOf(result(verdict, good))).toBe(outcome);
  expect(verdictText(t, result(verdict, good))).toBe(text);
});

test("one missing time source is one mistake, however many hosts it shows on", () => {
  const finding = (id: string, host: string) => ({ id, host, observed: "no time source", required: "", fix: "" });
  const findings = [finding("time-source-missing", ""), ...["m0", "m1", "m2"].map((host) => finding("ntp-synced", host))];
  const found = { verdict: "installed, 4 mistakes", good: false, findings };
  expect(mistakesOfResult(found).map(({ first, hosts }) => [first.id, hosts])).toEqual([["time-source-missing", []]]);
  expect(verdictText(t, found)).toBe("Installed, mistakes: 1");
});

test("the report has every part that there is", () => {
  const findings = [
    { id: "has-memory-for-role", host: "m0", observed: "4 GiB", required: "16 GiB", fix: "Add memory." },
    { id: "refused", host: "", observed: "no", required: "", fix: "" },
  ];
  expect(reportText({ verdict: "not played, 2 mistakes", good: false, findings })).toBe([
    "m0: has-memory-for-role", "  observed  4 GiB", "  required  16 GiB", "  fix       Add memory.",
    "cluster: refused", "  observed  no", "Verdict: not played, 2 mistakes.", "",
  ].join("\n"));
});
