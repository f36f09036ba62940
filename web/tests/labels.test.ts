// In other languages, nothing that a screen reader reads out is English; the document says its language and direction.

import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { type CleanPage, assertClean, launch, openPage, settled } from "./browser";
import { CLUSTER_ID, EMPTY, SOME, respondWith } from "./made_up";
import { PAGES } from "./our_pages";
import { type Site, startSite } from "./site";

let site: Site;
let browser: Browser;
let current: CleanPage | undefined;

beforeAll(async () => {
  [site, browser] = await Promise.all([startSite({ content: false }), launch()]);
});

afterEach(async () => {
  await current?.page.context().close();
});

afterAll(async () => {
  await browser?.close();
  await site?.stop();
});

async function newPage(name: string, language: string): Promise<CleanPage> {
  current = await openPage(browser, { url: site.url, name: `labels-${name}` });
  current.page.setDefaultTimeout(0);
  await current.page.addInitScript((chosen) => localStorage.setItem("atoll-language", chosen), language);
  return current;
}

/** Names of data and of programs, addresses, times, units, and reasons of the service. */
const DATA = /^The cluster is |^its server ended |^Host (is|cannot) |cluster-\d|host-\d|check-\d|registry\.example|https?:|curl|podman|docker|atoll|oc-mirror|oc\b|Windows|iPXE|MAC|stable-4|\d+\.\d+\.\d+|\d{4}-\d\d-\d\dT|\bms\b|\.yaml|RHEL|Debian|4\.18/;

/** Labels without any letter of Japanese. */
async function englishLabels(page: Page): Promise<string[]> {
  const labels = await page.evaluate(() => {
    const attributes = ["aria-label", "title", "placeholder", "alt", "aria-valuetext", "aria-roledescription"];
    return [...document.querySelectorAll("*")].flatMap((element) => [
      ...attributes.map((name) => element.getAttribute(name) ?? ""),
      element.matches(".pf-v6-screen-reader") ? (element.textContent ?? "") : "",
    ]);
  });
  return [...new Set(labels)].filter((label) => /[a-z]{2,}/i.test(label) && !/[\u3040-\u30ff\u4e00-\u9fff]/.test(label) && !DATA.test(label)).sort();
}

test.each(PAGES)("$name", async ({ name, path }) => {
  const clean = await newPage(name, "ja");
  for (const [state, table] of [["some", SOME], ["empty", EMPTY]] as const) {
    await respondWith(clean.page, table);
    await clean.open(path);
    await settled(clean.page);
    expect({ state, labels: await englishLabels(clean.page) }).toEqual({ state, labels: [] });
  }
  assertClean(clean);
});

test("expanded rows, menus and dialogs", async () => {
  const clean = await newPage("opened", "ja");
  const { page } = clean;
  const check = async (step: string) => expect({ step, labels: await englishLabels(page) }).toEqual({ step, labels: [] });
  await respondWith(page, SOME);
  await clean.open(`/clusters/${CLUSTER_ID}?tab=hosts`);
  await settled(page);
  await page.getByRole("checkbox", { name: "行 1 を選択" }).check();
  await page.getByRole("button", { name: "詳細" }).first().click();
  await page.getByRole("grid", { name: "ディスク" }).waitFor();
  await check("row");
  await page.getByRole("button", { name: /台のホストに対するアクション/ }).click();
  await page.getByRole("menu").waitFor();
  await check("menu");
  await page.getByRole("menuitem").last().click();
  await page.getByRole("dialog").waitFor();
  await check("dialog");
});

test.each(["en", "es", "fr", "ja", "ko", "zh"])("the document is in %s", async (language) => {
  const clean = await newPage(`document-${language}`, language);
  const { page } = clean;
  await clean.open("/help");
  await settled(page);
  expect(await page.evaluate(() => [document.documentElement.lang, document.documentElement.dir])).toEqual([language, "ltr"]);
  assertClean(clean);
});
