// From a copied archive to the manifests of a publication, by clicks only.

import { readFileSync, readdirSync, truncateSync } from "node:fs";
import { join } from "node:path";
import type { Browser, Locator, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { type Packed, pack } from "./archives";
import { type CleanPage, assertClean, axe, launch, openPage } from "./browser";
import { type Site, startSite } from "./site";

const MIB = 1024 ** 2;
/** Sizes of layers, by sequence: the first one takes a moment. */
const IMAGES = [[48 * MIB, 48 * MIB, 48 * MIB], [1000], [2000]];

let site: Site;
let browser: Browser;
let packed: Packed;
let current: CleanPage | undefined;

beforeAll(async () => {
  browser = await launch();
});

// A site for each test, also for its second attempt: what was published stays.
beforeEach(async () => {
  site = await startSite({ content: false });
  const registry = Object.keys((JSON.parse(site.pullSecret) as { auths: object }).auths)[0] ?? "";
  packed = pack(IMAGES, registry, site.pullSecret);
});

afterEach(async () => {
  await current?.screenshot("end");
  await current?.page.context().close();
  current = undefined;
  packed?.remove();
  await site?.stop();
});

afterAll(async () => {
  await browser?.close();
});

async function open(name: string): Promise<CleanPage> {
  const clean = await openPage(browser, { url: site.url, name, acceptDownloads: true });
  current = clean;
  clean.page.setDefaultTimeout(0);
  await clean.open("/carry-in");
  await clean.page.getByRole("heading", { name: "Carry in", level: 1 }).waitFor();
  return clean;
}

async function check({ page, screenshot }: CleanPage, step: string): Promise<void> {
  await screenshot(step);
  expect({ step, axe: await axe(page) }).toEqual({ step, axe: [] });
}

/** The row of a sequence. */
function row(page: Page, sequence: number): Locator {
  return page.getByRole("row").filter({ has: page.getByRole("button", { name: `Verify sequence ${sequence}` }) });
}

/** Presses the button of a job, and waits until the server has it: its job continues without the page. */
async function start(page: Page, name: string): Promise<void> {
  const created = page.waitForResponse((response) => response.request().method() === "POST" && response.status() === 202);
  await page.getByRole("button", { name }).click();
  await created;
}

async function published(page: Page, sequence: number): Promise<void> {
  await row(page, sequence).getByText("Published", { exact: true }).waitFor();
}

test("archives are carried in", async () => {
  const clean = await open("carry-in");
  const { page } = clean;
  await page.getByText("No archives yet").waitFor();
  await check(clean, "empty");

  packed.copy(1, site.archives);
  packed.copy(3, site.archives);
  await page.getByRole("button", { name: "Search again" }).first().click();
  await page.getByText("Sequence 2 is missing").waitFor();
  await row(page, 1).getByText("Next", { exact: true }).waitFor();
  await row(page, 3).getByText("Out of order").waitFor();
  await check(clean, "gap");

  await page.getByRole("button", { name: "Verify sequence 1" }).click();
  await page.getByText("Every byte was compared with its digest: no faults.").first().waitFor();

  await start(page, "Publish sequence 1");
  await page.reload();
  await published(page, 1);
  await check(clean, "published");

  await row(page, 1).getByRole("button", { name: "Manifests for clusters" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("button", { name: "View idms-oc-mirror.yaml" }).click();
  await dialog.getByText("kind: ImageDigestMirrorSet").waitFor();
  await check(clean, "manifests");
  const download = page.waitForEvent("download");
  await dialog.getByRole("button", { name: "Download all as one file" }).click();
  const file = await (await download).path();
  expect(readFileSync(file, "utf8")).toMatch(/^---\napiVersion: config\.openshift\.io\/v1\n/);
  await dialog.getByRole("button", { name: "Close" }).click();
  assertClean(clean);
});

test("a job outlives the API server", async () => {
  packed.copy(1, site.archives);
  const clean = await open("carry-in-killed");
  const { page } = clean;
  await start(page, "Publish sequence 1");
  site.kill("api-server");
  await published(page, 1);
  await page.getByRole("grid", { name: "Jobs" }).getByText("Succeeded").waitFor();
  assertClean(clean, /^50[234] GET /);
});

test("a damaged copy is found, and published after it was copied again", async () => {
  for (const sequence of [1, 2, 3]) packed.copy(sequence, site.archives);
  const third = join(site.archives, readdirSync(site.archives).find((name) => name.startsWith("mirror_seq3_")) ?? "");
  truncateSync(third, 4096);
  const clean = await open("carry-in-damaged");
  const { page } = clean;
  await page.getByText("Unreadable archives").waitFor();
  await check(clean, "damaged");
  await page.getByRole("button", { name: "Publish sequence 1" }).click();
  await published(page, 1);
  await page.getByRole("button", { name: "Publish sequence 2" }).click();
  await published(page, 2);
  packed.copy(3, site.archives);
  await page.getByRole("button", { name: "Search again" }).first().click();
  await row(page, 3).getByText("Next", { exact: true }).waitFor();
  await page.getByRole("button", { name: "Publish sequence 3" }).click();
  await published(page, 3);
  await clean.open("/");
  await page.getByRole("heading", { name: "Overview", level: 1 }).waitFor();
  assertClean(clean);
});
