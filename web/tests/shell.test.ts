// Size of everything that is loaded before the wizard is opened, and how long files are cached.

import { readdirSync } from "node:fs";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { assertClean, launch, openPage } from "./browser";
import { STATIC_ROOT, type Site, startSite } from "./site";

/** Compressed. Units: bytes. */
const SHELL_LIMIT = 250_000;

let site: Site;
let browser: Browser;

beforeAll(async () => {
  [site, browser] = await Promise.all([startSite({ content: false }), launch()]);
});

afterAll(async () => {
  await browser?.close();
  await site?.stop();
});

test("the shell is small", async () => {
  const clean = await openPage(browser, { url: site.url, name: "shell" });
  const { page } = clean;
  const session = await page.context().newCDPSession(page);
  await session.send("Network.enable");
  const urls = new Map<string, string>();
  const sizes = new Map<string, number>();
  await session.send("Network.setCacheDisabled", { cacheDisabled: true });
  session.on("Network.responseReceived", ({ requestId, response, type }) => {
    // The page was loaded again: it is counted from the beginning.
    if (type === "Document") urls.clear();
    urls.set(requestId, response.url);
  });
  session.on("Network.loadingFinished", ({ requestId, encodedDataLength }) => sizes.set(requestId, encodedDataLength));
  await clean.open("/");
  await page.getByText("Nothing waits for you.").waitFor({ timeout: 0 });
  const files = [...urls].filter(([, url]) => !url.includes("/api/")).map(([id, url]) => ({ url, size: sizes.get(id) ?? 0 }));
  const total = files.reduce((sum, { size }) => sum + size, 0);
  const paint = await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? 0);
  console.info(`shell: ${(total / 1000).toFixed(1)} kB in ${files.length} files, first paint after ${Math.round(paint)} ms`);
  expect(files.length).toBeGreaterThan(1);
  expect(files.filter(({ url }) => /wizard|monaco/.test(url))).toEqual([]);
  expect(total).toBeLessThanOrEqual(SHELL_LIMIT);
  assertClean(clean);
  await page.context().close();
});

test("assets are cached for good, the page is not", async () => {
  const header = async (path: string) => (await fetch(site.url + path)).headers.get("cache-control") ?? "";
  const [asset] = readdirSync(join(STATIC_ROOT, "assets")).filter((name) => name.endsWith(".js"));
  expect(await header(`/assets/${asset}`)).toMatch(/\bimmutable\b/);
  for (const path of ["/", "/clusters"]) expect(await header(path)).toMatch(/\bno-cache\b/);
});
