import { expect, test } from "vitest";
import { type ImageName, digestOf, imagePath, mirrorCandidates, parseImage, pullCommand } from "./image_name";

const DIGEST = `sha256:${"0123456789abcdef".repeat(4)}`;

test.each<[string, ImageName]>([
  ["team/app", { repository: "team/app" }],
  ["team/app:v1.2.0", { repository: "team/app", reference: "v1.2.0" }],
  [`a-b/c__d/e.f@${DIGEST}`, { repository: "a-b/c__d/e.f", reference: DIGEST }],
])("%s is an image", (text, image) => {
  expect(parseImage(text)).toEqual(image);
  expect(imagePath(image.repository, image.reference)).toBe(`/registry/${text}`);
});

test.each(["", "Team", "a//b", "a/../b", "../api", "a?b", "a:", "a:b/c", "a@latest", "a@sha256:12", `a:${DIGEST}`, "a%2fb", `${"a".repeat(256)}`])("%s is none", (text) => {
  expect(parseImage(text)).toBeUndefined();
});

test("commands name the registry's host", () => {
  expect(pullCommand("https://registry.example.org:5000/ui/", "a", "v1")).toBe("podman pull registry.example.org:5000/a:v1");
  expect(pullCommand("http://localhost:5000/", "a", DIGEST)).toBe(`podman pull --tls-verify=false localhost:5000/a@${DIGEST}`);
  expect(pullCommand(null, "a", "v1")).toBe("podman pull REGISTRY/a:v1");
});

test("a mirrored image may be below any namespace, the nearest first", () => {
  const names = ["ns/deep/group/name", "group/name", "ns/group/name", "ns/group/name-other", "ns/mygroup/name", "ns/group-name", "other"];
  expect(mirrorCandidates(names, `quay.io/group/name@${DIGEST}`)).toEqual(["group/name", "ns/group/name", "ns/deep/group/name", "ns/group-name"]);
  expect(mirrorCandidates(names, "quay.io/group/name:v1")).toHaveLength(4);
  expect(mirrorCandidates(names, "quay.io")).toEqual([]);
});

test("few repositories are asked", () => {
  const names = Array.from({ length: 100 }, (_, index) => `ns-${index}/group/name`);
  expect(mirrorCandidates(names, "quay.io/group/name")).toHaveLength(5);
});

test("digests of references", () => {
  expect(digestOf(`quay.io/a/b@${DIGEST}`)).toBe(DIGEST);
  expect(digestOf("quay.io/a/b:v1")).toBeUndefined();
  expect(digestOf("quay.io/a/b@sha256:../x")).toBeUndefined();
});
