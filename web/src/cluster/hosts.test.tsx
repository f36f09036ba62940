import { cleanup, render, screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { MemoryRouter } from "react-router-dom-v5-compat";
import { afterEach, beforeAll, expect, test, vi } from "vitest";
import type { Cluster, Host } from "../api/records";
import { startTexts } from "../i18n";
import { Hosts } from "./hosts";
import { InstallCause } from "./install_cause";

beforeAll(startTexts);
afterEach(cleanup);

const failing = (messages: Record<string, string>) => JSON.stringify({ group: Object.entries(messages).map(([id, message]) => ({ id, status: "failure", message })) });
const NO_NETWORK = { "machine-cidr-defined": "Machine network: it is not defined" };
const NO_TIME = { "ntp-synced": "The host's clock follows none of its 0 time sources" };
const MEMORY = "Memory: the host has 4096 MiB, needs 8192 MiB";

const host = (name: string, messages: Record<string, string>, members: Partial<Host> = {}): Host =>
  ({ id: name, requested_hostname: name, cluster_id: "c", infra_env_id: "i", status: "pending-for-input", role: "master", validations_info: failing(messages), ...members });
const cluster = (hosts: Host[], members: Partial<Cluster> = {}): Cluster => ({
  id: "c", status: "pending-for-input", hosts,
  validations_info: failing({ "machine-cidr-defined": "machine_networks: none is defined", "ingress-vips-defined": "ingress_vips: none is set", "api-vips-defined": "api_vips: none is set" }), ...members,
});

const show = (of: Cluster) => render(<MemoryRouter><Hosts hosts={of.hosts ?? []} cluster={of} reload={() => {}} /></MemoryRouter>);
const listed = () => within(screen.getByRole("list")).getAllByRole("listitem").map(({ textContent }) => textContent);
const row = (name: string) => within(screen.getByRole("row", { name: new RegExp(name) }));
const href = (element: HTMLElement) => element.getAttribute("href");

test("mistakes are listed once, in the order of their correction, with the step that corrects them", () => {
  const hosts = ["m-0", "m-1", "m-2"].map((name) => host(name, { ...NO_NETWORK, ...NO_TIME }));
  show(cluster([...hosts, host("w-0", { ...NO_NETWORK, "has-memory-for-role": MEMORY, "has-min-memory": MEMORY }, { status: "insufficient" })]));
  expect(listed()).toEqual([
    `w-0: ${MEMORY} Change hosts and roles`,
    "api_vips: none is set Set the API address",
    "ingress_vips: none is set Set the ingress address",
    "machine_networks: none is defined Set the machine networks",
    "m-0, m-1, m-2: The host's clock follows none of its 0 time sources Set time sourcesIt does not prevent the installation.",
  ]);
  expect(href(row("m-0").getByRole("link"))).toBe("/assisted-installer/clusters/c?step=networking");
  expect(row("m-0").getByRole("link").textContent).toBe("Set the machine networks");
  row("w-0").getByText(MEMORY, { exact: false });
});

test("hosts without a mistake have the text of their state, and the word of the wizard", () => {
  show(cluster([host("m-0", {}, { status: "known", status_info: "The host is ready to be installed" })], { status: "ready", validations_info: "{}" }));
  expect(screen.queryByRole("list")).toBeNull();
  row("m-0").getByText("Ready");
  row("m-0").getByText("The host is ready to be installed");
});

test("no step is linked where the wizard cannot change the cluster any more", () => {
  show(cluster([host("m-0", NO_TIME, { status: "known" })], { status: "installed" }));
  expect(screen.queryByRole("link")).toBeNull();
  row("m-0").getByText(/follows none/);
});

async function actions(of: Cluster) {
  show(of);
  await userEvent.click(screen.getByRole("checkbox", { name: /^Select row/ }));
  await userEvent.click(screen.getByRole("button", { name: "Actions on 1 hosts" }));
  return screen.getAllByRole("menuitem");
}

test("a host is installed alone only where it is added to a cluster, and ready", async () => {
  const named = (items: HTMLElement[]) => items.find(({ textContent }) => textContent?.startsWith("Install"));
  expect(named(await actions(cluster([host("m-0", {}, { status: "known" })])))).toBeUndefined();
  cleanup();
  const waiting = named(await actions(cluster([host("m-0", {}, { status: "insufficient" })], { status: "adding-hosts" })));
  expect(waiting?.hasAttribute("disabled")).toBe(true);
  expect(waiting?.textContent).toContain("Only hosts that are ready can be installed.");
  cleanup();
  expect(named(await actions(cluster([host("m-0", {}, { status: "known" })], { status: "adding-hosts" })))?.hasAttribute("disabled")).toBe(false);
});

test("the cause beside the button is the mistake that is corrected first", () => {
  const cause = (of: Cluster) => render(<MemoryRouter><InstallCause cluster={of} id="cause" /></MemoryRouter>).container.textContent;
  expect(cause(cluster([host("m-0", { ...NO_NETWORK, ...NO_TIME })]))).toBe("api_vips: none is set Set the API addressand 2 more");
  expect(cause(cluster([host("m-0", { connected: "The host has sent no heartbeat" }, { status: "disconnected" })], { validations_info: "{}" }))).toBe("m-0: The host has sent no heartbeat ");
  expect(cause(cluster([], { validations_info: "{}", status_info: "the checks run" }))).toBe("The checks run ");
});

test("a failed host is retried where the service allows it, with the boot that completes the retry", async () => {
  const named = (items: HTMLElement[], name: string) => items.find(({ textContent }) => textContent === name);
  const failed = { status: "error", status_info: "Failed - disk" };
  const refused = await actions(cluster([host("w-0", {}, failed)], { status: "installing" }));
  expect(named(refused, "Retry")).toBeUndefined();
  expect(named(refused, "Reset")).toBeDefined();
  cleanup();
  const offered = await actions(cluster([host("w-0", {}, { ...failed, can_retry: true })], { status: "installing" }));
  expect(named(offered, "Reset")).toBeUndefined();
  const requests: string[] = [];
  vi.stubGlobal("fetch", (address: string, { method }: RequestInit) => {
    requests.push(`${method} ${String(address)}`);
    return Promise.resolve(new Response("{}", { headers: { "content-type": "application/json" } }));
  });
  await userEvent.click(named(offered, "Retry")!);
  const dialog = within(await screen.findByRole("dialog"));
  dialog.getByText(/installation of w-0\? Then boot from the discovery image again/);
  const button = dialog.getByRole("button", { name: "Retry" });
  await waitFor(() => expect(button.hasAttribute("disabled")).toBe(false));
  await userEvent.click(button);
  await waitFor(() => expect(requests).toHaveLength(2));
  expect(requests[0]).toContain("/infra-envs/i/hosts/w-0/actions/reset?dry_run=true");
  expect(requests[1]).toMatch(/POST .*\/infra-envs\/i\/hosts\/w-0\/actions\/reset$/);
  vi.unstubAllGlobals();
});
