import { cleanup, render, screen, waitFor, within } from "@testing-library/react";
import { MemoryRouter } from "react-router-dom-v5-compat";
import { SWRConfig } from "swr";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { ReleaseImage } from "../releases/records";
import Versions from "./versions";

const PLACE = "registry.example.org:5000/mirror/openshift/release-images";
const LIVE = { cpu_architecture: "x86_64", version: "419.96.1-0", url: "https://files.example.org/live.iso" };

let images: ReleaseImage[];
/** Status of a response that is refused, by path. */
let refusals: Record<string, number>;

function image(members: Partial<ReleaseImage>): ReleaseImage {
  const version = members.version ?? "4.18.7";
  return { openshift_version: "4.18", version, cpu_architecture: "x86_64", url: `${PLACE}:${version}-x86_64`, ...members };
}

const READ: Record<string, () => unknown> = {
  "/openshift-versions": () => ({}),
  "/component-versions": () => ({}),
  "/release-images": () => images,
  "/archives": () => ({ sets: [{ name: "older.tar" }, { name: "first.tar", release_images: ["4.18.7-x86_64"] }, { name: "second.tar", release_images: ["4.18.9-x86_64"] }] }),
  "/operator-catalogs": () => [
    { openshift_version: "4.17", image: "r:5000/index:v4.17", missing_repositories: 0 },
    { openshift_version: "4.18", image: "r:5000/index:v4.18", missing_repositories: 12, missing: ["quay.io/acme/a@sha256:0"] },
  ],
  "/os-images": () => [{ ...LIVE, openshift_version: "4.18" }, { ...LIVE, openshift_version: "4.19", is_found: true }],
};

beforeEach(() => {
  images = [image({ default: true }), image({ version: "4.18.8" })];
  refusals = {};
  vi.stubGlobal("fetch", async (url: string) => {
    const path = url.replace("/api/assisted-install/v2", "");
    return new Response(JSON.stringify(READ[path]?.() ?? {}), { status: refusals[path] ?? (READ[path] ? 200 : 404) });
  });
});
afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

const open = () => render(
  <SWRConfig value={{ provider: () => new Map() }}><MemoryRouter><Versions /></MemoryRouter></SWRConfig>,
);
const table = async (name = "Release images") => within(await screen.findByRole("grid", { name }));
const row = async (version: string) => within((await (await table()).findByText(version, { selector: "td" })).closest("tr")!);

test("release images have their source, and one is the default", async () => {
  open();
  const first = await row("4.18.7");
  first.getByText("Settings");
  first.getByText("Default");
  const other = await row("4.18.8");
  expect(other.queryByText("Default")).toBeNull();
});

test("an older server: the page is as it was", async () => {
  refusals["/release-images"] = 404;
  open();
  await screen.findByText("Components of the service");
  await waitFor(() => expect(screen.queryByText("Release images")).toBeNull());
});

test("without release images the next step is shown", async () => {
  images = [];
  open();
  await screen.findByText("No release images");
  for (const link of screen.getAllByRole("link", { name: "Carry in archives" })) expect(link.getAttribute("href")).toBe("/carry-in");
});

test("OS images have their source", async () => {
  open();
  const shown = await table("OS images");
  const source = (version: string) => within(shown.getByText(version).closest("tr")!);
  source("4.18").getByText("Settings");
  source("4.19").getByText("Registry");
});

test("operator catalogs of the registry are listed, and that images are missing", async () => {
  open();
  const shown = await table("Operator catalogs");
  const row = (version: string) => within(shown.getByText(version).closest("tr")!);
  row("4.18").getByText(/repositories that operators need are not in the registry/);
  expect(row("4.17").queryByText("Incomplete")).toBeNull();
});

test.each([404, 403])("without OS images to administer (%s), there is no card", async (status) => {
  refusals["/os-images"] = status;
  open();
  await table();
  expect(screen.queryByText("OS images")).toBeNull();
});

test("releases of the registry say so, and which images an incomplete one lacks", async () => {
  images = [
    image({ is_found: true, default: true, is_signed: true }),
    image({ version: "4.18.9", is_found: true, missing: ["cli", "console", "etcd", "installer"] }),
  ];
  open();
  const incomplete = within((await (await table()).findByText("Incomplete")).closest("tr")!);
  incomplete.getByText(/images are not in the registry/);
  incomplete.getByText("Registry");
  expect(incomplete.queryByText("With signature")).toBeNull();
  (await row("4.18.7")).getByText("With signature");
  const link = await screen.findByRole("link", { name: /has this release/ });
  expect(link.getAttribute("href")).toBe("/carry-in");
});
