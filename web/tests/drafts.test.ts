// Nothing that a person typed is lost when the page is loaded again, or the API server restarts, in the middle of a form.

import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { type CleanPage, assertClean, axe, launch, openPage } from "./browser";
import { CLUSTER_ID, SOME, respondWith } from "./made_up";
import { type Site, startSite } from "./site";

const NEW_CLUSTER = "/assisted-installer/clusters/~new";
const UNAVAILABLE = /^50[234] (GET|PATCH) /;

let site: Site;
let browser: Browser;
let current: CleanPage | undefined;

beforeAll(async () => {
  [site, browser] = await Promise.all([startSite(), launch()]);
});

afterEach(async () => {
  await current?.screenshot("end");
  await current?.page.context().close();
});

afterAll(async () => {
  await browser?.close();
  await site?.stop();
});

async function newPage(name: string): Promise<CleanPage> {
  current = await openPage(browser, { url: site.url, name });
  current.page.setDefaultTimeout(0);
  return current;
}

const notice = (page: Page) => page.getByText("Restored from this browser tab");
const kept = (page: Page) => page.evaluate(() => JSON.stringify({ ...sessionStorage }));

test("a new cluster", async () => {
  const clean = await newPage("drafts-new-cluster");
  const { page } = clean;
  const name = page.getByLabel("Cluster name");
  const secret = page.getByLabel("Pull secret", { exact: false }).first();
  await clean.open(NEW_CLUSTER);
  await name.fill("drafted");
  await page.getByLabel("Base domain").fill("example.org");
  await secret.fill(site.pullSecret);
  await page.getByText("without pull secrets and passwords").waitFor();
  expect(await kept(page)).not.toContain("auths");
  site.kill("api-server");
  // The page says that the service is away until it is loaded while the service is there.
  do {
    await page.reload();
    await page.getByRole("heading", { name: /^Cluster details$|Failed to/ }).first().waitFor();
  } while (!(await name.isVisible()));
  await notice(page).waitFor();
  await clean.screenshot("restored");
  expect(await name.inputValue()).toBe("drafted");
  expect(await page.getByLabel("Base domain").inputValue()).toBe("example.org");
  expect(await secret.inputValue()).toBe("");
  expect(await axe(page)).toEqual([]);
  await page.getByRole("button", { name: "Discard" }).click();
  expect(await name.inputValue()).toBe("");
  await page.reload();
  await name.waitFor();
  expect(await notice(page).count()).toBe(0);
  assertClean(clean, UNAVAILABLE);
});

test("a step that saves each change", async ({ task }) => {
  const clean = await newPage("drafts-step");
  const { page } = clean;
  const dns = page.getByLabel("DNS");
  await clean.open(NEW_CLUSTER);
  await page.getByLabel("Cluster name").fill(`static-${task.result?.retryCount ?? 0}`);
  await page.getByLabel("Base domain").fill("example.org");
  await page.getByLabel("Pull secret", { exact: false }).first().fill(site.pullSecret);
  await page.getByLabel(/Static IP/).check();
  await page.getByRole("button", { name: "Next", exact: true }).click();
  await page.getByRole("heading", { name: "Static network configurations" }).waitFor();
  expect(await kept(page)).toBe("{}");

  const start = site.keepDown("api-server");
  try {
    await dns.fill("192.168.126.1");
    await page.getByRole("button", { name: "Refresh page" }).click();
    await page.getByText("Failed to fetch the cluster").waitFor();
  } finally {
    start();
  }
  do {
    await page.reload();
    await page.getByRole("heading", { name: /Static network configurations|Failed to fetch|not found/ }).first().waitFor();
  } while (!(await dns.isVisible()));
  await notice(page).waitFor();
  await clean.screenshot("restored");
  expect(await dns.inputValue()).toBe("192.168.126.1");
  expect(await axe(page)).toEqual([]);

  // With the missing values the form is valid, and saves itself.
  await page.getByTestId("ipv4-machine-network-ip").fill("192.168.126.0");
  await page.getByTestId("ipv4-machine-network-prefix-length").fill("24");
  await page.getByTestId("ipv4-gateway").fill("192.168.126.1");
  await page.getByText("These values are saved now.").waitFor();
  expect(await kept(page)).toBe("{}");
  await page.reload();
  await dns.waitFor();
  expect(await dns.inputValue()).toBe("192.168.126.1");
  expect(await notice(page).count()).toBe(0);
  assertClean(clean, UNAVAILABLE);
});

test("a dialog", async ({ task }) => {
  const common = { name: `dialog-${task.result?.retryCount ?? 0}`, openshift_version: "4.18.30", pull_secret: site.pullSecret };
  const create = async (path: string, body: object) => {
    const response = await fetch(`${site.url}/api/assisted-install/v2${path}`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
    return (await response.json()) as { id: string };
  };
  const { id } = await create("/clusters", { ...common, base_dns_domain: "example.org" });
  await create("/infra-envs", { ...common, cluster_id: id, cpu_architecture: "x86_64" });
  const clean = await newPage("drafts-dialog");
  const { page } = clean;
  const dialog = page.getByRole("dialog");
  const openDialog = async () => {
    await page.getByRole("button", { name: "Host discovery" }).click();
    await page.getByRole("button", { name: "Add hosts" }).click();
    await dialog.getByLabel("Show proxy settings").waitFor();
  };
  await clean.open(`/assisted-installer/clusters/${id}`);
  await openDialog();
  await dialog.getByLabel("Show proxy settings").check();
  await dialog.getByLabel("HTTP proxy URL").fill("http://user:hidden@proxy.example.org:3128");
  await dialog.getByLabel("No proxy domains").fill("example.org");
  expect(await kept(page)).not.toContain("hidden");
  await page.reload();
  await openDialog();
  await notice(page).waitFor();
  await clean.screenshot("restored");
  expect(await dialog.getByLabel("No proxy domains").inputValue()).toBe("example.org");
  expect(await dialog.getByLabel("HTTP proxy URL").inputValue()).toBe("");
  expect(await axe(page)).toEqual([]);
  // Closed by hand, it has no draft any more.
  await dialog.getByRole("button", { name: "Cancel" }).click();
  await dialog.waitFor({ state: "detached" });
  expect(await kept(page)).toBe("{}");
  await openDialog();
  expect(await notice(page).count()).toBe(0);
  assertClean(clean);
});

test("pages of ours", async () => {
  const clean = await newPage("drafts-ours");
  const { page } = clean;
  await clean.open("/pull-secret");
  await page.getByRole("textbox", { name: "User" }).fill("someone");
  await page.getByRole("textbox", { name: "Password" }).fill("hidden");
  await page.getByRole("textbox", { name: /is added to/ }).fill(site.pullSecret);
  expect(await kept(page)).not.toMatch(/hidden|auths/);
  await page.reload();
  await notice(page).waitFor();
  expect(await page.getByRole("textbox", { name: "User" }).inputValue()).toBe("someone");
  expect(await page.getByRole("textbox", { name: "Password" }).inputValue()).toBe("");
  expect(await axe(page)).toEqual([]);

  await clean.open("/mirror-plan");
  await page.getByRole("textbox", { name: "One image per line" }).fill("registry.example.org/tool:v1");
  await page.reload();
  expect(await page.getByRole("textbox", { name: "One image per line" }).inputValue()).toBe("registry.example.org/tool:v1");

  await clean.open("/events");
  await page.getByRole("textbox", { name: "Message" }).fill("registered");
  await page.reload();
  expect(await page.getByRole("textbox", { name: "Message" }).inputValue()).toBe("registered");
  assertClean(clean);
});

test("the name of a host", async () => {
  const clean = await newPage("drafts-host");
  const { page } = clean;
  const name = page.getByRole("textbox", { name: "Name of the host" });
  await respondWith(page, SOME);
  await clean.open(`/clusters/${CLUSTER_ID}?tab=hosts`);
  await page.getByRole("button", { name: "Details" }).first().click();
  await name.fill("renamed");
  await page.reload();
  await page.getByRole("button", { name: "Details" }).first().click();
  await notice(page).waitFor();
  expect(await name.inputValue()).toBe("renamed");
  expect(await axe(page)).toEqual([]);
  assertClean(clean);
});
