// The site's pages with much data, by keyboard, while a service restarts, in two tabs; the library's in all sizes.

import type { Browser } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { type CleanPage, assertClean, axe, launch, openPage, overflowing, settled } from "./browser";
import { CLUSTER_ID, LARGE, SOME, refuseWith, respondAgain, respondWith } from "./made_up";
import { type Site, startSite } from "./site";

const NARROW = { width: 360, height: 740 };
const CLUSTERS = 500;

let site: Site;
let browser: Browser;
const opened: CleanPage[] = [];

beforeAll(async () => {
  [site, browser] = await Promise.all([startSite(), launch()]);
});

afterEach(async () => {
  for (const { page } of opened.splice(0)) await page.context().close();
});

afterAll(async () => {
  await browser?.close();
  await site?.stop();
});

async function newPage(name: string, options: Partial<Parameters<typeof openPage>[1]> = {}): Promise<CleanPage> {
  const clean = await openPage(browser, { url: site.url, name, ...options });
  clean.page.setDefaultTimeout(0);
  opened.push(clean);
  return clean;
}

test.each([["section", {}], ["section-narrow", { viewport: NARROW }], ["section-dark", { colorScheme: "dark" as const }]])("incomplete releases name their missing images: %s", async (step, options) => {
  const clean = await newPage("release-images", options);
  const { page } = clean;
  await respondWith(page, SOME);
  await clean.open("/versions");
  await settled(page, "Versions");
  await page.getByText("Incomplete").first().scrollIntoViewIfNeeded();
  await clean.screenshot(step);
  expect(await overflowing(page)).toEqual([]);
  expect(await axe(page)).toEqual([]);
  assertClean(clean);
});

test("500 clusters can be searched", async () => {
  const clean = await newPage("many-clusters");
  const { page } = clean;
  await respondWith(page, LARGE);
  const start = performance.now();
  await clean.open("/clusters");
  await page.getByRole("link", { name: "cluster-1", exact: true }).waitFor();
  const shown = performance.now();
  await page.getByRole("textbox", { name: "Filter" }).fill(`cluster-${CLUSTERS}`);
  await page.getByRole("link", { name: `cluster-${CLUSTERS}` }).waitFor();
  await page.getByRole("link", { name: "cluster-1", exact: true }).waitFor({ state: "detached" });
  console.info(`500 clusters: shown after ${Math.round(shown - start)} ms, searched in ${Math.round(performance.now() - shown)} ms`);
  const session = await page.context().newCDPSession(page);
  await session.send("HeapProfiler.collectGarbage");
  await session.send("Performance.enable");
  const { metrics } = await session.send("Performance.getMetrics");
  const heap = metrics.find(({ name }) => name === "JSHeapUsedSize")?.value ?? 0;
  console.info(`500 clusters: ${(heap / 1e6).toFixed(1)} MB of heap`);
  assertClean(clean);
});

test("2000 hosts can be searched, and their details opened", async () => {
  const clean = await newPage("many-hosts");
  const { page } = clean;
  await respondWith(page, LARGE);
  const start = performance.now();
  await clean.open(`/clusters/${CLUSTER_ID}?tab=hosts`);
  await page.getByRole("gridcell", { name: /^host-1\b/ }).first().waitFor();
  const shown = performance.now();
  await page.getByRole("textbox", { name: "Filter" }).fill("SN1999");
  await page.getByRole("gridcell", { name: /^host-1999/ }).waitFor();
  await page.getByRole("gridcell", { name: /^host-1\b/ }).waitFor({ state: "detached" });
  console.info(`2000 hosts: shown after ${Math.round(shown - start)} ms, searched in ${Math.round(performance.now() - shown)} ms`);
  await page.getByRole("button", { name: "Details" }).click();
  await page.getByRole("grid", { name: "Disks" }).waitFor();
  await clean.screenshot("details");
  expect(await axe(page)).toEqual([]);
  assertClean(clean);
});

test("by keyboard", async () => {
  const clean = await newPage("keyboard");
  const { page } = clean;
  await clean.open("/");
  await settled(page, "Overview");
  const focused = () => page.evaluate(() => document.activeElement?.textContent?.trim() ?? "");
  await page.keyboard.press("Tab");
  expect(await focused()).toBe("Skip to content");
  await clean.screenshot("skip-link");
  await page.keyboard.press("Enter");
  expect(await page.evaluate(() => document.activeElement?.id)).toBe("main");
  await page.reload();
  await settled(page, "Overview");
  for (let presses = 0; presses < 30 && (await focused()) !== "Events"; presses++) await page.keyboard.press("Tab");
  await clean.screenshot("navigation");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Events", level: 1 }).waitFor();
  assertClean(clean);
});

test("data stays while the service restarts", async () => {
  const clean = await newPage("restart");
  const { page } = clean;
  await respondWith(page, LARGE);
  await clean.open("/clusters");
  const row = page.getByRole("link", { name: "cluster-1", exact: true });
  const warning = page.getByText("The data shown may be out of date.");
  await row.waitFor();
  await respondAgain(page);
  await refuseWith(page, 503, "The service is restarting");
  await warning.waitFor();
  expect(await row.isVisible()).toBe(true);
  await clean.screenshot("away");
  await respondAgain(page);
  await respondWith(page, LARGE);
  await warning.waitFor({ state: "detached" });
  expect(await row.isVisible()).toBe(true);
  assertClean(clean, /\/api\/assisted-install\//);
});

/** Creates a cluster that has no hosts. */
async function createCluster(name: string): Promise<{ id: string }> {
  const body = { name, base_dns_domain: "example.org", openshift_version: "4.18.30", pull_secret: site.pullSecret };
  const response = await fetch(`${site.url}/api/assisted-install/v2/clusters`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
  expect(response.status).toBe(201);
  return (await response.json()) as { id: string };
}

/** Creates the infra-env of a cluster: the URL of its discovery image. */
async function createInfraEnv(cluster: string): Promise<string> {
  const body = { name: "hosts", pull_secret: site.pullSecret, cluster_id: cluster, cpu_architecture: "x86_64", openshift_version: "4.18.30" };
  const base = `${site.url}/api/assisted-install/v2/infra-envs`;
  const made = await fetch(base, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
  const { id } = (await made.json()) as { id: string };
  const { url } = (await (await fetch(`${base}/${id}/downloads/image-url`)).json()) as { url: string };
  return url;
}

test("a cluster is installed only where it can succeed: the cause has a link to its step", async ({ task }) => {
  const { id } = await createCluster(`refused-${task.result?.retryCount ?? 0}`);
  await createInfraEnv(id);
  const clean = await newPage("refusal");
  const { page } = clean;
  await clean.open(`/clusters/${id}`);
  const install = page.getByRole("button", { name: "Install", exact: true });
  await install.waitFor();
  expect(await install.isDisabled()).toBe(true);
  expect(await page.locator(`#${await install.getAttribute("aria-describedby")}`).innerText()).toMatch(/masters|control.plane|hosts/i);
  await clean.screenshot("cause");
  expect(await axe(page)).toEqual([]);
  await page.locator("#install-cause").getByRole("link").click();
  await page.getByRole("heading", { name: "Host discovery" }).waitFor();
  await clean.screenshot("step");
  assertClean(clean);
});

test("the page outlives the API server", async ({ task }) => {
  const name = `outlived-${task.result?.retryCount ?? 0}`;
  const { id } = await createCluster(name);
  const clean = await newPage("killed");
  const { page } = clean;
  await clean.open(`/clusters/${id}`);
  await page.getByRole("heading", { name, level: 1 }).waitFor();
  site.kill("api-server");
  // The stream of events ends with it: its new connection shows what changed meanwhile.
  let changed: Response | undefined;
  while (!changed?.ok) {
    const change = { method: "PATCH", headers: { "content-type": "application/json" }, body: JSON.stringify({ name: `${name}-b` }) };
    changed = await fetch(`${site.url}/api/assisted-install/v2/clusters/${id}`, change).catch(() => undefined);
  }
  await page.getByRole("heading", { name: `${name}-b`, level: 1 }).waitFor();
  // Each part of the page is read again by itself.
  await page.getByText("The data shown may be out of date.").waitFor({ state: "detached" });
  assertClean(clean, /^50[234] GET /);
});

test("a change in one tab appears in the other", async ({ task }) => {
  const name = `two-tabs-${task.result?.retryCount ?? 0}`;
  await createCluster(name);
  const one = await newPage("tabs-one");
  const other = await newPage("tabs-other", { context: one.page.context() });
  await one.open("/clusters");
  await other.open("/clusters");
  await one.page.getByRole("link", { name }).waitFor();
  await other.page.getByRole("link", { name }).click();
  await other.page.getByRole("button", { name: "Delete" }).click();
  await other.page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await one.page.getByRole("link", { name }).waitFor({ state: "detached" });
  // A tab in the background draws no frames.
  await one.page.bringToFront();
  await one.screenshot("deleted");
  assertClean(one);
  assertClean(other, /404 GET/);
});

const WIZARD = "/assisted-installer/clusters/~new";

test.each([
  ["wizard", WIZARD, /Cluster details/, {}],
  ["wizard-dark", WIZARD, /Cluster details/, { colorScheme: "dark" as const }],
  ["wizard-narrow", WIZARD, /Cluster details/, { viewport: NARROW }],
])("%s of the library", async (name, path, heading, options) => {
  const clean = await newPage(name, options);
  await clean.open(path);
  await clean.page.getByRole("heading", { name: heading }).waitFor();
  await clean.screenshot("shown");
  expect(await clean.page.getByRole("switch", { name: /disconnected/ }).count()).toBe(0);
  expect(await clean.page.getByLabel("Base domain").getAttribute("placeholder")).toBeNull();
  expect(await clean.page.locator("body").innerText()).not.toMatch(/assisted/i);
  expect(await overflowing(clean.page)).toEqual([]);
  expect(await axe(clean.page)).toEqual([]);
  assertClean(clean);
});

test("the wizard is left by one click, from a field with a mistake", async () => {
  const clean = await newPage("wizard-cancel");
  const { page } = clean;
  await clean.open(WIZARD);
  await page.getByLabel("Cluster name").focus();
  await page.getByRole("button", { name: "Cancel" }).click();
  await settled(page, "Clusters");
  assertClean(clean);
});

test.each(["/assisted-installer/clusters", "/cluster-list"])("%s, the list of the library, is ours", async (path) => {
  const clean = await newPage("wizard-clusters");
  await clean.open(path);
  await settled(clean.page, "Clusters");
  expect(new URL(clean.page.url()).pathname).toBe("/clusters");
  assertClean(clean);
});

test("the colour scheme is chosen by its label", async () => {
  const clean = await newPage("colours");
  const { page } = clean;
  await clean.open("/");
  await settled(page, "Overview");
  const isDark = () => page.evaluate(() => document.documentElement.matches(".pf-v6-theme-dark"));
  expect(await page.getByText("Colour scheme", { exact: true }).isVisible()).toBe(true);
  await page.getByLabel("Colour scheme").selectOption("Dark");
  expect(await isDark()).toBe(true);
  expect(await axe(page)).toEqual([]);
  await page.reload();
  await settled(page, "Overview");
  expect(await isDark()).toBe(true);
  await page.getByLabel("Colour scheme").selectOption("Light");
  expect(await isDark()).toBe(false);
  assertClean(clean);
});

test("hosts have one state and one cause on the page of the cluster and in the wizard", async ({ task }) => {
  const { id } = await createCluster(`one-state-${task.result?.retryCount ?? 0}`);
  const hosts = await site.boot(await createInfraEnv(id));
  const clean = await newPage("one-state");
  const { page } = clean;
  const link = page.getByRole("link", { name: "Set the machine networks" });
  await clean.open(`/clusters/${id}?tab=hosts`);
  // Once in the list, and with each host.
  await hosts.until(link.nth(3).waitFor());
  const list = await page.getByRole("list").filter({ has: link }).first().getByRole("link").allInnerTexts();
  expect(list).toEqual(["Set the API address", "Set the ingress address", "Set the machine networks"]);
  const state = (name: string) => page.getByRole("row").filter({ hasText: name }).getByText(/^(Pending for input|Ready|Insufficient)$/).innerText();
  const ours = await state("master-0");
  await clean.screenshot("cluster");
  expect(await axe(page)).toEqual([]);
  await page.getByRole("link", { name: "Open in the wizard" }).click();
  await page.getByRole("heading", { name: "Host discovery" }).waitFor();
  expect(await state("master-0")).toBe(ours);
  await clean.screenshot("discovery");
  expect(await axe(page)).toEqual([]);
  await link.first().click();
  await page.getByRole("heading", { name: "Networking", exact: true }).waitFor();
  expect(await state("master-0")).toBe(ours);
  await clean.screenshot("networking");
  expect(await axe(page)).toEqual([]);
  await page.goBack();
  assertClean(clean);
});
