import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ApiError } from "./client";
import { LIST_LIMIT, collectGarbage, isLoginAccepted, listedManifests, manifest, neededRight, nextQuery, passwordLogin, referrers, refusal, registryLogin, repositories, resolve, tags, tokenLogin } from "./registry";

interface Sent {
  request: string;
  headers: Record<string, string>;
}

let sent: Sent[];
/** Responses by method and path below the base. */
let responses: Record<string, () => Response>;

beforeEach(() => {
  sent = [];
  responses = {};
  vi.stubGlobal("fetch", async (url: string, { method, headers }: RequestInit) => {
    const request = `${method} ${url.replace("/services/registry/v2/", "")}`;
    sent.push({ request, headers: headers as Record<string, string> });
    return responses[request]?.() ?? new Response(null, { status: 404 });
  });
});
afterEach(() => {
  registryLogin.set(undefined);
  vi.unstubAllGlobals();
});

const json = (body: unknown, headers: Record<string, string> = {}, status = 200) => () => new Response(JSON.stringify(body), { status, headers });
const requests = () => sent.map(({ request }) => request);

test.each([
  ['</v2/_catalog?last=a%2Fb&n=2>; rel="next"', "last=a%2Fb&n=2"],
  ['<https://registry.example.org/v2/_catalog?n=2&last=x>; rel=next', "n=2&last=x"],
  ['</v2/_catalog?n=1>; rel="prev", </v2/_catalog?n=2>; rel="next"; title="a"', "n=2"],
  ['</v2/_catalog>; rel="next"', undefined],
  ['</v2/_catalog?n=2>; rel="nextone"', undefined],
  ["", undefined],
  [null, undefined],
])("the next page of %s", (link, query) => {
  expect(nextQuery(link)).toBe(query);
});

test("a list is read to its end", async () => {
  responses["GET _catalog?n=1000"] = json({ repositories: ["a"] }, { link: '</v2/_catalog?last=a&n=1000>; rel="next"' });
  responses["GET _catalog?last=a&n=1000"] = json({ repositories: ["b"] });
  expect(await repositories()).toEqual({ entries: ["a", "b"], isCut: false });
});

test("a list without an end is cut, and a circle ends", async () => {
  let page = 0;
  const names = Array.from({ length: 1000 }, (_, index) => `t${index}`);
  vi.stubGlobal("fetch", async () => json({ tags: names }, { link: `</v2/a/tags/list?last=${page++}>; rel="next"` })());
  const { entries, isCut } = await tags("a");
  expect([entries.length, isCut]).toEqual([LIST_LIMIT, true]);
  vi.stubGlobal("fetch", async () => json({ tags: ["t"] }, { link: '</v2/a/tags/list?n=1000>; rel="next"' })());
  expect(await tags("a")).toEqual({ entries: ["t"], isCut: false });
});

test("a repository without tags has an empty list", async () => {
  responses["GET a/tags/list?n=1000"] = json({ name: "a", tags: null });
  expect((await tags("a")).entries).toEqual([]);
});

test("requests carry the login, others that they are tried with", async () => {
  responses["GET _catalog?n=1000"] = json({ repositories: [] });
  responses["GET "] = json({});
  await repositories();
  registryLogin.set(passwordLogin("jürgen", "pässwörd:1"));
  await repositories();
  await isLoginAccepted(tokenLogin(" abc\n"));
  const [none, basic, bearer] = sent.map(({ headers }) => headers.authorization);
  expect(none).toBeUndefined();
  expect(Buffer.from(basic!.replace("Basic ", ""), "base64").toString()).toBe("jürgen:pässwörd:1");
  expect(bearer).toBe("Bearer abc");
});

test("a login is accepted or refused, other failures are neither", async () => {
  responses["GET "] = json({ errors: [] }, {}, 401);
  expect(await isLoginAccepted()).toBe(false);
  responses["GET "] = json({ errors: [{ code: "TOOMANYREQUESTS", message: "too many" }] }, { "retry-after": "30" }, 429);
  await expect(isLoginAccepted()).rejects.toMatchObject({ status: 429, message: "Too many failed logins.", values: { seconds: 30 } });
});

test.each([
  ["GET", "_catalog?n=1", "pull", "**", "registry:catalog:*"],
  ["POST", "_atoll/gc?dryrun=true", "delete", "**", "registry:maintenance:*"],
  ["GET", "_atoll/manifests?n=1000&repository=team%2Fapp", "pull", "team/app", "repository:team/app:pull"],
  ["GET", "team/app/tags/list?n=1", "pull", "team/app", "repository:team/app:pull"],
  ["DELETE", "team/app/manifests/v1", "delete", "team/app", "repository:team/app:delete"],
  ["GET", "team/tags/list/referrers/sha256:1", "pull", "team/tags/list", "repository:team/tags/list:pull"],
])("the right that %s %s needs", (method, path, action, repositoriesPattern, scope) => {
  expect(neededRight(method, path)).toEqual({ action, repositories: repositoriesPattern, scope });
});

test.each([
  ["DELETE", 405, { errors: [{ message: "deleting is switched off: REGISTRY_STORAGE_DELETE_ENABLED" }] }, "Deleting is switched off in the registry."],
  ["DELETE", 405, undefined, "Deleting is switched off in the registry."],
  ["DELETE", 405, { errors: [{ message: "the registry is read-only: its disk" }] }, "The registry is read-only: its disk"],
  ["DELETE", 405, { errors: [{ message: "the repository is a copy of another registry's" }] }, "The repository is a copy of another registry's"],
  ["GET", 405, { errors: [{ message: "the content is in a bucket" }] }, "The content is in a bucket"],
  ["DELETE", 409, { errors: [{ message: "tag v1 is immutable" }] }, "Tag v1 is immutable"],
  ["GET", 403, { errors: [{ message: "denied" }] }, "Your login has no right for this: {{action}} in {{repositories}}."],
  ["POST", 403, { code: 403, message: "Only a page of this server may change the registry." }, "Only a page of this server may change the registry."],
  ["GET", 502, { message: "the registry is not reached" }, "The registry is not reached"],
  ["GET", 503, "<html>", "The registry is not ready."],
  ["GET", 418, undefined, "The registry responded with {{status}}."],
])("%s refused with %s and %j", (method, status, body, message) => {
  expect(refusal(method, "a/manifests/v1", status, body, null).message).toBe(message);
});

test("a manifest has its digest, type and size", async () => {
  const body = { schemaVersion: 2, config: { digest: "sha256:c" }, layers: [] };
  responses["GET a/manifests/v1"] = json(body, { "docker-content-digest": "sha256:d", "content-type": "application/vnd.oci.image.manifest.v1+json; charset=utf-8" });
  expect(await manifest("a", "v1")).toEqual({ digest: "sha256:d", mediaType: "application/vnd.oci.image.manifest.v1+json", size: JSON.stringify(body).length, manifest: body });
  expect(sent[0]!.headers.accept).toContain("application/vnd.oci.image.index.v1+json");
});

test("what a registry lacks is no failure where it is asked for", async () => {
  responses["HEAD a/manifests/v1"] = () => new Response(null, { headers: { "docker-content-digest": "sha256:d", "content-type": "a/b" } });
  expect(await resolve("a", "v1")).toEqual({ digest: "sha256:d", mediaType: "a/b" });
  expect(await resolve("a", "v2")).toBeUndefined();
  expect(await referrers("a", "sha256:d")).toEqual({ entries: [], isCut: false });
  responses["HEAD a/manifests/v3"] = () => new Response(null, { status: 403 });
  await expect(resolve("a", "v3")).rejects.toBeInstanceOf(ApiError);
});

test("garbage is counted by a dry run; blanks come first, and errors after them", async () => {
  const result = { manifests: 0, links: 1, blobs: 2, bytes: 3, repositories: 0 };
  responses["POST _atoll/gc?dryrun=true"] = () => new Response(`   ${JSON.stringify(result)}`);
  expect(await collectGarbage(true)).toEqual(result);
  responses["POST _atoll/gc"] = () => new Response(`  ${JSON.stringify({ errors: [{ message: "the registry's storage failed" }] })}`);
  await expect(collectGarbage(false)).rejects.toMatchObject({ message: "The registry's storage failed" });
  expect(requests()).toEqual(["POST _atoll/gc?dryrun=true", "POST _atoll/gc"]);
});

test("all manifests are listed page by page, where the registry has such a list", async () => {
  expect(await listedManifests("team/app")).toBeUndefined();
  const first = "GET _atoll/manifests?n=1000&repository=team%2Fapp";
  const second = "last=sha256%3A1&n=1000&repository=team%2Fapp";
  const page = (digest: string, link?: string) => () => new Response(JSON.stringify({ manifests: [{ digest, tags: [] }] }), link ? { headers: { link } } : {});
  responses[first] = page("sha256:1", `</v2/_atoll/manifests?${second}>; rel="next"`);
  responses[`GET _atoll/manifests?${second}`] = page("sha256:2");
  expect(await listedManifests("team/app")).toEqual({ entries: ["sha256:1", "sha256:2"].map((digest) => ({ digest, tags: [] })), isCut: false });
  responses[first] = () => new Response("{}", { status: 403 });
  await expect(listedManifests("team/app")).rejects.toMatchObject({ status: 403 });
});
