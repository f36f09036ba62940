import { cleanup, render, screen } from "@testing-library/react";
import { MemoryRouter } from "react-router-dom-v5-compat";
import { SWRConfig } from "swr";
import { afterEach, expect, test, vi } from "vitest";
import { DiscoveryImage } from "../components/discovery_image";

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

/** The ways to boot an image, on a server that responds to reads of boots with a status. */
async function ways(status: number): Promise<string[]> {
  let isAsked = false;
  vi.stubGlobal("fetch", async (url: string) => {
    if (!url.endsWith("/bmc-boot")) return new Response(JSON.stringify({ url: "https://images.example.org/full.iso" }));
    isAsked = true;
    return new Response(JSON.stringify(status === 200 ? { hosts: [] } : { reason: "no" }), { status });
  });
  render(<SWRConfig value={{ provider: () => new Map() }}><MemoryRouter><DiscoveryImage infraEnv={{ id: "env-1", name: "site" }} /></MemoryRouter></SWRConfig>);
  await screen.findByText("iPXE");
  await vi.waitFor(() => expect(isAsked).toBe(true));
  await screen.findByText("BMCs", {}, { timeout: status === 200 ? 1000 : 100 }).catch(() => {});
  return screen.getAllByRole("term").map(({ textContent }) => textContent ?? "");
}

test("boots by BMCs are one of the ways", async () => {
  expect(await ways(200)).toContain("BMCs");
  expect(screen.getByRole("link", { name: "Boot hosts by their BMCs" }).getAttribute("href")).toBe("/infra-envs/env-1/bmc-boot");
});

test.each([404, 403])("without them (%s), it is none", async (status) => expect(await ways(status)).not.toContain("BMCs"));
