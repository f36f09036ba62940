// From pasted BMCs to discovered hosts, by clicks only.

import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import type { Browser } from "playwright-core";
import { type CleanPage, assertClean, axe, launch, openPage } from "./browser";
import { type Site, startSite } from "./site";

/** One of most families. */
const MASTERS = 5;

let site: Site;
let browser: Browser;
let current: CleanPage | undefined;

beforeAll(async () => {
  [site, browser] = await Promise.all([startSite(), launch()]);
});

afterEach(async () => {
  await current?.screenshot("end");
  await current?.page.context().close();
  current = undefined;
});

afterAll(async () => {
  await browser?.close();
  await site?.stop();
});

async function post<T>(path: string, body: object): Promise<T> {
  const response = await fetch(`${site.url}/api/assisted-install/v2${path}`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
  expect(response.status).toBe(201);
  return (await response.json()) as T;
}

test("hosts are booted by their BMCs, one after its password was corrected", async ({ task }) => {
  const name = `bmcs-${task.result?.retryCount ?? 0}`;
  const members = { name, pull_secret: site.pullSecret, openshift_version: "4.18.30" };
  const { id: cluster } = await post<{ id: string }>("/clusters", { ...members, base_dns_domain: "example.org" });
  await post("/infra-envs", { ...members, cluster_id: cluster });
  const { rows, hostSim } = await site.rack({ masters: MASTERS });
  const [heading = "", first = "", ...others] = rows.trim().split("\n");
  const password = first.split(",").at(-1) ?? "";

  current = await openPage(browser, { url: site.url, name: "bmc-boots" });
  const { page, open, screenshot } = current;
  page.setDefaultTimeout(0);
  await open(`/clusters/${cluster}?tab=images`);
  await page.getByRole("link", { name: "Boot hosts by their BMCs" }).click();
  await page.getByRole("button", { name: "Paste many" }).click();
  await page.getByRole("textbox", { name: "Lines: name,address,user,password" }).fill([heading, first.replace(password, "mistyped"), ...others].join("\n"));
  await page.getByRole("button", { name: `Add rows: ${MASTERS}` }).click();
  await page.getByRole("button", { name: "Verify no certificates" }).click();
  await screenshot("rows");
  await page.getByRole("button", { name: `Boot hosts: ${MASTERS}` }).click();
  await hostSim.until(page.getByText(`Under way: 0, done: ${MASTERS - 1}, failed: 1`).waitFor());
  await screenshot("one-failed");
  expect(await axe(page)).toEqual([]);

  await page.getByRole("button", { name: "Try failed hosts again: 1" }).click();
  await page.getByLabel("User name of row 1").fill(first.split(",").at(-2) ?? "");
  await page.getByLabel("Password of row 1").fill(password);
  await page.getByRole("checkbox", { name: "Verify the certificate: 1" }).uncheck();
  await page.getByRole("button", { name: "Boot hosts: 1" }).click();
  await hostSim.until(page.getByText(`Under way: 0, done: ${MASTERS}, failed: 0`).waitFor());
  await screenshot("booted");

  await page.getByRole("link", { name: "Hosts", exact: true }).click();
  for (let host = 0; host < MASTERS; host++) await hostSim.until(page.getByText(`master-${host}`, { exact: true }).first().waitFor());
  assertClean(current);
});
