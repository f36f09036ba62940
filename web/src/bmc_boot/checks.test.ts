import { expect, test } from "vitest";
import { firstProblem, problemsOf } from "./checks";
import type { BmcTarget } from "./records";

const target = (members: Partial<BmcTarget> = {}): BmcTarget => ({
  name: "cp-0", address: "redfish://10.0.0.1", username: "root", password: "s3cret", disable_certificate_verification: false, ...members,
});
const fields = (...targets: BmcTarget[]) => problemsOf(targets).map((problems) => Object.keys(problems));

test("a whole row has no problem, and an empty one neither", () => {
  expect(fields(target(), target({ name: "", address: "", username: "", password: "" }))).toEqual([[], []]);
});

test("each field is checked", () => {
  expect(fields(target({ name: "Cp_0" }), target({ name: "b", address: "ipmi://10.0.0.2" }))).toEqual([["name"], ["address"]]);
  expect(fields(target({ name: "a.-b", username: "root\n", password: "" }))).toEqual([["name", "username", "password"]]);
});

test("bounds are those of the service", () => {
  const dotted = `${"a".repeat(63)}.${"b.".repeat(94)}c`;
  expect(dotted).toHaveLength(253);
  const [longest, longer] = ["s".repeat(4096), "ä".repeat(2049)];
  expect(fields(target({ name: dotted, username: longest, password: longest }))).toEqual([[]]);
  expect(fields(target({ name: `${dotted}c`, username: longer, password: longer }))).toEqual([["name", "username", "password"]]);
});

test("a name and a system are listed once", () => {
  const problems = problemsOf([target(), target({ address: "redfish://10.0.0.2" }), target({ name: "cp-2", address: "https://10.0.0.1:443/redfish/v1/" })]);
  expect(problems.map(({ name, address }) => [name?.values, address?.values])).toEqual([[undefined, undefined], [{ row: 1 }, undefined], [undefined, { row: 1 }]]);
});

test("a missing value is a problem of its own kind", () => {
  const [problems] = problemsOf([target({ address: "", password: "" })]);
  expect([problems?.address?.isMissing, problems?.password?.isMissing]).toEqual([true, true]);
});

test("the first problem is found by row, then by field", () => {
  expect(firstProblem(problemsOf([target(), target({ name: "b", address: "redfish://b", password: "\u0000", username: "" })]))).toEqual({ row: 1, field: "username" });
  expect(firstProblem(problemsOf([target()]))).toBeUndefined();
});
