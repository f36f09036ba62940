import { beforeEach, expect, test } from "vitest";
import { changesOf, draftOver, dropDrafts, keepDraft } from "./store";

beforeEach(() => sessionStorage.clear());

const SAVED = { name: "", domain: "", keys: [] as string[] };

test("a draft is laid over what is saved", () => {
  keepDraft("a", changesOf({ ...SAVED, name: "x" }, SAVED));
  expect(draftOver("a", { ...SAVED, domain: "changed by others" })).toEqual({ name: "x", domain: "changed by others", keys: [] });
  expect(draftOver("b", SAVED)).toBeUndefined();
});

test("a draft that is saved by now is dropped", () => {
  keepDraft("a", { name: "x" });
  expect(draftOver("a", { ...SAVED, name: "x" })).toBeUndefined();
  expect(sessionStorage).toHaveLength(0);
});

test("without changes there is no draft", () => {
  keepDraft("a", { name: "x" });
  keepDraft("a", changesOf(SAVED, SAVED));
  expect(sessionStorage).toHaveLength(0);
});

test.each([
  [{ pullSecret: '{"auths":{}}' }],
  [{ password: "hidden" }],
  [{ httpProxy: "http://user:hidden@proxy.example.org:3128" }],
  [{ text: '{"auths": {"a": {"auth": "hidden"}}}' }],
  [{ manifests: [{ yaml: "apiVersion: v1\nkind: Secret\ndata: hidden" }] }],
  [{ trustBundle: "-----BEGIN PRIVATE KEY-----\nhidden" }],
  [{ user: { password: "hidden" } }],
])("secrets of %o are not kept", (changes) => {
  keepDraft("a", changes);
  expect(JSON.stringify({ ...sessionStorage })).not.toMatch(/hidden|auths/);
});

test("what is left out stays as saved", () => {
  const saved = { list: [{ name: "a", yaml: "kind: Secret" }, { name: "b", yaml: "" }] };
  keepDraft("a", { list: [{ name: "a", yaml: "kind: Secret" }, { name: "c", yaml: "" }] });
  expect(draftOver("a", saved)).toEqual({ list: [{ name: "a", yaml: "kind: Secret" }, { name: "c", yaml: "" }] });
  keepDraft("a", { list: [{ name: "d", yaml: "kind: Secret" }] });
  expect(draftOver("a", saved)).toEqual({ list: [{ name: "d", yaml: "" }] });
});

test("proxies without a password are kept", () => {
  keepDraft("a", { httpProxy: "http://proxy.example.org:3128" });
  expect(draftOver("a", { httpProxy: "" })).toEqual({ httpProxy: "http://proxy.example.org:3128" });
});

test("what is no draft is dropped, and large ones are not kept", () => {
  sessionStorage.setItem("atoll-draft:a", "{");
  expect(draftOver("a", SAVED)).toBeUndefined();
  keepDraft("a", { name: "x".repeat(2 << 20) });
  expect(sessionStorage).toHaveLength(0);
});

test("all drafts are dropped, and nothing else", () => {
  sessionStorage.setItem("other", "1");
  keepDraft("a", { name: "x" });
  keepDraft("b", { name: "x" });
  dropDrafts();
  expect({ ...sessionStorage }).toEqual({ other: "1" });
});
