// The registry's pages on the registry of a site: log-in, repositories, tags, manifests, deletion, maintenance.

import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { type CleanPage, assertClean, axe, launch, openPage, overflowing } from "./browser";
import { REPOSITORY, SIGNATURE, push, registryLogin } from "./registry_content";
import { type Site, startSite } from "./site";

const NARROW = { width: 360, height: 740 };
const REPOSITORIES = 25;
/** Before the log-in, the registry refuses; that is how the page knows that it has users. */
const REFUSED = /^401 GET .*\/services\/registry\/v2\//;

let site: Site;
let browser: Browser;
let pushed: { index: string; image: string };
const opened: CleanPage[] = [];

beforeAll(async () => {
  [site, browser] = await Promise.all([startSite({ content: false }), launch()]);
  pushed = await push(site, REPOSITORIES);
});

afterEach(async () => {
  for (const { page } of opened.splice(0)) await page.context().close();
});

afterAll(async () => {
  await browser?.close();
  await site?.stop();
});

async function newPage(name: string, options: Partial<Parameters<typeof openPage>[1]> = {}): Promise<CleanPage> {
  const clean = await openPage(browser, { url: site.url, name, ...options });
  clean.page.setDefaultTimeout(60_000);
  opened.push(clean);
  return clean;
}

async function fill(page: Page, password: string): Promise<void> {
  await page.getByRole("textbox", { name: /^User/ }).fill(registryLogin(site).user);
  await page.getByLabel(/^Password/).fill(password);
  await page.locator("form").getByRole("button", { name: "Log in" }).click();
}

/** Opens a page of the registry, and logs in. */
async function enter(clean: CleanPage, path: string): Promise<void> {
  await clean.open(path);
  await fill(clean.page, registryLogin(site).password);
  await clean.page.getByRole("button", { name: "Log out" }).waitFor();
}

async function check(clean: CleanPage, step: string): Promise<void> {
  await clean.screenshot(step);
  expect({ step, axe: await axe(clean.page) }).toEqual({ step, axe: [] });
  expect({ step, overflow: await overflowing(clean.page) }).toEqual({ step, overflow: [] });
}

const tags = (page: Page) => page.getByRole("grid", { name: "Tags" });

const REPOSITORY_PATH = `/registry/${REPOSITORY}`;

test("a wrong password is refused, the right one stays in memory", async () => {
  const clean = await newPage("registry-login");
  const { page } = clean;
  await clean.open("/registry");
  await fill(page, "wrong");
  await page.getByText("User or password are wrong.").waitFor();
  await check(clean, "wrong");
  await fill(page, registryLogin(site).password);
  await page.getByRole("link", { name: "many/repository-1", exact: true }).waitFor();
  await check(clean, "repositories");
  const stored = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, location.href]));
  expect(stored).not.toContain(registryLogin(site).password);
  await page.getByRole("textbox", { name: "Filter" }).fill("repository-25");
  await page.getByRole("link", { name: "many/repository-25" }).waitFor();
  await page.getByRole("link", { name: "many/repository-1", exact: true }).waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Log out" }).click();
  await page.getByRole("link", { name: "many/repository-25" }).waitFor({ state: "detached" });
  await page.reload();
  await page.getByText("This needs a login at the registry", { exact: false }).waitFor();
  assertClean(clean, REFUSED);
});

test.each([["", {}], ["narrow", { viewport: NARROW }], ["dark", { colorScheme: "dark" as const }]])("tags and manifests %s", async (name, options) => {
  const clean = await newPage(`registry-content-${name}`, options);
  const { page } = clean;
  await enter(clean, REPOSITORY_PATH);
  await page.getByText("linux/amd64, linux/arm64").waitFor();
  const untagged = page.getByRole("grid", { name: "Manifests without a tag" });
  await untagged.getByText(SIGNATURE).waitFor();
  // Two platforms and the signature of the index.
  expect(await untagged.getByRole("link", { name: "v2.0.0" }).count()).toBe(3);
  await page.getByRole("button", { name: "Details" }).first().click();
  await page.getByRole("grid", { name: "Referrers" }).getByText(SIGNATURE).waitFor();
  expect(await page.getByText(`podman pull ${registryLogin(site).host}/${REPOSITORY}:v2.0.0`).isVisible()).toBe(true);
  await check(clean, "tags");
  await tags(page).getByRole("link", { name: "v2.0.0" }).click();
  await page.getByRole("heading", { name: `${REPOSITORY}:v2.0.0`, level: 1 }).waitFor();
  await page.getByText(SIGNATURE).waitFor();
  await check(clean, "index");
  await page.getByRole("grid", { name: "Platforms" }).getByRole("link").first().click();
  await page.getByText("PATH, TOKEN").waitFor();
  await page.getByText("An operator").waitFor();
  expect(await page.content()).not.toContain("not-to-be-shown");
  await check(clean, "image");
  assertClean(clean, REFUSED);
});

test("maintenance: garbage is counted first, content is checked", async () => {
  const clean = await newPage("registry-maintenance");
  const { page } = clean;
  await enter(clean, "/registry?tab=maintenance");
  await page.getByText("Used on the file system").waitFor();
  await page.getByText("Content of the registry").waitFor();
  await check(clean, "disk");
  await page.getByRole("button", { name: "Check all content now" }).click();
  await page.getByText("No damage was found.").waitFor();
  await page.getByRole("button", { name: "Look for garbage" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText(/There is nothing to remove|Would be removed/).waitFor();
  await check(clean, "garbage");
  await dialog.getByRole("button", { name: "Close" }).last().click();
  await page.getByRole("tab", { name: "Users" }).click();
  await page.getByRole("heading", { name: "Rights" }).waitFor();
  await check(clean, "users");
  assertClean(clean, REFUSED);
});

test("images of a bundle are in the registry, or missing", async () => {
  const clean = await newPage("registry-mirrored");
  const { page } = clean;
  const missing = `sha256:${"0".repeat(64)}`;
  const documents = [
    { schema: "olm.channel", name: "stable", package: "operator", entries: [{ name: "operator.v1" }] },
    { schema: "olm.bundle", name: "operator.v1", package: "operator", relatedImages: [`operator@${pushed.index}`, `operator@${missing}`, "operator:v1"].map((image) => ({ image: `quay.example.org/group/${image}` })) },
  ];
  await page.route("**/services/catalogs/**", (route) => route.fulfill({ json: route.request().url().includes("olm.package") ? [{ schema: "olm.package", name: "operator" }] : documents }));
  await clean.open("/catalogs/catalog/operator");
  await page.getByRole("button", { name: "3 images" }).click();
  await page.getByRole("link", { name: "Log in at the registry" }).click();
  await fill(page, registryLogin(site).password);
  await page.getByRole("button", { name: "Log out" }).waitFor();
  // A reload would end the login.
  await page.goBack();
  await page.getByRole("button", { name: "3 images" }).click();
  await page.getByText("In the registry: 1 of 3").waitFor();
  await page.getByText("Missing", { exact: true }).waitFor();
  expect(await page.getByText("Unknown", { exact: true }).count()).toBe(1);
  await check(clean, "images");
  await page.getByRole("link", { name: "In the registry" }).click();
  await page.getByRole("heading", { level: 1, name: REPOSITORY }).waitFor();
  assertClean(clean, /^(401 GET|404 HEAD) .*\/services\/registry\/v2\//);
});

test("a tag, then its manifest with the other tag are deleted", async ({ task }) => {
  if (task.result?.retryCount) pushed = await push(site, 0);
  const clean = await newPage("registry-deletion");
  const { page } = clean;
  await enter(clean, REPOSITORY_PATH);
  const dialog = page.getByRole("dialog");
  await page.getByRole("button", { name: "Delete v1", exact: true }).click();
  await dialog.getByText("The manifest stays, with these tags: v1.0.0").waitFor();
  await check(clean, "tag");
  await dialog.getByRole("button", { name: "Delete the tag" }).click();
  await page.getByRole("link", { name: "v1", exact: true }).waitFor({ state: "detached" });
  await tags(page).getByTitle(pushed.image).click();
  await page.getByText("PATH, TOKEN").waitFor();
  await page.getByRole("button", { name: "Delete", exact: true }).click();
  await dialog.getByText("These tags of the manifest are deleted with it: v1.0.0").waitFor();
  await check(clean, "manifest");
  await dialog.getByRole("button", { name: "Delete the manifest" }).click();
  await tags(page).getByRole("link", { name: "v2.0.0" }).waitFor();
  await page.getByRole("link", { name: "v1.0.0" }).waitFor({ state: "detached" });
  // The last one pushed is the signature.
  const remove = page.getByRole("grid", { name: "Manifests without a tag" }).getByRole("button", { name: /^Delete sha256:/ });
  await remove.first().click();
  await dialog.getByText("The manifest has no tag.").waitFor();
  await dialog.getByRole("button", { name: "Delete the manifest" }).click();
  await dialog.waitFor({ state: "detached" });
  expect(await remove.count()).toBe(2);
  await remove.first().click();
  await dialog.getByText("lose a platform: v2.0.0").waitFor();
  await check(clean, "platform");
  assertClean(clean, REFUSED);
});

test("the page outlives the registry", async () => {
  const clean = await newPage("registry-killed");
  const { page } = clean;
  await enter(clean, "/registry");
  await page.getByRole("link", { name: "many/repository-1", exact: true }).waitFor();
  site.kill("registry");
  await page.getByRole("textbox", { name: "Filter" }).fill(REPOSITORY);
  await page.getByRole("link", { name: REPOSITORY }).click();
  await tags(page).getByRole("link", { name: "v2.0.0" }).waitFor();
  assertClean(clean, /^(401|50[234]) GET .*\/services\/registry\/v2\//);
});
