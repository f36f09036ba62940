import { cleanup, fireEvent, render, screen } from "@testing-library/react";
import { SWRConfig } from "swr";
import { afterEach, expect, test, vi } from "vitest";
import { OsStreamChoice, streamsOf } from "./os_stream";

const STREAMS = [{ name: "rhel-9", default: true }, { name: "rhel-10" }];
const VERSIONS = { "4.21.9": { default: true }, "4.22.1": { os_streams: STREAMS }, "5.0.1": {} };

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

/** A server that refuses changes with this status; the requests of changes. */
function serve(status: number): string[] {
  const changes: string[] = [];
  vi.stubGlobal("fetch", async (url: string, options?: RequestInit) => {
    if (options?.method !== "PATCH") return new Response(JSON.stringify(VERSIONS));
    changes.push(`${url.split("/v2")[1]} ${String(options.body)}`);
    return new Response(JSON.stringify({ reason: "it is installing" }), { status });
  });
  return changes;
}

function show(version: string, changed = () => {}, cluster?: string) {
  const infraEnv = { id: "env-1", openshift_version: version, ...(cluster && { cluster_id: cluster }) };
  render(<SWRConfig value={{ provider: () => new Map() }}><OsStreamChoice infraEnv={infraEnv} changed={changed} /></SWRConfig>);
}

test("another stream is chosen for the image and its cluster", async () => {
  const [changes, changed] = [serve(201), vi.fn()];
  show("4.22", changed, "c-1");
  const choice = await screen.findByRole("combobox", { name: "Operating system stream" });
  expect(screen.getAllByRole("option").map(({ textContent }) => textContent)).toEqual(["Default (rhel-9)", "rhel-10"]);
  fireEvent.change(choice, { target: { value: "rhel-10" } });
  await vi.waitFor(() => expect(changed).toHaveBeenCalled());
  const body = JSON.stringify({ os_stream: "rhel-10" });
  expect(changes).toEqual([`/clusters/c-1 ${body}`, `/infra-envs/env-1 ${body}`]);
});

test("a refusal is shown, and nothing else is changed", async () => {
  const [changes, changed] = [serve(409), vi.fn()];
  show("4.22", changed, "c-1");
  fireEvent.change(await screen.findByRole("combobox"), { target: { value: "rhel-10" } });
  await screen.findByText(/It is installing/);
  expect(changes.length).toBe(1);
  expect(changed).not.toHaveBeenCalled();
});

test("there is no choice where there is one stream", () => {
  expect(streamsOf(VERSIONS, "4.22")).toEqual(STREAMS);
  expect(streamsOf(VERSIONS, "4.22.1")).toEqual(STREAMS);
  for (const version of ["4.21", "5.0", "4.2", undefined]) expect(streamsOf(VERSIONS, version)).toEqual([]);
});
