import { cleanup, render, screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { MemoryRouter } from "react-router-dom-v5-compat";
import { SWRConfig } from "swr";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { ArchiveList, ArchiveSet, Job } from "../archives/records";
import CarryIn from "./carry_in";

const NEVER = "0001-01-01T00:00:00.000Z";
const UID = "11111111-0000-4000-8000-000000000000";

let archives: ArchiveList;
let jobs: Job[];
/** Changes that were requested, and refusals by method and path. */
let requests: string[];
let refusals: Record<string, [status: number, reason: string]>;

function set(members: Partial<ArchiveSet>): ArchiveSet {
  const name = `mirror_seq${members.sequence ?? 1}_000000.tar`;
  return {
    name, uid: UID, sequence: 1, single_use: false, created_at: "2026-01-02T03:04:05Z", files: [{ name, size: 2048 }], bytes: 2048,
    releases: ["stable-4.18 4.18.1"], catalogs: [], images: 3, step: "next", published_sequence: 0, ...members,
  };
}

function job(members: Partial<Job>): Job {
  return { id: "job-1", kind: "publish-archives", state: "running", archives: "mirror_seq1_000000.tar", created_by: "admin", created_at: "2026-01-02T03:04:05Z", started_at: NEVER, ended_at: NEVER, ...members };
}

const publication = { is_unchanged: false, images: 3, catalogs: 0, sent_blobs: 5, sent_bytes: 1024, pruned: 0, unconfirmed_prunes: 0, files: [] };

beforeEach(() => {
  archives = { folder: "/archives", registry: "registry.example.org:5000/ns", sets: [set({})] };
  jobs = [];
  requests = [];
  refusals = {};
  vi.stubGlobal("fetch", async (url: string, { method, body }: RequestInit) => {
    const path = url.replace("/api/assisted-install/v2", "");
    if (method !== "GET") requests.push([method, path, body].filter(Boolean).join(" "));
    const refusal = refusals[`${method} ${path}`];
    if (refusal) return new Response(JSON.stringify({ reason: refusal[1] }), { status: refusal[0] });
    if (path === "/jobs/job-1/downloads/files?file_name=catalogSource-a.yaml") return new Response("kind: CatalogSource\n");
    return new Response(JSON.stringify(path === "/archives" ? archives : path.startsWith("/jobs?") ? jobs : {}), { status: method === "GET" ? 200 : 202 });
  });
});
afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

const open = () => render(
  <SWRConfig value={{ provider: () => new Map() }}><MemoryRouter><CarryIn /></MemoryRouter></SWRConfig>,
);
const button = (name: string | RegExp) => screen.findByRole("button", { name });

test("the next sequence is published, and its job is read at once", async () => {
  open();
  await button("Publish sequence {{sequence}}").then((found) => {
    jobs = [job({ progress: { phase: "publishing", items: 1, items_total: 3, bytes: 512, bytes_total: 2048 } })];
    return userEvent.click(found);
  });
  expect(requests).toEqual(['POST /jobs {"kind":"publish-archives","archives":"mirror_seq1_000000.tar"}']);
  const bar = await screen.findByRole("progressbar");
  expect(bar.getAttribute("aria-valuenow")).toBe("25");
  expect(screen.queryByRole("button", { name: /^Publish/ })).toBeNull();
});

test.each([
  ["out-of-order", "publish the archive of sequence 1 first"],
  ["damaged", "the archive ends too early"],
] as const)("%s: it cannot be published, with the reason", async (step, reason) => {
  archives.sets = [set({ sequence: 2, step, reason })];
  open();
  const publish = await button(/^Publish/);
  expect(publish.getAttribute("aria-disabled")).toBe("true");
  expect(document.getElementById(publish.getAttribute("aria-describedby") ?? "")?.textContent?.toLowerCase()).toContain(reason);
  await userEvent.click(publish);
  expect(requests).toEqual([]);
});

test("sets beyond the longest list are counted", async () => {
  archives = { ...archives, omitted_sets: 3 };
  open();
  await screen.findByText(/^Archive sets that are not listed/);
});

test("an unknown step can be published", async () => {
  archives = { ...archives, sets: [set({ step: "unknown" })], registry_reason: "the registry does not respond" };
  open();
  await screen.findByText("the registry does not respond");
  await userEvent.click(await button(/^Publish/));
  expect(requests).toHaveLength(1);
});

test("a published set gets its manifests again", async () => {
  archives.sets = [set({ step: "published", published_sequence: 1 })];
  open();
  await screen.findByText("The registry has this sequence already.");
  expect(screen.queryByRole("button", { name: /^Publish/ })).toBeNull();
  await userEvent.click(await button(/^Manifests/));
  expect(requests).toEqual(['POST /jobs {"kind":"publish-archives","archives":"mirror_seq1_000000.tar"}']);
});

test("missing sequences are named", async () => {
  archives.sets = [set({ sequence: 5, step: "out-of-order", published_sequence: 2 })];
  open();
  await screen.findByText(/Sequences .* are missing/);
});

test("a refusal is shown with its reason", async () => {
  refusals["POST /jobs"] = [409, "20 jobs wait already: cancel one, or wait for its end"];
  open();
  await userEvent.click(await button(/^Verify sequence/));
  await screen.findByText(/20 jobs wait already/);
});

test("prunes are confirmed before they are requested", async () => {
  jobs = [job({ state: "failed", reason: "r", publication: { ...publication, unconfirmed_prunes: 12 } })];
  open();
  const [offer] = await screen.findAllByRole("button", { name: /^Publish and remove/ });
  await userEvent.click(offer!);
  expect(requests).toEqual([]);
  const dialog = await screen.findByRole("dialog");
  await userEvent.click(within(dialog).getByRole("button", { name: /^Publish and remove/ }));
  expect(requests).toEqual(['POST /jobs {"kind":"publish-archives","archives":"mirror_seq1_000000.tar","prune":true}']);
});

test("a job that runs is cancelled after a confirmation", async () => {
  jobs = [job({ progress: { phase: "verifying", items: 0, items_total: 0, bytes: 0, bytes_total: 0 } })];
  open();
  await userEvent.click(await button(/^Cancel the job of/));
  await userEvent.click(within(await screen.findByRole("dialog")).getByRole("button", { name: "Cancel the job" }));
  expect(requests).toEqual(["POST /jobs/job-1/actions/cancel"]);
});

test("a job that is started is read each second, although none ran before", async () => {
  open();
  const publish = await button(/^Publish/);
  jobs = [job({ state: "queued" })];
  await userEvent.click(publish);
  await waitFor(() => screen.getAllByText("Queued"));
  archives.sets = [set({ step: "published", published_sequence: 1 })];
  jobs = [job({ state: "succeeded", publication })];
  await waitFor(() => screen.getAllByText("Published"), { timeout: 3000 });
});

test("archives are read again when a job ends", async () => {
  jobs = [job({})];
  open();
  await screen.findByText("Next");
  archives.sets = [set({ step: "published", published_sequence: 1 })];
  jobs = [job({ state: "succeeded", publication })];
  await waitFor(() => screen.getAllByText("Published"), { timeout: 5000 });
});

test("files of a publication are shown", async () => {
  archives.sets = [set({ step: "published", published_sequence: 1 })];
  jobs = [job({ state: "succeeded", publication: { ...publication, files: [{ name: "catalogSource-a.yaml", size: 20 }, { name: "install-config/imageContentSources.yaml", size: 20 }] } })];
  open();
  await userEvent.click(await button("Manifests for clusters"));
  const dialog = await screen.findByRole("dialog");
  within(dialog).getByRole("region", { name: "Into install-config.yaml" });
  await userEvent.click(within(dialog).getByRole("button", { name: "View catalogSource-a.yaml" }));
  await within(dialog).findByText("kind: CatalogSource");
  within(dialog).getByRole("button", { name: "Copy catalogSource-a.yaml" });
  const link = within(dialog).getByRole("link", { name: "Download install-config/imageContentSources.yaml" });
  expect(link.getAttribute("href")).toBe("/api/assisted-install/v2/jobs/job-1/downloads/files?file_name=install-config%2FimageContentSources.yaml");
  expect(link.getAttribute("download")).toBe("imageContentSources.yaml");
});

test("faults of a verification are listed, and those beyond are counted", async () => {
  const verification = { files: 1, members: 9, hashed_bytes: 2048, is_signed: false, faults: ["blob a differs", "blob b is missing"], fault_count: 312 };
  jobs = [job({ kind: "verify-archives", state: "failed", reason: "312 faults", verification })];
  open();
  const row = (await screen.findByText("stable-4.18 4.18.1")).closest("tr")!;
  await userEvent.click(await within(row).findByRole("button", { name: "Details" }));
  const dialog = await screen.findByRole("dialog");
  expect(within(dialog).getAllByRole("listitem").map(({ textContent }) => textContent)).toEqual(["blob a differs", "blob b is missing"]);
  within(dialog).getByText(/These are the first/);
});

test.each([
  ["a folder", { folder: "", registry: "", sets: [] }, "No folder of archives is set"],
  ["a registry", { folder: "/archives", registry: "", sets: [set({ step: "unknown" })] }, /^.*No registry is set/],
  ["archives", { folder: "/archives", registry: "r", sets: [] }, "No archives yet"],
] as const)("without %s the next step is shown", async (_, list, text) => {
  archives = list as unknown as ArchiveList;
  open();
  await screen.findByText(text);
  for (const publish of screen.queryAllByRole("button", { name: /^Publish/ })) {
    expect(publish.getAttribute("aria-disabled")).toBe("true");
    expect(document.getElementById(publish.getAttribute("aria-describedby") ?? "")?.textContent).toContain("ARCHIVES_REGISTRY");
  }
});

test("a server without jobs is named", async () => {
  refusals["GET /archives"] = [404, ""];
  refusals["GET /jobs?kinds=verify-archives,publish-archives&limit=50"] = [404, ""];
  open();
  await screen.findByText("This version of the server has no jobs");
  expect(screen.queryByText("Jobs")).toBeNull();
});
