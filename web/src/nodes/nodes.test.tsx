import { cleanup, render, screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { MemoryRouter } from "react-router-dom-v5-compat";
import { SWRConfig } from "swr";
import { afterEach, beforeAll, beforeEach, expect, test, vi } from "vitest";
import { startTexts } from "../i18n";
import { Nodes } from "./nodes";
import type { ClusterNode, NodeList, NodeReplacement, ReplacementPlan, ReplacementReport, ReplacementStep } from "./records";

const AT = "2026-01-02T03:04:05Z";
const PLAN = "/clusters/c/node-replacement/plan";

let nodes: NodeList;
let replacement: NodeReplacement;
let plan: ReplacementPlan;
let requests: [method: string, path: string, body?: unknown][];
let refusals: Record<string, [status: number, reason: string]>;

function node(name: string, members: Partial<ClusterNode> = {}): ClusterNode {
  return {
    node: name, is_ready: true, reason: "", is_cordoned: false, is_control_plane: true, address: "10.0.0.1", machine: `m-${name}`, machine_phase: "Running",
    host: `h-${name}`, host_state: "provisioned", is_powered_on: true, host_error: "", ...members,
  };
}
function step(name: string, members: Partial<ReplacementStep> = {}): ReplacementStep {
  return { step: name, title: `Title of ${name}`, state: "planned", only_waits: false, undo: "stays", ...members };
}
const place = (name: string) => ({ name, address: "10.0.0.1" });
function report(members: Partial<ReplacementReport> = {}): ReplacementReport {
  return {
    id: "r", updated_at: AT, kind: "failed", old: place("cp-1"), new: place("cp-1"), state: "unfinished", waiting: null, stopped: null, window: null,
    steps: [step("take-snapshot", { state: "finished", undo: "nothing" }), step("join-node", { state: "started", only_waits: true }), step("add-member")], ...members,
  };
}

// Texts have their values.
beforeAll(startTexts);

beforeEach(() => {
  nodes = {
    url: "https://api.example.org:6443", version: "4.18.30", topology: "HighlyAvailable", upgrade: null, etcd: "3 members are available", rolling_out: [], pending_csrs: [], certificates: [],
    nodes: [node("w-0", { is_control_plane: false }), node("cp-1", { is_ready: false, reason: "kubelet stopped posting", is_powered_on: false }), node("cp-0"), node("", { node: null, machine: "m-spare" })],
  };
  replacement = { run: null, last: null };
  plan = {
    kind: "failed", old: place("cp-1"), new: place("cp-1"), machine: "m-cp-1", host: "h-cp-1", has_machine_api: true, is_operator_managed: true,
    voters: { voters: 3, healthy: 2 }, fewest_voters: 2, steps: [step("take-snapshot", { undo: "nothing" }), step("pause-pool", { undo: "reversible" })], closed: [],
  };
  requests = [];
  refusals = {};
  sessionStorage.clear();
  vi.stubGlobal("fetch", async (url: string, { method = "GET", body }: RequestInit) => {
    const path = url.replace("/api/assisted-install/v2", "");
    if (method !== "GET") requests.push([method, path, JSON.parse(body as string)]);
    const refusal = refusals[`${method} ${path}`];
    if (refusal) return new Response(JSON.stringify({ reason: refusal[1] }), { status: refusal[0] });
    const bodies: Record<string, unknown> = { "/clusters/c/nodes": nodes, "/clusters/c/node-replacement": replacement, [PLAN]: plan };
    return new Response(JSON.stringify(bodies[path]), { status: path in bodies ? 200 : 404 });
  });
});
afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

const open = () => render(<SWRConfig value={{ provider: () => new Map() }}><MemoryRouter><Nodes cluster="c" /></MemoryRouter></SWRConfig>);
const button = (name: string | RegExp) => screen.findByRole("button", { name });

test("the control plane is first, Machines without a node are listed, and only its nodes can be replaced", async () => {
  open();
  const table = await screen.findByRole("grid", { name: "Nodes" });
  const rows = within(table).getAllByRole("row").slice(1).map(({ textContent }) => textContent ?? "");
  expect(rows.map((text) => /^(cp-\d|w-\d|without a node)/.exec(text)?.[0])).toEqual(["cp-0", "cp-1", "without a node", "w-0"]);
  expect(rows[1]).toContain("Kubelet stopped posting");
  expect(rows[1]).toContain("Switched off");
  expect(within(table).getAllByRole("button", { name: /^Plan replacement:/ })).toHaveLength(2);
  await screen.findByText("3 members are available");
  expect(screen.queryByText("Pending certificate requests")).toBeNull();
});

test("pending requests, ending certificates and an upgrade are shown", async () => {
  nodes.pending_csrs = [{ name: "csr-1", signer: "kubernetes.io/kubelet-serving", requestor: "system:node:cp-1", created_at: AT }];
  nodes.certificates = [{ secret: "late", not_after: AT, days_left: 400 }, { secret: "soon", not_after: AT, days_left: 12 }, { secret: "ended", not_after: AT, days_left: -1 }];
  nodes.upgrade = "Working towards 4.18.31";
  open();
  await screen.findByText("csr-1");
  await screen.findByText("An upgrade is under way: Working towards 4.18.31");
  const table = await screen.findByRole("grid", { name: "Certificates that end soon" });
  expect(within(table).getAllByRole("row").slice(1).map(({ firstChild }) => firstChild?.textContent)).toEqual(["ended", "soon"]);
});

test("a plan warns of two voters, and gives the command", async () => {
  open();
  await userEvent.click(await button("Plan replacement: cp-1"));
  await userEvent.click(await button("Show the plan"));
  expect(requests).toEqual([["POST", PLAN, { node: "cp-1" }]]);
  await screen.findByText("No voter can be spared: do not reboot a control node");
  const steps = await screen.findByRole("grid", { name: "Steps" });
  expect(within(steps).getAllByRole("row").slice(1).map(({ textContent }) => textContent)).toEqual([
    "1. Title of take-snapshotPlannedNothing to undo", "2. Title of pause-poolPlannedAn abort undoes it",
  ]);
  await screen.findByText("atoll node replace cp-1 --kubeconfig kubeconfig");
  // Another choice needs another plan.
  await userEvent.click(screen.getByLabelText("Another name and address"));
  expect(screen.queryByRole("grid", { name: "Steps" })).toBeNull();
  expect((await button("Show the plan")).hasAttribute("disabled")).toBe(true);
  await userEvent.type(screen.getByLabelText(/^Name of the new node/), "cp-3");
  await userEvent.type(screen.getByLabelText(/^IP address of the new node/), "10.0.0.3");
  await userEvent.click(screen.getByLabelText("cp-0 (Ready)"));
  await userEvent.click(screen.getByLabelText(/leaves although it is healthy/));
  plan = { ...plan, fewest_voters: 3, closed: [{ reason: "an upgrade runs: wait for its end", may_open: false }] };
  await userEvent.click(await button("Show the plan"));
  expect(requests[1]?.[2]).toEqual({ node: "cp-1", new_name: "cp-3", new_address: "10.0.0.3", unwanted: true, also_lost: ["cp-0"] });
  await screen.findByText(/an upgrade runs/i);
  await screen.findByText("It needs you.");
  await screen.findByText("atoll node replace cp-1 --kubeconfig kubeconfig --new-name cp-3 --new-address 10.0.0.3 --unwanted --also-lost cp-0");
  expect(screen.queryByText(/No voter can be spared/)).toBeNull();
});

test("a refused plan is shown with its reason", async () => {
  refusals[`POST ${PLAN}`] = [409, "the member of cp-1 is healthy: choose that it is unwanted"];
  open();
  await userEvent.click(await button("Plan replacement: cp-1"));
  await userEvent.click(await button("Show the plan"));
  await screen.findByText(/The member of cp-1 is healthy/);
  await screen.findByText("Correct the cause, then try again.");
  expect(screen.queryByText(/^atoll node replace/)).toBeNull();
});

test("a run is followed: its holder, the wait, the window of two voters, and its end", async () => {
  replacement = {
    run: { holder: "alice@bastion, process 4711", since: AT, seen_at: AT },
    last: report({ waiting: { step: "join-node", title: "Title of join-node", reason: "the node is not ready yet", since: AT }, window: { since: AT, until: null } }),
  };
  open();
  await screen.findByText("alice@bastion, process 4711");
  await screen.findByText(/the node is not ready yet/i);
  await screen.findByText("No voter can be spared: do not reboot a control node");
  const steps = await screen.findByRole("grid", { name: "Steps" });
  expect(within(steps).getAllByRole("row").slice(1).map(({ textContent }) => /(Finished|Waiting|Planned)/.exec(textContent ?? "")?.[0])).toEqual(["Finished", "Waiting", "Planned"]);
  expect(screen.queryByText(/Run the command again/)).toBeNull();
  replacement = { run: null, last: report({ state: "completed", window: { since: AT, until: "2026-01-02T03:05:05Z" } }) };
  await screen.findByText("Completed", {}, { timeout: 4000 });
  await screen.findByText(/etcd had two voters for 1/);
  expect(screen.queryByRole("grid", { name: "Steps" })).toBeNull();
});

test("a run beside an ended replacement is another repair", async () => {
  replacement = { run: { holder: "bob@bastion, process 1", since: AT, seen_at: AT }, last: report({ state: "aborted" }) };
  open();
  const [repair, ended] = await screen.findAllByRole("heading", { name: /repair is under way|Replacement of cp-1/ });
  expect([repair?.textContent, ended?.textContent]).toEqual(["A repair is under way", "Replacement of cp-1 Aborted"]);
  await screen.findByText("bob@bastion, process 1");
});

test("a stopped run is continued by the same command", async () => {
  replacement = { run: null, last: report({ stopped: { step: "join-node", title: "Title of join-node", reason: "waited for 120 minutes" } }) };
  open();
  await screen.findByText("Run the command again to continue");
  await screen.findByText(/waited for 120 minutes/i);
  await screen.findByText("atoll node replace cp-1 --kubeconfig kubeconfig");
  expect(screen.getAllByText("Stopped")).toHaveLength(2);
});

test.each([
  [409, "cluster has no kubeconfig yet", "Cluster has no kubeconfig yet", /Nodes are read with the cluster's kubeconfig/],
  [503, "the API of the cluster does not answer", "The API of the cluster does not answer", /this site reaches its API/],
])("%s has the remedy of a cluster", async (status, reason, shown, remedy) => {
  refusals["GET /clusters/c/nodes"] = [status, reason];
  refusals["GET /clusters/c/node-replacement"] = [status, reason];
  open();
  await screen.findByText(new RegExp(shown));
  await screen.findByText(remedy);
  expect(screen.getAllByText(remedy)).toHaveLength(1);
});

test("an older server reads no nodes", async () => {
  refusals["GET /clusters/c/nodes"] = [404, "no such path"];
  refusals["GET /clusters/c/node-replacement"] = [404, "no such path"];
  open();
  await screen.findByText("This version of the server reads no nodes");
  await waitFor(() => expect(screen.queryByText("Nodes")).toBeNull());
});
