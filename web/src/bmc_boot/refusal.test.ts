import { expect, test } from "vitest";
import { ApiError } from "../api/client";
import type { BmcTarget } from "./records";
import { rowRefusal } from "./refusal";

const TARGETS = ["cp-0", "cp-1"].map((name): BmcTarget => ({ name, address: `redfish://${name}`, username: "root", password: "x", disable_certificate_verification: false }));

test.each([
  ["Bmcs[1].address: is that of bmcs[0], too: each host has its own", { row: 1, field: "address", reason: "is that of bmcs[0], too: each host has its own" }],
  ["The BMC of cp-0 is under way: wait for its end, or cancel it", { row: 0, field: "name", reason: "The BMC of cp-0 is under way: wait for its end, or cancel it" }],
  ["Bmcs[2].address: is empty", undefined],
  ["Bmcs: is empty: name at least one BMC", undefined],
  ["The BMC of other of another infra-env is under way: wait for its end, or cancel it", undefined],
])("%s", (message, row) => expect(rowRefusal(new ApiError(message, ""), TARGETS)).toEqual(row));
