// Dialogs, menus and popovers of the library's pages: none has a serious or critical finding of axe.

import type { Browser, Locator, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { type CleanPage, assertClean, axe, launch, openPage } from "./browser";
import { type Site, startSite } from "./site";

const BASE = "/api/assisted-install/v2";
const WIZARD = "/assisted-installer/clusters";
const NAME = "dialogs";
const MASTERS = 3;
const CLUSTER = /\/v2\/clusters\/[\w-]+$/;

let site: Site;
let browser: Browser;
let clean: CleanPage;
let page: Page;
let dialog: Locator;
/** A cluster whose hosts are ready. */
let cluster: string;

async function api<T>(method: string, path: string, body?: object): Promise<T> {
  const response = await fetch(`${site.url}${BASE}${path}`, { method, headers: { "content-type": "application/json" }, ...(body && { body: JSON.stringify(body) }) });
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
  return (await response.json()) as T;
}

beforeAll(async () => {
  [site, browser] = await Promise.all([startSite(), launch()]);
  const common = { name: NAME, openshift_version: "4.18.30", pull_secret: site.pullSecret };
  cluster = (await api<{ id: string }>("POST", "/clusters", { ...common, base_dns_domain: "example.org" })).id;
  const infraEnv = await api<{ id: string }>("POST", "/infra-envs", { ...common, cluster_id: cluster, cpu_architecture: "x86_64" });
  const { url } = await api<{ url: string }>("GET", `/infra-envs/${infraEnv.id}/downloads/image-url`);
  await site.boot(url, { masters: MASTERS });
  const hosts = async () => (await api<{ hosts?: { inventory?: string }[] }>("GET", `/clusters/${cluster}`)).hosts ?? [];
  while ((await hosts()).filter(({ inventory }) => inventory).length < MASTERS) await new Promise((proceed) => setTimeout(proceed, 500));
  await api("PATCH", `/clusters/${cluster}`, { api_vips: [{ ip: "192.168.126.100" }], ingress_vips: [{ ip: "192.168.126.101" }] });
});

afterEach(async () => {
  await clean?.screenshot("end");
  await clean?.page.context().close();
});

afterAll(async () => {
  await browser?.close();
  await site?.stop();
});

async function start(name: string, path: string, heading: string | RegExp): Promise<void> {
  clean = await openPage(browser, { url: site.url, name: `dialogs-${name}` });
  page = clean.page;
  dialog = page.getByRole("dialog");
  page.setDefaultTimeout(0);
  await clean.open(path);
  await page.getByRole("heading", { name: heading }).first().waitFor();
}

/** Opens the wizard of the cluster, and goes to a step. */
async function startWizard(name: string, step = "Host discovery"): Promise<void> {
  await start(name, `${WIZARD}/${cluster}`, NAME);
  await button(step).click();
  await page.getByRole("heading", { name: step }).first().waitFor();
}

const button = (name: string | RegExp, inside: Page | Locator = page) => inside.getByRole("button", { name, exact: true }).first();

async function check(step: string): Promise<void> {
  await clean.screenshot(step);
  expect({ step, axe: await axe(page) }).toEqual({ step, axe: [] });
}

/** Opens what an element opens, checks it and closes it. */
async function opened(step: string, opener: Locator, inside?: () => Promise<void>): Promise<void> {
  await opener.click();
  await dialog.or(page.getByRole("menu")).or(page.getByRole("listbox")).first().waitFor();
  await check(step);
  await inside?.();
  await page.keyboard.press("Escape");
  await dialog.or(page.getByRole("menu")).or(page.getByRole("listbox")).first().waitFor({ state: "detached" });
}

/** Responds with another state of the cluster and its hosts, as far as the page knows them. */
async function respondAs(members: object, host: object = {}): Promise<void> {
  await page.unroute(CLUSTER);
  await page.route(CLUSTER, async (route) => {
    const response = await route.fetch();
    const real = (await response.json()) as { hosts?: object[] };
    await route.fulfill({ response, json: { ...real, ...members, ...(real.hosts && { hosts: real.hosts.map((one) => ({ ...one, ...host })) }) } });
  });
  await page.reload();
}

async function next(heading: string | RegExp): Promise<void> {
  await button("Next").click();
  await page.getByRole("heading", { name: heading }).first().waitFor();
}

test("new cluster", async () => {
  await start("new", `${WIZARD}/~new`, "Cluster details");
  const many = await api<Record<string, object>>("GET", "/openshift-versions");
  const [one] = Object.values(many);
  await page.route(`**${BASE}/openshift-versions*`, (route) => route.fulfill({ json: { ...many, "4.17.1": { ...one, display_name: "4.17.1", default: false } } }));
  await page.reload();
  await page.getByRole("heading", { name: "Cluster details" }).waitFor();
  await page.getByLabel("Cluster name").fill("Not valid");
  await opened("validation", button("Validation"));
  for (const name of ["CPU architecture", "Integrate with external partner platforms", /^Number of control plane nodes/]) await opened(String(name), button(name));
  await opened("version", button("Platform version"));
  await button("Platform version").click();
  await page.getByText("Show all available versions").click();
  await dialog.waitFor();
  await check("versions");
  await button("Choose", dialog).click();
  await check("versions-menu");
  assertClean(clean);
});

test("host discovery", async () => {
  await startWizard("discovery");
  const row = page.getByRole("row", { name: /master-0/ }).first();
  await opened("requirements", button("Minimum hardware requirements"));
  await opened("troubleshooting", button("Host not showing up?"));
  await opened("events", button("View cluster events"), async () => {
    for (const name of ["Hosts", "Severity"]) {
      await button(name, dialog).click();
      await check(`events-${name}`);
      await button(name, dialog).click();
    }
  });
  await button("Add hosts").click();
  await dialog.waitFor();
  await dialog.getByLabel("Show proxy settings").check();
  await dialog.getByLabel("Configure cluster-wide trusted certificates").check();
  await check("image");
  await button("Provisioning type", dialog).click();
  await check("image-types");
  // Only the menu closes.
  await page.keyboard.press("Escape");
  await page.getByRole("menu").waitFor({ state: "detached" });
  await button("Cancel", dialog).click();
  await dialog.waitFor({ state: "detached" });

  await opened("help", button("Help"));
  await opened("role", button(/^(Auto-assign|Control plane node)$/, row));
  await opened("status", button("Ready", row));
  await opened("hostname", button("master-0", row), async () => {
    await dialog.getByRole("textbox").fill("Not valid!");
    await check("hostname-invalid");
    await button("Cancel", dialog).click();
  });
  await opened("row-actions", button("Actions", row));
  for (const item of ["Change hostname", "View host events", "Remove host"]) {
    await button("Actions", row).click();
    await opened(item, page.getByRole("menuitem", { name: item }));
  }
  await opened("selection", button("Select all"));
  await page.getByRole("checkbox", { name: "Select all" }).check();
  for (const item of ["Change hostname", "Remove"]) {
    await button("Actions").click();
    await check("mass-actions");
    await opened(`mass-${item}`, page.getByRole("menuitem", { name: item }));
  }
  assertClean(clean);
});

test("hosts with failing validations", async () => {
  await startWizard("validations");
  const failing = (category: string, ...ids: string[]) => ({ [category]: ids.map((id) => ({ id, status: "failure", message: "It failed" })) });
  await respondAs({ status: "insufficient" }, {
    status: "insufficient", ntp_sources: "[]",
    validations_info: JSON.stringify({ ...failing("hardware", "has-min-memory", "hostname-valid"), ...failing("network", "ntp-synced", "mtu-valid") }),
  });
  await button("Host discovery").click();
  const row = page.getByRole("row", { name: /master-0/ }).first();
  await opened("status", button("Insufficient", row));
  await button("Details", row).click();
  await check("details");
  await page.getByRole("button", { name: /Unreachable|Unsynced|Failed|NTP/ }).first().click();
  await dialog.waitFor();
  await check("ntp-status");
  await button("Add NTP sources").click();
  await page.getByRole("dialog", { name: "Add NTP sources" }).waitFor();
  await check("ntp");
  assertClean(clean);
});

test("the other steps", async () => {
  await startWizard("steps", "Review and create");
  await button(/^Preflight checks/).click();
  await check("preflight");
  await button("Storage").click();
  await page.getByRole("heading", { name: "Storage" }).first().waitFor();
  await button("Details", page.getByRole("row", { name: /master-0/ }).first()).click();
  const disks = page.getByRole("grid", { name: "Host's disks table" });
  await check("disks");
  await opened("disk-role", button("None", disks));
  await opened("limitations", button(/^\d$/, disks));
  await next("Networking");
  await opened("subnets", button(/192\.168|subnet/i));
  await page.getByLabel("Use advanced networking").check();
  await check("advanced");
  await opened("network-events", button("View cluster events"));
  await button("Cluster details").click();
  await page.getByLabel(/custom manifests/i).first().check();
  await next("Operators");
  await button(/^Single Operators/).click();
  await check("operators");
  await opened("bundle", button("Help"));
  await next("Host discovery");
  await next("Storage");
  await next("Networking");
  await next("Custom manifests");
  await opened("folder", button(/^Folder/));
  await page.getByLabel("File name").fill("a.yaml");
  await check("manifest");
  await button("Add another manifest").waitFor();
  assertClean(clean);
});

test("static network", async ({ task }) => {
  await start("static", `${WIZARD}/~new`, "Cluster details");
  await page.getByLabel("Cluster name").fill(`static-${task.result?.retryCount ?? 0}`);
  await page.getByLabel("Base domain").fill("example.org");
  await page.getByLabel("Pull secret", { exact: false }).first().fill(site.pullSecret);
  await page.getByLabel(/Static IP/).check();
  await next("Static network configurations");
  await page.getByLabel("Use VLAN").check();
  await page.getByLabel("Dual-stack").check();
  await check("wide");
  await page.getByLabel("Use VLAN").uncheck();
  await page.getByLabel("IPv4").first().check();
  await page.getByTestId("ipv4-machine-network-ip").fill("192.168.126.0");
  await page.getByTestId("ipv4-machine-network-prefix-length").fill("24");
  await page.getByTestId("ipv4-gateway").fill("192.168.126.1");
  await page.getByLabel("DNS").fill("192.168.126.1");
  await next("Host specific configurations");
  await page.getByLabel(/^MAC Address/i).fill("52:54:00:00:00:01");
  await page.getByLabel(/^IP address/).fill("192.168.126.10");
  await button("Add another host configuration").click();
  await check("hosts");
  await opened("remove-host", button("Remove"));
  await page.getByRole("checkbox", { name: /bond/i }).last().check();
  await check("bond");
  await page.getByRole("checkbox", { name: /bond/i }).last().uncheck();
  await check("bond-removal");
  await page.keyboard.press("Escape");
  await button("Network-wide configurations").click();
  await page.getByLabel("YAML view").click();
  await dialog.waitFor();
  await check("view");
  await button("Change", dialog).click();
  await button("Add another MAC to interface name mapping").click();
  await button("Remove").waitFor();
  await check("yaml");
  // Keys remove, too.
  await button("Remove").focus();
  await page.keyboard.press("Enter");
  await button("Remove").waitFor({ state: "detached" });
  assertClean(clean);
});

test("installation", async () => {
  await start("installation", `${WIZARD}/${cluster}`, NAME);
  const since = "2026-01-02T03:04:05.678Z";
  const progress = { progress: { total_percentage: 40 }, install_started_at: since, install_completed_at: since };
  const operators = [{ name: "console", operator_type: "builtin", status: "available" }];
  const credentials = { username: "kubeadmin", password: "made up", console_url: "https://console.apps.dialogs.example.org" };
  await respondAs({ status: "installing", ...progress }, { status: "installing-in-progress", progress: { current_stage: "Writing image to disk" } });
  await opened("abort", button("Abort installation"));
  await respondAs({ status: "error", ...progress }, { status: "error", status_info: "Failed" });
  await opened("reset", button("Reset Cluster"));
  await page.route(`**${BASE}/clusters/*/credentials`, (route) => route.fulfill({ json: credentials }));
  await respondAs({ status: "installed", monitored_operators: operators, ...progress }, { status: "installed" });
  await opened("console", button("Not able to access the Web Console?"));
  await button("Host inventory (3)").click();
  await check("inventory");
  assertClean(clean);
});

test("hosts that are added later", async () => {
  await start("later", `${WIZARD}/${cluster}`, NAME);
  await respondAs({ status: "adding-hosts", kind: "AddHostsCluster", import_api_vip_connectivity: false }, {
    status: "insufficient", kind: "AddToExistingClusterHost",
    validations_info: JSON.stringify({ network: [{ id: "ignition-downloadable", status: "failure", message: "It failed" }] }),
  });
  await page.getByRole("heading", { name: "Host Discovery" }).waitFor();
  const row = page.getByRole("row", { name: /master-0/ }).first();
  await button(/^Insufficient/, row).click();
  await dialog.waitFor();
  await check("status");
  await button("set the IP or domain used to reach the cluster.").click();
  await dialog.getByRole("textbox").waitFor();
  await check("api");
  await page.keyboard.press("Escape");
  await page.reload();
  await button("Add hosts").click();
  await dialog.waitFor();
  await button("CPU architecture", dialog).click();
  await check("cpu");
  await button("CPU architecture", dialog).click();
  await button("Next", dialog).click();
  await page.getByTestId("generate-discovery-iso-button").waitFor();
  await check("generate");
  await page.getByTestId("generate-discovery-iso-button").click();
  await page.getByRole("link", { name: "Download Discovery ISO" }).waitFor();
  await check("download");
  await button("Close", dialog).click();
  await dialog.waitFor({ state: "detached" });
  assertClean(clean);
});

test("the service is away", async () => {
  await start("away", `${WIZARD}/${cluster}`, NAME);
  await page.route(`**${BASE}/clusters/*`, (route) => route.fulfill({ status: 503, json: { code: "503", kind: "Error", id: 503, href: "", reason: "restarting" } }));
  await dialog.waitFor();
  await check("poll");
  assertClean(clean, /^503 /);
});
