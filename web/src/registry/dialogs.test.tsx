import { cleanup, render, screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { SWRConfig } from "swr";
import { afterEach, beforeAll, beforeEach, expect, test, vi } from "vitest";
import { ApiError } from "../api/client";
import { type ListedManifest, registryLogin } from "../api/registry";
import { startTexts } from "../i18n";
import { DeletionDialog } from "./deletion";
import { GarbageDialog } from "./garbage";
import { RegistryLoaded } from "./log_in";

const [ONE, OTHER] = ["a", "b"].map((digit) => `sha256:${digit.repeat(64)}`);
const GARBAGE = { manifests: 0, links: 2, blobs: 3, bytes: 2048, repositories: 0 };

let requests: string[];
let responses: Record<string, () => Response>;
const json = (body: unknown, status = 200) => () => new Response(JSON.stringify(body), { status });
const found = (digest: string | undefined, mediaType = "application/vnd.oci.image.manifest.v1+json") => () =>
  new Response(null, { headers: { "docker-content-digest": digest ?? "", "content-type": mediaType } });

beforeAll(startTexts);

beforeEach(() => {
  requests = [];
  responses = {
    "GET app/tags/list?n=1000": json({ tags: ["latest", "old", "v1"] }),
    "HEAD app/manifests/latest": found(ONE),
    "HEAD app/manifests/v1": found(ONE),
    "HEAD app/manifests/old": found(OTHER),
    [`HEAD app/manifests/${ONE}`]: found(ONE),
    [`GET app/referrers/${ONE}?n=1000`]: json({ manifests: [{ digest: OTHER }] }),
    [`GET app/referrers/${OTHER}?n=1000`]: json({ manifests: [] }),
    "DELETE app/manifests/v1": () => new Response(null, { status: 202 }),
    [`DELETE app/manifests/${ONE}`]: () => new Response(null, { status: 202 }),
  };
  // jsdom has none.
  AbortSignal.any ??= ([first]: AbortSignal[]) => first!;
  vi.stubGlobal("fetch", async (url: string, { method, headers }: RequestInit) => {
    const request = `${method} ${url.replace("/services/registry/v2/", "")}`;
    requests.push(request);
    if (url.endsWith("/v2/")) return new Response("{}", { status: (headers as Record<string, string>).authorization === `Basic ${btoa("user:right")}` ? 200 : 401 });
    return responses[request]?.() ?? new Response(null, { status: 404 });
  });
});
afterEach(() => {
  cleanup();
  registryLogin.set(undefined);
  vi.unstubAllGlobals();
});

const changes = () => requests.filter((request) => !/^(GET|HEAD) /.test(request));
const isEnabled = (name: string) => !screen.getByRole("button", { name }).hasAttribute("disabled");

function openDeletion(reference: string) {
  const done = vi.fn();
  render(<DeletionDialog name="app" reference={reference} close={() => {}} done={done} />);
  return done;
}

test("the deletion of a tag says which tags the manifest keeps", async () => {
  const done = openDeletion("v1");
  await screen.findByText("The manifest stays, with these tags: latest");
  expect(changes()).toEqual([]);
  await userEvent.click(screen.getByRole("button", { name: "Delete the tag" }));
  await waitFor(() => expect(done).toHaveBeenCalled());
  expect(changes()).toEqual(["DELETE app/manifests/v1"]);
});

test("a tag that is the only one of its manifest", async () => {
  openDeletion("old");
  await screen.findByText(/The manifest stays without a tag/);
});

test("the deletion of a manifest says which tags and artifacts are affected", async () => {
  const done = openDeletion(ONE!);
  await screen.findByText(/These tags of the manifest are deleted with it: latest, v1/);
  expect(screen.getByText(/such as signatures, become garbage: 1/)).toBeDefined();
  await userEvent.click(screen.getByRole("button", { name: "Delete the manifest" }));
  await waitFor(() => expect(done).toHaveBeenCalled());
  expect(changes()).toEqual([`DELETE app/manifests/${ONE}`]);
});

test("indexes that lose a platform are named", async () => {
  responses["HEAD app/manifests/old"] = found(OTHER, "application/vnd.oci.image.index.v1+json");
  responses["GET app/manifests/old"] = json({ manifests: [{ digest: ONE }] });
  openDeletion(ONE!);
  await screen.findByText(/These indexes of several platforms need it, and lose a platform: old/);
});

/** The list of all manifests that the registry has. */
function list(...entries: Partial<ListedManifest>[]) {
  responses["GET _atoll/manifests?n=1000&repository=app"] = json({ manifests: entries.map((entry) => ({ tags: [], ...entry })) });
}

test("a registry that lists all manifests is asked once, not for each tag", async () => {
  const [tagged, untagged] = ["c", "d"].map((digit) => `sha256:${digit.repeat(64)}`);
  list({ digest: ONE!, tags: ["latest", "v1"] }, { digest: tagged!, tags: ["multi"], manifests: [ONE!] }, { digest: untagged!, manifests: [ONE!, ONE!] });
  openDeletion("v1");
  await userEvent.click(await screen.findByRole("checkbox", { name: /Delete the manifest, too/ }));
  await screen.findByText(/These tags of the manifest are deleted with it: latest$/);
  await screen.findByText(/lose a platform: multi, sha256:dddddddddddd$/);
  await userEvent.click(screen.getByRole("button", { name: "Delete the manifest" }));
  await waitFor(() => expect(changes()).toEqual([`DELETE app/manifests/${ONE}`]));
  expect(requests).toEqual(["GET _atoll/manifests?n=1000&repository=app", `GET app/referrers/${ONE}?n=1000`, `DELETE app/manifests/${ONE}`]);
});

test("a manifest that the list lacks is looked for by itself", async () => {
  list({ digest: OTHER!, tags: ["old"] });
  openDeletion("v1");
  await screen.findByText("The manifest stays, with these tags: latest");
});

test("the manifest of a tag is deleted when it is chosen", async () => {
  openDeletion("v1");
  await userEvent.click(await screen.findByRole("checkbox", { name: /Delete the manifest, too/ }));
  await screen.findByText(/These tags of the manifest are deleted with it: latest/);
  await userEvent.click(screen.getByRole("button", { name: "Delete the manifest" }));
  await waitFor(() => expect(changes()).toEqual([`DELETE app/manifests/${ONE}`]));
});

test("where deleting is switched off, the setting is named", async () => {
  responses["DELETE app/manifests/v1"] = json({ errors: [{ message: "deleting is switched off: X" }] }, 405);
  openDeletion("v1");
  await waitFor(() => expect(isEnabled("Delete the tag")).toBe(true));
  await userEvent.click(screen.getByRole("button", { name: "Delete the tag" }));
  await screen.findByText(/REGISTRY_STORAGE_DELETE_ENABLED=true/);
});

test("who only pulls is asked for a login, and keeps the dialog", async () => {
  responses["DELETE app/manifests/v1"] = json({ errors: [{ message: "authentication required" }] }, 401);
  openDeletion("v1");
  await waitFor(() => expect(isEnabled("Delete the tag")).toBe(true));
  await userEvent.click(screen.getByRole("button", { name: "Delete the tag" }));
  await userEvent.type(await screen.findByRole("textbox", { name: /User/ }), "user");
  await userEvent.type(screen.getByLabelText(/^Password/), "wrong");
  await userEvent.click(screen.getByRole("button", { name: "Log in" }));
  await screen.findByText("User or password are wrong.");
  expect(registryLogin.get()).toBeUndefined();
  await userEvent.clear(screen.getByLabelText(/^Password/));
  await userEvent.type(screen.getByLabelText(/^Password/), "right");
  await userEvent.click(screen.getByRole("button", { name: "Log in" }));
  await waitFor(() => expect(isEnabled("Delete the tag")).toBe(true));
  expect(registryLogin.get()?.user).toBe("user");
  expect([localStorage.length, sessionStorage.length, document.cookie]).toEqual([0, 0, ""]);
});

test("garbage is counted before it is collected", async () => {
  responses["POST _atoll/gc?dryrun=true"] = json({ ...GARBAGE, retention: { is_dry: true, tags: 1, manifests: 0, repositories: [{ repository: "team/app", tags: ["old"], manifests: [] }] } });
  responses["POST _atoll/gc"] = json({ ...GARBAGE, blobs: 5 });
  render(<GarbageDialog close={() => {}} />);
  await screen.findByText("Would be removed:");
  expect(screen.getByText("2 KiB")).toBeDefined();
  expect(screen.getByText(/Tags: old/)).toBeDefined();
  expect(changes()).toEqual(["POST _atoll/gc?dryrun=true"]);
  await userEvent.click(screen.getByRole("button", { name: "Collect garbage" }));
  await screen.findByText(/The garbage is collected/);
  expect(screen.getByText("5")).toBeDefined();
  expect(screen.queryByRole("button", { name: "Collect garbage" })).toBeNull();
});

test("where there is no garbage, none is collected", async () => {
  responses["POST _atoll/gc?dryrun=true"] = json({ manifests: 0, links: 0, blobs: 0, bytes: 0, repositories: 0, retention: null });
  render(<GarbageDialog close={() => {}} />);
  await screen.findByText(/There is nothing to remove/);
  expect(isEnabled("Collect garbage")).toBe(false);
});

test("a missing right is named", () => {
  const error = new ApiError("Your login has no right for this: {{action}} in {{repositories}}.", "The scope {{scope}}.", 403, { action: "delete", repositories: "**", scope: "registry:maintenance:*" });
  render(<SWRConfig><RegistryLoaded resource={{ data: undefined, error, reload: async () => undefined }}>{() => null}</RegistryLoaded></SWRConfig>);
  expect(screen.getByText(/delete in \*\*/)).toBeDefined();
  expect(screen.getByText(/registry:maintenance/)).toBeDefined();
});
