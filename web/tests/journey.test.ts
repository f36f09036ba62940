// From no cluster to an installed one and its kubeconfig, by clicks only.

import { readFileSync } from "node:fs";
import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { type CleanPage, assertClean, axe, launch, openPage } from "./browser";
import { type Site, startSite } from "./site";

/** Free addresses in the network of the simulated machines. */
const API_VIP = "192.168.126.100";
const INGRESS_VIP = "192.168.126.101";
const MASTERS = 3;

let site: Site;
let browser: Browser;
let current: CleanPage | undefined;

beforeAll(async () => {
  [site, browser] = await Promise.all([startSite(), launch()]);
});

afterEach(async () => {
  await current?.screenshot("end");
});

afterAll(async () => {
  await browser?.close();
  await site?.stop();
});

/** Presses the wizard's Next and waits for the step with this heading. */
async function next(page: Page, heading: string): Promise<void> {
  await page.getByRole("button", { name: "Next", exact: true }).click();
  await page.getByRole("heading", { name: heading }).first().waitFor();
}

test("a cluster is created, installed and entered", async ({ task }) => {
  const name = `pages-${task.result?.retryCount ?? 0}`;
  current = await openPage(browser, { url: site.url, name: "journey", acceptDownloads: true });
  const { page, open, screenshot } = current;
  const check = async (step: string) => {
    await screenshot(step);
    expect({ step, axe: await axe(page) }).toEqual({ step, axe: [] });
  };
  page.setDefaultTimeout(0);

  await open("/");
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  await check("overview");
  await page.getByRole("link", { name: "Create a cluster" }).click();

  await page.getByRole("heading", { name: "Cluster details" }).waitFor();
  await page.getByLabel("Cluster name").fill(name);
  await page.getByLabel("Base domain").fill("example.org");
  await page.getByLabel("Pull secret", { exact: false }).first().fill(site.pullSecret);
  await check("details");
  await next(page, "Operators");
  await check("operators");
  await next(page, "Host discovery");

  await page.getByRole("button", { name: "Add hosts" }).click();
  await page.getByRole("button", { name: "Generate Discovery ISO" }).click();
  const url = await page.getByRole("link", { name: "Download Discovery ISO" }).getAttribute("href");
  await check("image");
  await page.getByRole("dialog").getByRole("button", { name: "Close" }).last().click();
  const machines = await site.boot(url ?? "", { masters: MASTERS });
  await check("discovery");
  // Of the networks, which are set in a later step.
  await machines.until(page.getByText("Pending for input", { exact: true }).nth(MASTERS - 1).waitFor());
  await page.getByRole("link", { name: "Set the machine networks" }).nth(MASTERS - 1).waitFor();
  await check("hosts");

  await next(page, "Storage");
  await check("storage");
  await next(page, "Networking");
  await page.getByLabel("API IP").fill(API_VIP);
  await page.getByLabel("Ingress IP").fill(INGRESS_VIP);
  await check("networking");
  await next(page, "Review and create");
  await check("review");
  await page.getByRole("button", { name: "Install cluster" }).click();
  await machines.until(page.getByText("Installation progress").first().waitFor());
  await check("progress");
  await machines.installed;
  await page.getByText(/^Installed on/).first().waitFor();
  await check("wizard-installed");

  await page.getByRole("navigation", { name: "Main" }).getByRole("link", { name: "Clusters" }).click();
  await page.getByRole("link", { name }).click();
  await page.getByText("Installed", { exact: true }).first().waitFor();
  await check("installed");
  await page.getByRole("tab", { name: "Access" }).click();
  const download = page.waitForEvent("download");
  await page.getByRole("link", { name: "Download" }).first().click();
  const kubeconfig = readFileSync(await (await download).path(), "utf8");
  expect(kubeconfig).toMatch(/^apiVersion: v1$/m);
  expect(kubeconfig).toContain(`https://api.${name}.example.org:6443`);
  await check("access");
  assertClean(current);
});
