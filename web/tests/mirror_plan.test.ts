// The plans of the editor are configurations that the mirroring tool takes.

import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { EMPTY, type Plan, toYaml, withPackage } from "../src/mirror/plan";

const ATOLL = join(process.env.ATOLL_PROGRAMS ?? "../target/debug", "atoll");

const RELEASES: Plan = { ...EMPTY, architectures: ["amd64", "multi"], channels: [{ name: "stable-4.18", minVersion: "4.18.1", maxVersion: "4.18.30" }] };
const OPERATORS = withPackage(withPackage(RELEASES, "registry.example.org/index:v4.18", { name: "a", channel: "stable", minVersion: "1.0.0" }), "registry.example.org/index:v4.18", { name: "no", channel: "", minVersion: "" });

test.each([
  ["releases", RELEASES],
  ["operators", OPERATORS],
  ["images", { ...EMPTY, additionalImages: ["registry.example.org/tool:v1"] }],
])("a plan of %s is valid", (_, plan) => {
  const folder = mkdtempSync(join(tmpdir(), "atoll-plan-"));
  const file = join(folder, "imageset-config.yaml");
  writeFileSync(file, toYaml(plan));
  const { status, stdout, stderr } = spawnSync(ATOLL, ["mirror", "check", file], { encoding: "utf8" });
  rmSync(folder, { recursive: true });
  expect(`${stdout}${stderr}`).toContain("valid; mirrors:");
  expect(status).toBe(0);
});
