import { cleanup, render, screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { MemoryRouter } from "react-router-dom-v5-compat";
import { SWRConfig } from "swr";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { ReleaseImage } from "../releases/records";
import Versions from "./versions";

const NEVER = "0001-01-01T00:00:00.000Z";
const PLACE = "registry.example.org:5000/mirror/openshift/release-images";

let images: ReleaseImage[];
let hasRegistry: boolean;
let registryStatus: number;
/** Changes that were requested, and refusals by method and path. */
let requests: string[];
let refusals: Record<string, [status: number, reason: string]>;

function image(members: Partial<ReleaseImage>): ReleaseImage {
  const version = members.version ?? "4.18.7";
  return { openshift_version: "4.18", version, cpu_architecture: "x86_64", url: `${PLACE}:${version}-x86_64`, default: false, is_added: false, added_by: "", added_at: NEVER, ...members };
}

const added = (members: Partial<ReleaseImage> = {}) => image({ version: "4.18.8", is_added: true, added_by: "anna", added_at: "2026-01-02T03:04:05Z", ...members });

const READ: Record<string, () => unknown> = {
  "/openshift-versions": () => ({}),
  "/component-versions": () => ({}),
  "/release-images": () => images,
  "/os-images": () => [
    { ...LIVE, openshift_version: "4.18", is_added: false, added_by: "", added_at: NEVER },
    { ...LIVE, is_added: true, added_by: "anna", added_at: "2026-01-02T03:04:05Z" },
  ],
  "/archives": () => ({ folder: "/archives", registry: "site.example.org:5000/mirror", sets: [] }),
  "/services": () => ({ catalogs: false, registry: null, registry_api: hasRegistry, registry_ca: false, downloads: null }),
  "/services/registry/v2/_catalog?n=1000": () => ({ repositories: ["mirror/openshift/release-images"] }),
  "/services/registry/v2/mirror/openshift/release-images/tags/list?n=1000": () => ({ tags: ["4.18.10-aarch64", "4.18.7-x86_64", "4.18.9-x86_64"] }),
};

beforeEach(() => {
  images = [image({ default: true }), added()];
  hasRegistry = true;
  registryStatus = 200;
  requests = [];
  refusals = {};
  // jsdom has none.
  AbortSignal.any ??= ([first]: AbortSignal[]) => first!;
  vi.stubGlobal("fetch", async (url: string, { method = "GET", body }: RequestInit = {}) => {
    const path = url.replace("/api/assisted-install/v2", "");
    if (method !== "GET") requests.push([method, path, body].filter(Boolean).join(" "));
    const refusal = refusals[`${method} ${path}`];
    if (refusal) return new Response(JSON.stringify({ reason: refusal[1] }), { status: refusal[0] });
    if (path.startsWith("/services/registry/") && registryStatus !== 200) return new Response("{}", { status: registryStatus });
    if (method === "DELETE") return new Response(null, { status: 204 });
    const read = READ[path];
    return new Response(JSON.stringify(read?.() ?? {}), { status: method !== "GET" ? 201 : read ? 200 : 404 });
  });
});
afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

const open = (path = "/versions") => render(
  <SWRConfig value={{ provider: () => new Map() }}><MemoryRouter initialEntries={[path]}><Versions /></MemoryRouter></SWRConfig>,
);
const table = async () => within(await screen.findByRole("grid", { name: "Release images" }));
const row = async (version: string) => within((await (await table()).findByText(version, { selector: "td" })).closest("tr")!);
const dialog = async () => within(await screen.findByRole("dialog"));
const click = async (name: string) => userEvent.click(await screen.findByRole("button", { name }));
/** Opens the dialog, and fills in a release by hand. */
async function enter(version: string, url: string) {
  await click("Add a release");
  const shown = await dialog();
  await userEvent.type(shown.getByRole("textbox", { name: /^Version/ }), version);
  await userEvent.type(shown.getByRole("textbox", { name: /^Image/ }), url);
  return shown;
}
const submit = (shown: Awaited<ReturnType<typeof dialog>>) => shown.getByRole("button", { name: "Add a release" });

test("release images have their source, and those of the settings stay", async () => {
  open();
  const own = await row("4.18.7");
  own.getByText("Settings");
  own.getByText("Default");
  expect(own.queryByRole("button", { name: /Remove|Change/ })).toBeNull();
  const other = await row("4.18.8");
  other.getByText("Added by {{user}}");
  expect(other.queryByText("Default")).toBeNull();
  other.getByRole("button", { name: "Remove 4.18.8 x86_64" });
});

test("an older server: the page is as it was", async () => {
  refusals["GET /release-images"] = [404, ""];
  open("/versions?add-release");
  await screen.findByText("Components of the service");
  await waitFor(() => expect(screen.queryByText("Release images")).toBeNull());
  expect(screen.queryByRole("dialog")).toBeNull();
});

test("without release images the next step is shown", async () => {
  images = [];
  open();
  await screen.findByText("No release images");
  await click("Add a release");
  await dialog();
});

test("a release is added by hand", async () => {
  hasRegistry = false;
  open();
  const shown = await enter(" 4.19.1 ", `${PLACE}:4.19.1-x86_64`);
  await userEvent.click(shown.getByRole("switch", { name: "Default" }));
  images.push(added({ version: "4.19.1" }));
  await userEvent.click(submit(shown));
  expect(requests).toEqual([`POST /release-images {"version":"4.19.1","cpu_architecture":"x86_64","url":"${PLACE}:4.19.1-x86_64","default":true}`]);
  await waitFor(() => expect(screen.queryByRole("dialog")).toBeNull());
  await row("4.19.1");
});

test.each([["4.19", `${PLACE}:4.19`], ["4.19.1", "openshift/release:4.19.1"]])("version %s and image %s are not sent", async (version, url) => {
  hasRegistry = false;
  open();
  const shown = await enter(version, url);
  expect(submit(shown).hasAttribute("disabled")).toBe(true);
});

test("one of the settings is not sent", async () => {
  hasRegistry = false;
  open();
  const shown = await enter("4.18.7", `${PLACE}:4.18.7-x86_64`);
  shown.getByText(/This release is one of the settings/);
  expect(submit(shown).hasAttribute("disabled")).toBe(true);
});

test("one that was added is replaced, which is said before", async () => {
  hasRegistry = false;
  open();
  const shown = await enter("4.18.8", "other.example.org/release:4.18.8");
  shown.getByText(/its image is replaced/);
  await userEvent.click(submit(shown));
  expect(requests).toHaveLength(1);
});

test("a refusal is shown with its reason, and can be corrected", async () => {
  hasRegistry = false;
  refusals["POST /release-images"] = [409, "200 release images were added: remove one first"];
  open();
  const shown = await enter("4.19.1", `${PLACE}:4.19.1-x86_64`);
  await userEvent.click(submit(shown));
  await shown.findByText(/200 release images were added/);
  shown.getByText(/Correct the cause/);
  expect(submit(shown).hasAttribute("disabled")).toBe(false);
});

test("releases of the registry that are not on offer are suggested, with the host of the archives' registry", async () => {
  open("/versions?add-release");
  const shown = await dialog();
  const choice = await shown.findByRole<HTMLSelectElement>("combobox", { name: "Releases in the registry of this site" });
  expect([...choice.options].map(({ value }) => value)).toEqual(["", "mirror/openshift/release-images:4.18.10-aarch64", "mirror/openshift/release-images:4.18.9-x86_64"]);
  await waitFor(() => expect(choice.disabled).toBe(false));
  await userEvent.selectOptions(choice, "mirror/openshift/release-images:4.18.10-aarch64");
  await userEvent.click(submit(shown));
  expect(requests).toEqual(['POST /release-images {"version":"4.18.10","cpu_architecture":"arm64","url":"site.example.org:5000/mirror/openshift/release-images:4.18.10-aarch64","default":false}']);
});

test("where archives may not be read, the host is that of the images on offer", async () => {
  refusals["GET /archives"] = [403, ""];
  open("/versions?add-release");
  const shown = await dialog();
  const choice = await shown.findByRole<HTMLSelectElement>("combobox", { name: "Releases in the registry of this site" });
  await waitFor(() => expect(choice.disabled).toBe(false));
  await userEvent.selectOptions(choice, "mirror/openshift/release-images:4.18.9-x86_64");
  expect(shown.getByRole<HTMLInputElement>("textbox", { name: /^Image/ }).value).toBe(`${PLACE}:4.18.9-x86_64`);
});

test("a registry with users asks for a login, and releases can be entered nevertheless", async () => {
  registryStatus = 401;
  open();
  const shown = await enter("4.19.1", `${PLACE}:4.19.1-x86_64`);
  await shown.findByText(/This needs a login at the registry/);
  shown.getByRole("button", { name: "Log in" });
  await userEvent.click(submit(shown));
  expect(requests).toHaveLength(1);
});

test("an added one is changed, and stays of its version", async () => {
  open();
  await click("Change 4.18.8 x86_64");
  const shown = await dialog();
  expect(shown.getByRole("textbox", { name: /^Version/ }).hasAttribute("disabled")).toBe(true);
  expect(shown.queryByText(/its image is replaced/)).toBeNull();
  await userEvent.click(shown.getByRole("switch", { name: "Default" }));
  await userEvent.click(shown.getByRole("button", { name: "Change the release" }));
  expect(requests).toEqual([`POST /release-images {"version":"4.18.8","cpu_architecture":"x86_64","url":"${PLACE}:4.18.8-x86_64","default":true}`]);
});

test("an added one is removed after a confirmation", async () => {
  open();
  await click("Remove 4.18.8 x86_64");
  const shown = await dialog();
  shown.getByText(/Clusters that exist keep their image/);
  expect(requests).toEqual([]);
  images = images.slice(0, 1);
  await userEvent.click(shown.getByRole("button", { name: "Remove the release" }));
  expect(requests).toEqual(["DELETE /release-images/4.18.8?cpu_architecture=x86_64"]);
  const shownTable = await table();
  await waitFor(() => expect(shownTable.queryByText("4.18.8", { selector: "td" })).toBeNull());
});

const LIVE = { openshift_version: "4.19", cpu_architecture: "x86_64", version: "419.96.1-0", url: "https://files.example.org/live.iso", sha256: "" };
const osTable = async () => within(await screen.findByRole("grid", { name: "OS images" }));

test("OS images of the settings stay, added ones can be removed", async () => {
  open();
  const shown = await osTable();
  const own = within((await shown.findByText("4.18")).closest("tr")!);
  own.getByText("Settings");
  expect(own.queryByRole("button", { name: /Remove/ })).toBeNull();
  await click("Remove 4.19 x86_64");
  await userEvent.click((await dialog()).getByRole("button", { name: "Remove the OS image" }));
  await waitFor(() => expect(requests).toEqual(["DELETE /os-images/4.19?cpu_architecture=x86_64"]));
});

test("an OS image is added once it is complete", async () => {
  open();
  await click("Add an OS image");
  const shown = await dialog();
  const button = shown.getByRole("button", { name: "Add an OS image" });
  const type = (name: string, text: string) => userEvent.type(shown.getByRole("textbox", { name: new RegExp(`^${name}`) }), text);
  await type("Version", "4.18");
  await type("Operating system", LIVE.version);
  await type("Address", ` ${LIVE.url} `);
  shown.getByText("This OS image is one of the settings");
  expect(button).toHaveProperty("disabled", true);
  await type("Version", "{Backspace}9");
  shown.getByText("This OS image is on offer already: it is replaced.");
  refusals["POST /os-images"] = [409, "50 OS images were added: remove one first"];
  await userEvent.click(button);
  await shown.findByText("50 OS images were added: remove one first");
  refusals = {};
  await userEvent.click(button);
  const body = `POST /os-images ${JSON.stringify(LIVE)}`;
  await waitFor(() => expect(requests).toEqual([body, body]));
  await waitFor(() => expect(screen.queryByRole("dialog")).toBeNull());
});

test.each([404, 403])("without OS images to administer (%s), there is no card", async (status) => {
  refusals["GET /os-images"] = [status, ""];
  open();
  await table();
  expect(screen.queryByText("OS images")).toBeNull();
});

test("releases of the registry say so, and which images an incomplete one lacks", async () => {
  images = [
    image({ is_found: true, default: true }),
    image({ version: "4.18.9", is_found: true, missing: ["cli", "console", "etcd", "installer"] }),
  ];
  open();
  const incomplete = within((await (await table()).findByText("Incomplete")).closest("tr")!);
  incomplete.getByText(/images are not in the registry/);
  incomplete.getByText("Registry");
});
