// On paper: no navigation, no controls, tables with all their rows and columns, light.

import type { Browser } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { type CleanPage, assertClean, launch, openPage, settled } from "./browser";
import { CLUSTER_ID, LARGE, SOME, respondWith } from "./made_up";
import { PAGES } from "./our_pages";
import { type Site, startSite } from "./site";

/** A4 with margins of a centimetre. Units: CSS pixels. */
const PAPER = { width: 718, height: 1047 };
const CONTROLS = ".pf-v6-c-masthead, .pf-v6-c-page__sidebar, .pf-v6-c-breadcrumb, .pf-v6-c-toolbar, .pf-v6-c-pagination, button.pf-v6-c-button, input[type=checkbox][aria-label]";

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

async function print(name: string, path: string, table = SOME): Promise<void> {
  clean = await openPage(browser, { url: site.url, name: `print-${name}`, viewport: PAPER, colorScheme: "dark" });
  const { page } = clean;
  page.setDefaultTimeout(0);
  await respondWith(page, table);
  await clean.open(path);
  await settled(page);
  await page.emulateMedia({ media: "print" });
  await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
}

test.each(PAGES)("$name", async ({ name, path }) => {
  await print(name, path);
  const { page } = clean;
  await clean.screenshot("page");
  const found = await page.evaluate(({ controls, width }) => {
    const elements = [...document.querySelectorAll<HTMLElement>("#root *")].filter((element) => element.checkVisibility());
    const named = (list: HTMLElement[]) => [...new Set(list.map(({ tagName, className }) => `${tagName.toLowerCase()}.${String(className)}`))].slice(0, 10);
    const isCut = (element: HTMLElement) => /hidden|auto|scroll/.test(getComputedStyle(element).overflow) && !element.matches("textarea, svg, svg *, .pf-v6-screen-reader")
      && (element.scrollWidth > element.clientWidth + 1 || element.scrollHeight > element.clientHeight + 1);
    return {
      controls: named(elements.filter((element) => element.matches(controls))),
      wide: named(elements.filter((element) => element.getBoundingClientRect().right > width + 1)),
      cut: named(elements.filter(isCut)),
      isDark: document.documentElement.matches(".pf-v6-theme-dark"),
    };
  }, { controls: CONTROLS, width: PAPER.width });
  expect(found).toEqual({ controls: [], wide: [], cut: [], isDark: false });
  expect(await page.getByRole("heading", { level: 1 }).isVisible()).toBe(true);
  assertClean(clean);
});

test("all rows of a table", async () => {
  await print("all-rows", "/clusters", LARGE);
  const { page } = clean;
  expect(await page.getByRole("link", { name: /^cluster-\d+$/ }).count()).toBe(500);
  await page.evaluate(() => dispatchEvent(new Event("afterprint")));
  expect(await page.getByRole("link", { name: /^cluster-\d+$/ }).count()).toBe(20);
  assertClean(clean);
});

test("how many rows are not printed", async () => {
  await print("many-rows", `/clusters/${CLUSTER_ID}?tab=hosts`, LARGE);
  await clean.page.getByText("1000 more are not shown").waitFor();
  assertClean(clean);
});
