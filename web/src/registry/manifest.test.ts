import { expect, test } from "vitest";
import type { Manifest } from "../api/registry";
import { type ImageConfig, artifactType, commands, contentSize, descriptors, isImageConfig, isIndex, pairs, platformName, purpose, shortDigest, shortTag, taggedSubject, variables } from "./manifest";

const HEX = "4fa2b2f2f96264a54c5ce07be9f6ba559b8d626e23f696ceca6efd8f73fee4fd";
const OCI = "application/vnd.oci.image.config.v1+json";

test.each([
  [{ os: "linux", architecture: "arm64", variant: "v8" }, "linux/arm64/v8"],
  [{ os: "linux", architecture: "amd64" }, "linux/amd64"],
  // Attestations of buildx.
  [{ os: "unknown", architecture: "unknown" }, undefined],
  [{}, undefined],
  [undefined, undefined],
])("the platform %j", (platform, name) => {
  expect(platformName(platform)).toBe(name);
});

test("each blob counts once", () => {
  const image = (layer: string): Manifest => ({ config: { digest: "c", size: 1 }, layers: [{ digest: "base", size: 10 }, { digest: layer, size: 100 }] });
  expect(contentSize([image("one"), image("other")])).toBe(211);
  expect(contentSize([{ layers: [{ digest: "x" }] }])).toBe(0);
});

test("kinds of manifests", () => {
  expect(isIndex("application/vnd.oci.image.index.v1+json", {})).toBe(true);
  expect(isIndex("", { manifests: [] })).toBe(true);
  expect(isIndex("application/vnd.oci.image.manifest.v1+json", { config: { digest: "c" } })).toBe(false);
  expect(artifactType({ config: { digest: "c", mediaType: OCI } })).toBeUndefined();
  expect(artifactType({ config: { digest: "c", mediaType: "application/vnd.cncf.helm.config.v1+json" } })).toBe("application/vnd.cncf.helm.config.v1+json");
  expect(artifactType({ artifactType: "application/spdx+json", config: { digest: "c", mediaType: "application/vnd.oci.empty.v1+json" } })).toBe("application/spdx+json");
  expect(isImageConfig({ digest: "c", mediaType: OCI })).toBe(true);
  expect(isImageConfig(undefined)).toBe(false);
});

test("values of the environment are not shown", () => {
  const config: ImageConfig = { config: { Env: ["PATH=/bin:/x=y", "TOKEN=secret", "BARE"] } };
  expect(variables(config)).toEqual(["PATH", "TOKEN", "BARE"]);
  expect(variables({ config: null })).toEqual([]);
});

test("commands are those of the layers", () => {
  const config: ImageConfig = { history: [{ created_by: "ADD" }, { created_by: "ENV", empty_layer: true }, { created_by: "RUN" }] };
  expect(commands(config, 2)).toEqual(["ADD", "RUN"]);
  expect(commands(config, 3)).toEqual([]);
  expect(commands(undefined, 1)).toEqual([]);
});

test.each([
  ["application/vnd.dev.cosign.artifact.sig.v1+json", "signature"],
  ["application/vnd.dev.sigstore.bundle.v0.3+json", "signature"],
  ["application/vnd.cncf.notary.signature", "signature"],
  ["application/spdx+json", "sbom"],
  ["application/vnd.cyclonedx+json", "sbom"],
  ["application/vnd.in-toto+json", "attestation"],
  ["application/vnd.example.other", undefined],
])("the purpose of %s", (type, name) => {
  expect(purpose({ digest: "d", artifactType: type })).toBe(name);
});

test("a bundle says what is in it", () => {
  const bundle = { digest: "d", artifactType: "application/vnd.dev.sigstore.bundle.v0.3+json", annotations: { "dev.sigstore.bundle.content": "dsse-envelope" } };
  expect(purpose(bundle)).toBe("attestation");
});

test("tags made of digests", () => {
  expect(taggedSubject(`sha256-${HEX}.sig`)).toEqual({ digest: `sha256:${HEX}`, purpose: "signature" });
  expect(taggedSubject(`sha256-${HEX}`)).toEqual({ digest: `sha256:${HEX}` });
  expect(taggedSubject("v1.2.0")).toBeUndefined();
  expect(shortTag(`sha256-${HEX}.sig`)).toBe("sha256-4fa2b2f2f962….sig");
  expect(shortTag("v1.2.0")).toBe("v1.2.0");
  expect(shortDigest(`sha256:${HEX}`)).toBe("sha256:4fa2b2f2f962");
});

test("malformed content is left out", () => {
  expect(descriptors([{ digest: "d" }, { digest: 1 }, null, "x"])).toEqual([{ digest: "d" }]);
  expect(descriptors({ length: 1 })).toEqual([]);
  expect(pairs({ b: "2", a: "1", c: 3, d: null })).toEqual([["a", "1"], ["b", "2"]]);
  expect(pairs(null)).toEqual([]);
  expect(variables({ config: { Env: "x" as never } })).toEqual([]);
  expect(contentSize([{ layers: 7 as never, config: null as never }])).toBe(0);
});
