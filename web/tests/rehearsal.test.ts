// Rehearsals on a real site: a profile, a site with a mistake, a reload in the middle, narrow windows.

import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { type CleanPage, assertClean, axe, launch, openPage } from "./browser";
import { type Site, startSite } from "./site";

const NARROW = { width: 360, height: 740 };
const EXAMPLE = readFileSync(resolve(import.meta.dirname, "../../docs/examples/site.yaml"), "utf8");
const [INSTALL_CONFIG = "", AGENT_CONFIG = ""] = EXAMPLE.split(/^---$/m);
/** Two hosts with one address: a mistake of the data, before any host boots. */
const MISTAKEN = AGENT_CONFIG.replace("ip: 192.0.2.11", "ip: 192.0.2.10");

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

async function open(name: string, options: Partial<Parameters<typeof openPage>[1]> = {}): Promise<CleanPage> {
  const clean = await openPage(browser, { url: site.url, name, acceptDownloads: true, ...options });
  current = clean;
  clean.page.setDefaultTimeout(0);
  await clean.open("/rehearsal");
  await clean.page.getByRole("button", { name: "Rehearse", exact: true }).waitFor();
  return clean;
}

async function check({ page, screenshot }: CleanPage, step: string): Promise<void> {
  await screenshot(step);
  expect({ step, axe: await axe(page) }).toEqual({ step, axe: [] });
}

/** Presses Rehearse, and waits until the address has the rehearsal. */
async function rehearse(page: Page): Promise<void> {
  const before = page.url();
  await page.getByRole("button", { name: "Rehearse", exact: true }).click();
  await page.waitForURL((url) => url.searchParams.has("job") && url.href !== before);
}

/** The verdict of the shown rehearsal; earlier ones are in the list. */
async function installed(page: Page): Promise<void> {
  await page.locator(".pf-v6-c-alert").getByText("Installed, no mistakes").waitFor();
}

async function openFiles(page: Page, files: Record<string, string>): Promise<void> {
  const choosing = page.waitForEvent("filechooser");
  await page.getByRole("button", { name: "Open files" }).click();
  await (await choosing).setFiles(Object.entries(files).map(([name, text]) => ({ name, mimeType: "application/yaml", buffer: Buffer.from(text) })));
}

test("a profile is rehearsed until it is installed, over a reload", async () => {
  const clean = await open("rehearsal-profile");
  const { page } = clean;
  await page.getByText("Paste or open the site file first.").waitFor();
  await check(clean, "empty");
  await page.getByRole("button", { name: "A profile" }).click();
  await page.getByRole("radio", { name: "sno" }).check();
  await check(clean, "profiles");
  await rehearse(page);
  await page.getByText("Hosts that have registered: 1 of 1").waitFor();
  await check(clean, "progress");
  await page.reload();
  await installed(page);
  await page.getByRole("grid", { name: "Earlier rehearsals" }).getByText("Installed, no mistakes").waitFor();
  await check(clean, "installed");
  assertClean(clean);
});

test("a mistake of a site is named, and corrected", async () => {
  const clean = await open("rehearsal-site");
  const { page } = clean;
  await openFiles(page, { "install-config.yaml": INSTALL_CONFIG, "agent-config.yaml": MISTAKEN });
  await page.getByText("Documents: install-config.yaml, agent-config.yaml").waitFor();
  // The text is in the editor, which has a shadow root of its own.
  await page.getByText("baseDomain").first().waitFor();
  await check(clean, "files");
  await rehearse(page);
  const mistakes = page.getByRole("grid", { name: "Mistakes" });
  await mistakes.getByText("192.0.2.10").first().waitFor();
  await check(clean, "mistakes");
  const download = page.waitForEvent("download");
  await page.getByRole("button", { name: "Download as JSON" }).click();
  const report = JSON.parse(readFileSync(await (await download).path(), "utf8")) as { good: boolean; findings: { observed: string }[] };
  expect(report.good).toBe(false);
  expect(report.findings.some(({ observed }) => observed.includes("192.0.2.10"))).toBe(true);

  // The corrected file replaces its document.
  await openFiles(page, { "agent-config.yaml": AGENT_CONFIG });
  await page.getByText("Documents: install-config.yaml, agent-config.yaml").waitFor();
  await rehearse(page);
  await mistakes.waitFor({ state: "detached" });
  await installed(page);
  const stored = await page.evaluate(() => JSON.stringify([Object.entries(localStorage), Object.entries(sessionStorage), location.href]));
  expect(stored).not.toContain("mirror.example.com");
  assertClean(clean);
});

test("a malformed site is refused with its reason", async () => {
  const clean = await open("rehearsal-refused");
  const { page } = clean;
  await page.getByRole("textbox", { name: "Site file" }).fill("baseDomain: [");
  await page.getByRole("button", { name: "Rehearse", exact: true }).click();
  await page.getByText("Correct it, and rehearse again.").waitFor();
  await check(clean, "reason");
  assertClean(clean, /^400 POST /);
});

test("a rehearsal with a fault is cancelled in a narrow window", async () => {
  const clean = await open("rehearsal-narrow", { viewport: NARROW });
  const { page } = clean;
  await page.getByRole("button", { name: "A profile" }).click();
  await page.getByRole("radio", { name: "3+2" }).check();
  await page.getByRole("button", { name: "Faults" }).click();
  await page.getByRole("checkbox", { name: "late" }).check();
  await page.getByRole("combobox", { name: "Hosts with the fault late" }).fill("worker-1");
  await check(clean, "faults");
  await rehearse(page);
  await page.getByRole("grid", { name: "Hosts by stage" }).waitFor();
  await check(clean, "progress");
  expect(await page.evaluate(() => [...document.querySelectorAll("html, #main")].every(({ scrollWidth, clientWidth }) => scrollWidth <= clientWidth))).toBe(true);
  await page.getByRole("button", { name: "Cancel the rehearsal" }).click();
  await page.getByText("The rehearsal was cancelled: it has no result.").waitFor();
  assertClean(clean);
});
