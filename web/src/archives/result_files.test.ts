import { expect, test } from "vitest";
import { baseName, byUse, joined } from "./result_files";

const FILES = [
  "mapping.txt", "release-signatures/signature-sha256-01.json", "boot-images/os-images.json", "catalogSource-cs-index.yaml",
  "imageContentSourcePolicy.yaml", "install-config/imageContentSources.yaml", "updateService.yaml", "registries.conf",
];
const MIRROR_SETS = ["idms-oc-mirror.yaml", "itms-oc-mirror.yaml", "cc-index-v4-18.yaml"];

const used = (names: string[]) => Object.fromEntries(byUse(names.map((name) => ({ name, size: 1 }))).map(([use, files]) => [use, files.map(({ name }) => name)]));

test("a cluster takes either the policy or the mirror sets", () => {
  expect(used(FILES).apply).toEqual(["catalogSource-cs-index.yaml", "imageContentSourcePolicy.yaml", "release-signatures/signature-sha256-01.json"]);
  const all = used([...FILES, ...MIRROR_SETS]);
  expect(all.apply).toEqual(["catalogSource-cs-index.yaml", "idms-oc-mirror.yaml", "itms-oc-mirror.yaml", "release-signatures/signature-sha256-01.json"]);
  expect(all.older).toEqual(["imageContentSourcePolicy.yaml"]);
});

test("each other file has its use", () => {
  const { services, install, site, other } = used([...FILES, ...MIRROR_SETS, "new-kind.yaml"]);
  expect(services).toEqual(["cc-index-v4-18.yaml", "updateService.yaml"]);
  expect(install).toEqual(["install-config/imageContentSources.yaml"]);
  expect(site).toEqual(["boot-images/os-images.json", "registries.conf"]);
  expect(other).toEqual(["mapping.txt", "new-kind.yaml"]);
  expect(used([])).toEqual({});
});

test("documents become one file", () => {
  expect(joined(["---\na: 1\n---\nb: 2\n", '{"kind": "ConfigMap"}'])).toBe('---\na: 1\n---\nb: 2\n---\n{"kind": "ConfigMap"}\n');
  expect(baseName("install-config/imageContentSources.yaml")).toBe("imageContentSources.yaml");
  expect(baseName("mapping.txt")).toBe("mapping.txt");
});
