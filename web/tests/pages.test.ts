// Every page of ours in every state: empty, refused, large; narrow and dark.

import type { Browser } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { type CleanPage, assertClean, axe, launch, openPage, overflowing, settled } from "./browser";
import { EMPTY, LARGE, SOME, refuseWith, respondWith } from "./made_up";
import { type OurPage, PAGES } from "./our_pages";
import { type Site, startSite } from "./site";

const NARROW = { width: 360, height: 740 };

let site: Site;
let browser: Browser;
let clean: CleanPage;

beforeAll(async () => {
  [site, browser] = await Promise.all([startSite({ content: false }), launch()]);
});

afterEach(async () => {
  await clean?.page.context().close();
});

afterAll(async () => {
  await browser?.close();
  await site?.stop();
});

async function start(name: string): Promise<void> {
  clean = await openPage(browser, { url: site.url, name });
  clean.page.setDefaultTimeout(0);
}

async function show({ name, path, heading }: OurPage, state: string, table: typeof EMPTY): Promise<void> {
  await start(name);
  await respondWith(clean.page, table);
  const began = performance.now();
  await clean.open(path);
  await settled(clean.page, heading);
  console.info(`${name} ${state}: shown after ${Math.round(performance.now() - began)} ms`);
  await check(state);
}

async function check(state: string): Promise<void> {
  await clean.screenshot(state);
  expect(await axe(clean.page)).toEqual([]);
}

test.each(PAGES)("$name: some, dark, narrow", async (ours) => {
  await show(ours, "some", SOME);
  const { page } = clean;
  await page.emulateMedia({ colorScheme: "dark" });
  await check("dark");
  await page.emulateMedia({ colorScheme: "light" });
  await page.setViewportSize(NARROW);
  await check("narrow");
  expect(await overflowing(page)).toEqual([]);
  assertClean(clean);
});

describe.each(PAGES.filter(({ isStatic }) => !isStatic))("$name", (ours) => {
  test.each([["empty", EMPTY], ["large", LARGE]] as const)("%s", async (state, table) => {
    await show(ours, state, table);
    assertClean(clean);
  });

  test.each([[503, "The service is restarting"], [500, "Something failed"]])("refused with %s", async (status, reason) => {
    await start(ours.name);
    const { page } = clean;
    await refuseWith(page, status, reason);
    await clean.open(ours.path);
    await page.getByRole("heading", { level: 1 }).waitFor();
    await page.getByText(reason).first().waitFor();
    await check(String(status));
    assertClean(clean, /\/api\/assisted-install\//);
  });
});
