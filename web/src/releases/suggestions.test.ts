import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { type ReleaseImage, byVersion, isDefault, isImage, isVersion } from "./records";
import { hostOf, mirroredReleases, releaseOf, suggestions } from "./suggestions";

const REPOSITORY = "mirror/openshift/release-images";

function image(members: Partial<ReleaseImage>): ReleaseImage {
  return {
    openshift_version: "4.18", version: "4.18.9", cpu_architecture: "x86_64", url: `registry.example.org:5000/${REPOSITORY}:4.18.9-x86_64`,
    is_added: true, added_by: "admin", added_at: "2026-01-02T03:04:05Z", ...members,
  };
}

let responses: Record<string, unknown>;

beforeEach(() => {
  vi.stubGlobal("fetch", async (url: string) => {
    const body = responses[url.replace("/services/registry/v2/", "")];
    return new Response(JSON.stringify(body ?? {}), { status: body === undefined ? 404 : 200 });
  });
});
afterEach(() => vi.unstubAllGlobals());

test.each([
  ["4.18.9-x86_64", "4.18.9", "x86_64"],
  ["4.18.9-aarch64", "4.18.9", "arm64"],
  ["4.19.0-rc.1-ppc64le", "4.19.0-rc.1", "ppc64le"],
  ["4.18.9-multi", "4.18.9-multi", "multi"],
])("the release of tag %s", (tag, version, architecture) => {
  expect(releaseOf(REPOSITORY, tag)).toEqual({ version, cpu_architecture: architecture, repository: REPOSITORY, tag });
});

test.each(["latest", "4.18-x86_64", "4.18.9", "4.18.9-x86_64-cli", "sha256-0123.sig", "4.18.9-riscv64"])("tag %s is of no release", (tag) => {
  expect(releaseOf(REPOSITORY, tag)).toBeUndefined();
});

test("releases are those of the repositories of mirrors, the newest first", async () => {
  responses = {
    "_catalog?n=1000": { repositories: ["app", "app/release-notes", REPOSITORY, "old/release"] },
    [`${REPOSITORY}/tags/list?n=1000`]: { tags: ["4.18.10-x86_64", "4.18.9-x86_64", "sha256-0.sig"] },
    "old/release/tags/list?n=1000": { tags: ["4.17.1-arm64"] },
  };
  const { entries, isCut } = await mirroredReleases();
  expect(entries.map(({ repository, tag }) => `${repository}:${tag}`)).toEqual([`${REPOSITORY}:4.18.10-x86_64`, `${REPOSITORY}:4.18.9-x86_64`, "old/release:4.17.1-arm64"]);
  expect(isCut).toBe(false);
});

test("a registry without releases", async () => {
  responses = { "_catalog?n=1000": { repositories: null } };
  expect(await mirroredReleases()).toEqual({ entries: [], isCut: false });
});

test("releases on offer are not suggested, in either spelling of an architecture", () => {
  const releases = ["4.18.9-x86_64", "4.18.9-aarch64", "4.18.10-x86_64"].flatMap((tag) => releaseOf(REPOSITORY, tag) ?? []);
  const images = [image({}), image({ cpu_architecture: "aarch64" })];
  expect(suggestions(releases, images).map(({ tag }) => tag)).toEqual(["4.18.10-x86_64"]);
});

test("the host of an image is that of archives, else of an image on offer, else of the registry's pages", () => {
  const images = [image({ url: "other.example.org/release:1" }), image({})];
  expect(hostOf(REPOSITORY, "archives.example.org:5000/mirror", images, "pages")).toBe("archives.example.org:5000");
  expect(hostOf(REPOSITORY, "", images, "pages")).toBe("registry.example.org:5000");
  expect(hostOf("openshift/release-images", undefined, images, "pages")).toBe("other.example.org");
  expect(hostOf(REPOSITORY, undefined, [], "pages:5000")).toBe("pages:5000");
  expect(hostOf(REPOSITORY, undefined, [], undefined)).toBe("");
});

test("versions are in their order", () => {
  expect(["4.18.10", "4.19.0", "4.18.9", "4.19.0-rc.2", "4.19.0-rc.10", "4.18.9-multi"].sort(byVersion))
    .toEqual(["4.18.9", "4.18.9-multi", "4.18.10", "4.19.0-rc.2", "4.19.0-rc.10", "4.19.0"]);
});

test("a default among the added ones is the default of all", () => {
  const [own, added] = [image({ is_added: false, default: true }), image({ version: "4.18.10", default: true })];
  expect([own, added].map((one) => isDefault(one, [own, added]))).toEqual([false, true]);
  expect(isDefault(own, [own, image({})])).toBe(true);
  expect(isDefault(image({}), [own])).toBe(false);
});

test("malformed versions and images are found", () => {
  expect(["4.18.9", "4.19.0-rc.1", "4.18.9-multi"].every(isVersion)).toBe(true);
  expect(["", "4.18", "latest", "v4.18.9", "4.18.9 "].some(isVersion)).toBe(false);
  const digest = `sha256:${"a".repeat(64)}`;
  expect([
    "registry.example.org/a/b:1", "registry:5000/a:1", `localhost/a@${digest}`, `registry.example.org:5000/a:1@${digest}`, "[fd00::1]:5000/a:1", "10.0.0.1/a:4.18.9-x86_64",
  ].filter((text) => !isImage(text))).toEqual([]);
  expect(["", "a:1", "openshift/release:1", "https://registry.example.org/a:1", "registry.example.org/a b:1", "registry.example.org/:1", "registry.example.org/a@sha256:12"].filter(isImage)).toEqual([]);
});
