import { expect, test } from "vitest";
import { EMPTY, type Plan, problems, toYaml, withPackage } from "./plan";

const PLAN: Plan = {
  architectures: ["amd64", "arm64"],
  channels: [{ name: "stable-4.18", minVersion: "4.18.1", maxVersion: "4.18.30" }],
  hasGraph: true,
  catalogs: [{ catalog: "registry.example.org/index:v4.18", packages: [{ name: "a", channel: "stable", minVersion: "1.0.0" }, { name: "b", channel: "", minVersion: "" }] }],
  additionalImages: ["registry.example.org/tool@sha256:00"],
};

test("a plan is an image-set configuration", () => {
  expect(problems(PLAN)).toEqual([]);
  expect(toYaml(PLAN)).toMatchInlineSnapshot(`
    "apiVersion: mirror.openshift.io/v2alpha1
    kind: ImageSetConfiguration
    mirror:
      platform:
        graph: true
        architectures: [amd64, arm64]
        channels:
          - name: stable-4.18
            minVersion: "4.18.1"
            maxVersion: "4.18.30"
      operators:
        - catalog: registry.example.org/index:v4.18
          packages:
            - name: a
              channels:
                - name: stable
                  minVersion: "1.0.0"
            - name: b
      additionalImages:
        - name: registry.example.org/tool@sha256:00
    "
  `);
  expect(toYaml(EMPTY)).toContain("mirror: {}");
});

test("texts that YAML reads as other types are quoted", () => {
  const plan = withPackage(EMPTY, "x/y:1", { name: "yes", channel: "4.18", minVersion: "" });
  expect(toYaml(plan)).toContain('- name: "yes"');
  expect(toYaml(plan)).toContain('- name: "4.18"');
});

test("problems name their place", () => {
  const wrong = { ...PLAN, channels: [{ name: "stable", minVersion: "4.18", maxVersion: "" }], additionalImages: ["a b"] };
  expect(problems(wrong)).toHaveLength(3);
});

test("a package is added once", () => {
  const once = withPackage(PLAN, "registry.example.org/index:v4.18", { name: "a", channel: "candidate", minVersion: "" });
  expect(once.catalogs[0]?.packages.map(({ channel }) => channel)).toEqual(["", "candidate"]);
});
