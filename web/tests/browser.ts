// Debian's Chromium, and a page that records everything that a clean page does not do.

import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { resolve } from "node:path";
import { type Browser, type BrowserContext, type BrowserContextOptions, type Page, chromium } from "playwright-core";
import { expect } from "vitest";

const NAMES = ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
const SCREENSHOTS = resolve(import.meta.dirname, "../../target/screenshots");
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

function executable(): string {
  for (const name of NAMES) {
    try {
      return execFileSync("/bin/sh", ["-c", `command -v ${name}`], { encoding: "utf8" }).trim();
    } catch {
      // The next name.
    }
  }
  throw new Error(`no browser in PATH: install one of ${NAMES.join(", ")}`);
}

export async function launch(): Promise<Browser> {
  return chromium.launch({ executablePath: executable(), args: ["--no-sandbox"] });
}

/** Findings of a page, by kind. */
export interface Findings {
  console: string[];
  errors: string[];
  violations: string[];
  outside: string[];
  /** Failed requests, with their status; tests that break requests on purpose read them here. */
  failed: string[];
}

export interface CleanPage {
  page: Page;
  findings: Findings;
  /** Goes to a path of the site. */
  open(path: string): Promise<void>;
  screenshot(step: string): Promise<void>;
}

interface Options extends BrowserContextOptions {
  /** Origin of the site. */
  url: string;
  /** Name of the test, for its screenshots. */
  name: string;
  /** Shares cookies and storage with others of it. */
  context?: BrowserContext;
}

/** Chromium breaks off all requests when an interface of the machine is added or removed, as those of containers are. */
const NETWORK_CHANGED = "net::ERR_NETWORK_CHANGED";
/** These the page requests again by itself; without others it cannot start. */
const REQUESTED_AGAIN = ["fetch", "xhr", "eventsource"];

/** The browser's own line about a failed request, which `Findings.failed` has with its URL. */
const FAILED_REQUEST = /^Failed to load resource/;

export async function openPage(browser: Browser, { url, name, context: given, ...options }: Options): Promise<CleanPage> {
  const context = given ?? (await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options }));
  const page = await context.newPage();
  const findings: Findings = { console: [], errors: [], violations: [], outside: [], failed: [] };
  const { origin } = new URL(url);
  await page.exposeFunction("reportViolation", (text: string) => findings.violations.push(text));
  await page.addInitScript(() => {
    document.addEventListener("securitypolicyviolation", ({ violatedDirective, blockedURI, sourceFile, lineNumber }) => {
      const { reportViolation } = globalThis as unknown as { reportViolation: (text: string) => void };
      reportViolation(`${violatedDirective}: ${blockedURI} (${sourceFile}:${lineNumber})`);
    });
  });
  page.on("console", (message) => {
    const isBad = message.type() === "error" || message.type() === "warning";
    if (isBad && !FAILED_REQUEST.test(message.text())) findings.console.push(`${message.type()}: ${message.text()}`);
  });
  page.on("pageerror", (error) => findings.errors.push(`${error.message}\n${error.stack ?? ""}`));
  page.on("request", (request) => {
    const { origin: other, protocol } = new URL(request.url());
    if (other !== origin && protocol !== "data:" && protocol !== "blob:") findings.outside.push(request.url());
  });
  page.on("requestfailed", (request) => {
    if (request.failure()?.errorText !== NETWORK_CHANGED || REQUESTED_AGAIN.includes(request.resourceType())) return;
    findings.console.length = 0;
    findings.errors.length = 0;
    // The page may be closed by now.
    page.reload().catch(() => {});
  });
  // Waits of a page whose process ended would not end.
  page.on("crash", () => void context.close());
  page.on("response", (response) => {
    if (response.status() >= 400) findings.failed.push(`${response.status()} ${response.request().method()} ${response.url()}`);
  });
  return {
    page,
    findings,
    open: async (path) => {
      for (;;) {
        try {
          await page.goto(origin + path);
          return;
        } catch (error) {
          // A reload after another change of the network interrupts it, too.
          if (!/ERR_NETWORK_CHANGED|ERR_ABORTED|interrupted by another navigation/.test(String(error))) throw error;
        }
      }
    },
    screenshot: async (step) => {
      mkdirSync(SCREENSHOTS, { recursive: true });
      await page.screenshot({ path: resolve(SCREENSHOTS, `${name}-${step}.png`.replaceAll(/[^\w.-]+/g, "-")) });
    },
  };
}

/** No error, no warning, no violation of the security policy, no request outside; failed requests only as `expected`. */
export function assertClean({ findings }: CleanPage, expected?: RegExp): void {
  const failed = findings.failed.filter((line) => !expected?.test(line));
  expect({ ...findings, failed }).toEqual({ console: [], errors: [], violations: [], outside: [], failed: [] });
}

/** Serious and critical findings of axe, as `rule: element`. */
export async function axe(page: Page, root = "body"): Promise<string[]> {
  // Colours in the middle of a transition have a contrast of their own. Spinners never end.
  await page.evaluate(async () => {
    const ending = document.getAnimations().filter((one) => one.effect?.getComputedTiming().iterations !== Infinity);
    await Promise.allSettled(ending.map(({ finished }) => finished));
  });
  // As text of an evaluation: the security policy refuses added scripts.
  await page.evaluate(AXE);
  return page.evaluate(async (selector) => {
    const { axe: checker } = globalThis as unknown as { axe: typeof import("axe-core") };
    const { violations } = await checker.run(selector, { resultTypes: ["violations"] });
    return violations
      .filter(({ impact }) => impact === "serious" || impact === "critical")
      .flatMap(({ id, nodes }) => nodes.map(({ target, failureSummary }) => `${id}: ${String(target)} ${failureSummary?.split("\n")[1]?.trim()}`));
  }, root);
}

/** Waits for a page with this heading of the first level, and for its data. */
export async function settled(page: Page, heading?: string): Promise<void> {
  await page.getByRole("heading", { ...(heading !== undefined && { name: heading }), level: 1 }).waitFor();
  await page.waitForFunction(() => document.querySelector(".pf-v6-c-skeleton") === null);
}

/** Elements that are wider than the window, for a message that names them. */
export async function overflowing(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const scrolled = [document.documentElement, ...document.querySelectorAll(".pf-v6-c-page__main-container, #main")];
    if (scrolled.every(({ scrollWidth, clientWidth }) => scrollWidth <= clientWidth)) return [];
    const isOwnScroller = (element: Element) => element.closest(".atoll-scroll, .pf-m-scrollable, .pf-v6-c-tabs__list") !== null;
    return [...document.querySelectorAll("#root *")]
      .filter((element) => element.getBoundingClientRect().right > innerWidth + 1 && !isOwnScroller(element))
      .map((element) => `${element.tagName.toLowerCase()}.${String(element.className)}`)
      .slice(0, 10);
  });
}
