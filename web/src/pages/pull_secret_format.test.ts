import { expect, test } from "vitest";
import { likelyRegistry, mergedPullSecret } from "./pull_secret_format";

const LOGIN = { registry: "registry.example.org:5000", user: "ann", password: "pässwort", present: "" };

test("a login is base64 of UTF-8", () => {
  const result = mergedPullSecret(LOGIN) as { text: string };
  const { auths } = JSON.parse(result.text) as { auths: Record<string, { auth: string }> };
  expect(Buffer.from(auths[LOGIN.registry]!.auth, "base64").toString("utf8")).toBe("ann:pässwort");
});

test("other logins stay", () => {
  const result = mergedPullSecret({ ...LOGIN, present: '{"auths":{"other":{"auth":"eA=="}}}' }) as { text: string };
  expect(JSON.parse(result.text)).toHaveProperty("auths.other.auth", "eA==");
});

test.each([
  ["registry", { registry: "http://x" }],
  ["registry", { registry: "" }],
  ["user", { user: "a:b" }],
  ["password", { password: "" }],
  ["present", { present: "{}" }],
  ["present", { present: "text" }],
])("a wrong %s is named", (field, change) => {
  expect(mergedPullSecret({ ...LOGIN, ...change })).toHaveProperty("field", field);
});

test("the registry of a site is named like its web UI", () => {
  expect(likelyRegistry("ui.example.org")).toBe("registry.example.org");
  expect(likelyRegistry("localhost")).toBe("localhost");
  expect(likelyRegistry("127.0.0.1")).toBe("127.0.0.1");
  expect(likelyRegistry("[::1]")).toBe("[::1]");
});
