import { cleanup, fireEvent, render, screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { MemoryRouter } from "react-router-dom-v5-compat";
import { SWRConfig } from "swr";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Job } from "../archives/records";
import type { RehearsalFinding } from "../rehearsal/records";
import Rehearsal from "./rehearsal";

// It measures text, which only browsers do.
vi.mock("../wizard/code_mirror", () => ({ CodeMirror: class { replace() {} destroy() {} } }));

const NEVER = "0001-01-01T00:00:00.000Z";
const INSTALL = "baseDomain: example.com\n";
const AGENT = "kind: AgentConfig\nhosts:\n- hostname: m0\n";
const OPTIONS = {
  profiles: [
    { name: "sno", purpose: "single node", control_plane: 1, arbiters: 0, workers: 0 },
    { name: "3+2", purpose: "three control plane nodes, two workers", control_plane: 3, arbiters: 0, workers: 2 },
  ],
  faults: [{ name: "ram", when: "inventory", effect: "4 GiB of memory" }, { name: "disk", when: "inventory", effect: "disks of 20 GB" }],
};
const MISTAKE: RehearsalFinding = { id: "has-memory-for-role", host: "m0", observed: "4 GiB", required: "16 GiB", fix: "Add memory." };

let jobs: Job[];
/** Changes that were requested, and refusals by method and path. */
let requests: [method: string, path: string, body?: unknown][];
let refusals: Record<string, [status: number, reason: string]>;

function job(members: Partial<Job>): Job {
  return { id: "job-1", kind: "rehearsal", state: "running", created_by: "admin", created_at: "2026-01-02T03:04:05Z", started_at: NEVER, ended_at: NEVER, ...members };
}
const ended = (verdict: string, findings: RehearsalFinding[] = [], good = false) =>
  job({ state: "succeeded", started_at: "2026-01-02T03:04:05Z", ended_at: "2026-01-02T03:04:25Z", rehearsal: { verdict, good, findings } });

beforeEach(() => {
  jobs = [];
  requests = [];
  refusals = {};
  vi.stubGlobal("fetch", async (url: string, { method = "GET", body }: RequestInit) => {
    const path = url.replace("/api/assisted-install/v2", "");
    if (method !== "GET") requests.push(typeof body === "string" ? [method, path, JSON.parse(body)] : [method, path]);
    const refusal = refusals[`${method} ${path}`];
    if (refusal) return new Response(JSON.stringify({ reason: refusal[1] }), { status: refusal[0] });
    if (path === "/rehearsal-options") return new Response(JSON.stringify(OPTIONS));
    if (path === "/openshift-versions") return new Response(JSON.stringify({ "4.18.30": { default: true }, "4.19.1": {} }));
    if (path.startsWith("/jobs?")) return new Response(JSON.stringify(jobs));
    const found = jobs.find(({ id }) => path === `/jobs/${id}`);
    if (path === "/jobs") return new Response(JSON.stringify(jobs[0]), { status: 202 });
    return found ? new Response(JSON.stringify(found)) : new Response("{}", { status: method === "GET" ? 404 : 202 });
  });
});
afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

const open = (address = "/rehearsal") => render(
  <SWRConfig value={{ provider: () => new Map() }}><MemoryRouter initialEntries={[address]}><Rehearsal /></MemoryRouter></SWRConfig>,
);
const button = (name: string | RegExp) => screen.findByRole("button", { name });
const file = (name: string, text: string) => Object.assign(new File([text], name), { text: async () => text });

test("two files are one site, which the request has", async () => {
  open();
  expect((await button("Rehearse")).getAttribute("aria-disabled")).toBe("true");
  await screen.findByText("Paste or open the site file first.");
  const input = screen.getByLabelText("Open files", { selector: "input" });
  await userEvent.upload(input, file("install-config.yaml", INSTALL));
  await screen.findByText(/Without agent-config.yaml/);
  await userEvent.upload(input, file("agent-config.yaml", AGENT));
  await screen.findByText("Documents: install-config.yaml, agent-config.yaml");
  jobs = [job({ state: "queued" })];
  await userEvent.click(await button("Rehearse"));
  expect(requests).toEqual([["POST", "/jobs", { kind: "rehearsal", rehearsal: { site: `${INSTALL}---\n${AGENT}`, profile: "", faults: [], seed: "1", release: "" } }]]);
  await screen.findByText(/It waits for the end/);
  expect(document.activeElement?.textContent).toBe("Rehearsal");
  expect(localStorage.length + sessionStorage.length).toBe(0);
});

test("files are dropped, too large ones refused", async () => {
  open();
  const input = await screen.findByLabelText("Open files", { selector: "input" });
  const drop = (one: File) => fireEvent.drop(input.closest(".atoll-drop")!, { dataTransfer: { types: ["Files"], files: [one] } });
  drop(file("disk.iso", " ".repeat((2 << 20) + 1)));
  await screen.findByText(/larger than a site file/);
  drop(file("agent-config.yaml", AGENT));
  await screen.findByText("Documents: agent-config.yaml");
  await screen.findByText(/install-config.yaml is missing/);
  expect(screen.queryByText(/larger than a site file/)).toBeNull();
  await userEvent.click(await button("Clear"));
  await screen.findByText("Paste or open the site file first.");
});

test("a profile with faults, a release and a seed", async () => {
  jobs = [job({})];
  open();
  await userEvent.click(await button("A profile"));
  await userEvent.click(screen.getByRole("radio", { name: "3+2" }));
  await userEvent.click(await button("Faults"));
  await userEvent.click(screen.getByRole("checkbox", { name: "ram" }));
  await userEvent.click(screen.getByRole("checkbox", { name: "disk" }));
  await userEvent.type(screen.getAllByLabelText(/^Hosts with the fault/)[0]!, "master-0, worker-1");
  await button("Faults (2)");
  await userEvent.selectOptions(screen.getByLabelText("Release"), "4.19.1");
  await userEvent.click(await button("More"));
  await userEvent.clear(screen.getByLabelText("Seed"));
  await userEvent.type(screen.getByLabelText("Seed"), "7");
  await userEvent.click(await button("Rehearse"));
  expect(requests[0]?.[2]).toEqual({ kind: "rehearsal", rehearsal: { site: "", profile: "3+2", faults: ["ram@master-0", "ram@worker-1", "disk"], seed: "7", release: "4.19.1" } });
});

test("a refused site is shown with its reason, and stays", async () => {
  refusals["POST /jobs"] = [400, "site: line 3 is no YAML"];
  open();
  await userEvent.upload(await screen.findByLabelText("Open files", { selector: "input" }), file("a.yaml", INSTALL));
  await userEvent.click(await button("Rehearse"));
  await screen.findByText(/line 3 is no YAML/);
  await screen.findByText("Correct it, and rehearse again.");
  await screen.findByText("Documents: install-config.yaml");
});

test("a running rehearsal is found, followed to its result, and kept in sight", async () => {
  jobs = [job({ progress: { phase: "installing, Installing", items: 2, items_total: 3, bytes: 0, bytes_total: 0, hosts: { "installing-in-progress, Rebooting": 1, known: 1 } } })];
  open();
  const table = await screen.findByRole("grid", { name: "Hosts by stage" });
  expect(within(table).getAllByRole("row").slice(1).map(({ textContent }) => textContent)).toEqual(["Known–1", "Installing in progressRebooting1"]);
  await screen.findByText("Cluster: Installing");
  jobs = [ended("installed, no mistakes", [], true)];
  // Also in the list, which is read again.
  await waitFor(() => expect(screen.getAllByText("Installed, no mistakes")).toHaveLength(2), { timeout: 3000 });
});

test("a rehearsal is cancelled", async () => {
  jobs = [job({})];
  open();
  await screen.findByText("Starting the server of the rehearsal");
  await userEvent.click(await button("Cancel the rehearsal"));
  expect(requests).toEqual([["POST", "/jobs/job-1/actions/cancel"]]);
  jobs = [job({ state: "cancelled" })];
  await screen.findByText(/was cancelled/, {}, { timeout: 3000 });
});

test("mistakes are listed with their remedy, and copied", async () => {
  const write = vi.fn();
  vi.stubGlobal("navigator", Object.assign(Object.create(navigator) as Navigator, { clipboard: { writeText: write } }));
  jobs = [ended("not installed (insufficient), 2 mistakes", [MISTAKE, { ...MISTAKE, host: "", id: "refused" }])];
  open("/rehearsal?job=job-1");
  const table = await screen.findByRole("grid", { name: "Mistakes" });
  expect(within(table).getAllByRole("row").slice(1).map(({ textContent }) => textContent)).toEqual([
    "Clusterrefused4 GiB16 GiBAdd memory.", "m0has-memory-for-role4 GiB16 GiBAdd memory.",
  ]);
  fireEvent.click(await button("Copy the report"));
  expect(write.mock.calls[0]?.[0]).toContain("Verdict: not installed (insufficient), 2 mistakes.");
});

test("a failure of the server is no mistake of the site", async () => {
  jobs = [job({ state: "failed", reason: "its server ended 5 times" })];
  open("/rehearsal?job=job-1");
  await screen.findByText(/This is no mistake of the site/);
});

test("earlier rehearsals are shown and removed, jobs of archives are not listed", async () => {
  jobs = [ended("installed, 1 mistake", [MISTAKE]), job({ id: "job-2", kind: "verify-archives", state: "succeeded" })];
  open();
  const table = await screen.findByRole("grid", { name: "Earlier rehearsals" });
  expect(within(table).getAllByRole("row")).toHaveLength(2);
  await userEvent.click(await button(/^Show/));
  await screen.findByText(/installed all the same/);
  await userEvent.click(await button(/^Remove/));
  const removed = jobs;
  jobs = [];
  await userEvent.click(within(await screen.findByRole("dialog")).getByRole("button", { name: "Remove the rehearsal" }));
  expect(requests).toEqual([["DELETE", `/jobs/${removed[0]!.id}`]]);
  await screen.findByText("No rehearsals yet");
  expect(screen.queryByText(/installed all the same/)).toBeNull();
});

test("an older server has no rehearsals", async () => {
  refusals["GET /rehearsal-options"] = [404, "no such path"];
  open();
  await screen.findByText("This version of the server has no rehearsals");
  expect(screen.queryByText("New rehearsal")).toBeNull();
});
