import { cleanup, fireEvent, render, screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { MemoryRouter, Route, Routes } from "react-router-dom-v5-compat";
import { SWRConfig } from "swr";
import { afterEach, beforeAll, beforeEach, expect, test, vi } from "vitest";
import type { BmcBootHost } from "../bmc_boot/records";
import { startTexts } from "../i18n";
import BmcBootPage from "./bmc_boot";

vi.setConfig({ testTimeout: 20_000 });

const NEVER = "0001-01-01T00:00:00.000Z";
const BOOTS = "/infra-envs/env-1/bmc-boot";
const INFRA_ENV = { id: "env-1", name: "site", type: "full-iso", cluster_id: "cluster-1" };

let hosts: BmcBootHost[];
/** Changes that were requested, and refusals by method and path. */
let requests: [method: string, path: string, body?: unknown][];
let refusals: Record<string, [status: number, reason: string]>;

function boot(name: string, members: Partial<BmcBootHost>): BmcBootHost {
  return { name, address: `redfish://${name}`, state: "waiting", requested_by: "admin", requested_at: "2026-01-02T03:04:05Z", started_at: NEVER, ended_at: NEVER, ...members };
}

// Texts have their values.
beforeAll(startTexts);

beforeEach(() => {
  hosts = [];
  requests = [];
  refusals = {};
  sessionStorage.clear();
  vi.stubGlobal("fetch", async (url: string, { method = "GET", body }: RequestInit) => {
    const path = url.replace("/api/assisted-install/v2", "");
    if (method !== "GET") requests.push(typeof body === "string" ? [method, path, JSON.parse(body)] : [method, path]);
    const refusal = refusals[`${method} ${path}`];
    if (refusal) return new Response(JSON.stringify({ reason: refusal[1] }), { status: refusal[0] });
    if (path === "/infra-envs/env-1") return new Response(JSON.stringify(INFRA_ENV));
    return path === BOOTS ? new Response(JSON.stringify({ hosts }), { status: method === "GET" ? 200 : 202 }) : new Response("{}", { status: 404 });
  });
});
afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

const open = () => render(
  <SWRConfig value={{ provider: () => new Map() }}>
    <MemoryRouter initialEntries={["/infra-envs/env-1/bmc-boot"]}>
      <Routes><Route path="/infra-envs/:id/bmc-boot" element={<BmcBootPage />} /></Routes>
    </MemoryRouter>
  </SWRConfig>,
);
/** By its text: roles of a form with many rows take seconds to find. */
const button = async (name: string) => (await screen.findByText(name, { selector: "button span" })).closest("button")!;
const field = (name: string) => screen.getByLabelText<HTMLInputElement>(name);

const type = (name: string, value: string) => fireEvent.change(field(name), { target: { value } });

/** Rows by lines of the form's text. */
async function paste(text: string): Promise<void> {
  await userEvent.click(await button("Paste many"));
  type("Lines: name,address,user,password", text);
}

test("a typed BMC is booted, and followed", async () => {
  open();
  await button("Boot hosts: 0");
  type("Name of row 1", "cp-0");
  type("Address of row 1", "redfish://10.0.0.1");
  type("User name of row 1", "root");
  type("Password of row 1", "s3cret");
  expect(JSON.stringify({ ...sessionStorage })).toContain("10.0.0.1");
  expect(JSON.stringify([{ ...sessionStorage }, { ...localStorage }, location.href])).not.toContain("s3cret");
  await userEvent.click(screen.getByLabelText(/^Verify the certificate/));
  await userEvent.selectOptions(field("Medium"), "uefi-http");
  await userEvent.click(screen.getByLabelText(/Eject the medium/));
  hosts = [boot("cp-0", { state: "running", step: "connect", started_at: "2026-01-02T03:04:05Z" })];
  await userEvent.click(await button("Boot hosts: 1"));
  expect(requests).toEqual([["POST", BOOTS, {
    medium: "uefi-http", eject_after_install: true,
    bmcs: [{ name: "cp-0", address: "redfish://10.0.0.1", username: "root", password: "s3cret", disable_certificate_verification: true }],
  }]]);
  await screen.findByText("Under way: 1, done: 0, failed: 0");
  await screen.findByText("Connect");
  expect(field("Password of row 1").value).toBe("");
  expect(sessionStorage).toHaveLength(0);
  hosts = [boot("cp-0", { state: "done", warning: "the boot order starts with the network" })];
  await screen.findByText("Under way: 0, done: 1, failed: 0", {}, { timeout: 4000 });
  await screen.findByText(/the boot order starts/);
});

test("pasted rows are added, lines with problems stay", async () => {
  open();
  await paste("cp-0,redfish://10.0.0.1,root,s3cret\ncp-1,redfish://10.0.0.2,root");
  await screen.findByText(/It has 3 values instead of 4/);
  await userEvent.click(await button("Add rows: 1"));
  expect(field("Name of row 1").value).toBe("cp-0");
  expect(field("Lines: name,address,user,password").value).toBe("cp-1,redfish://10.0.0.2,root");
  expect(JSON.stringify({ ...sessionStorage })).not.toContain("s3cret");
});

test("mistakes are shown by their fields, and nothing is sent", async () => {
  open();
  await paste("cp-0,ipmi://10.0.0.1,root,\nCP_1,redfish://10.0.0.2,root,x");
  await userEvent.click(await button("Add rows: 2"));
  await screen.findByText(/Only Redfish is driven/);
  await screen.findByText(/A name has lower-case letters/);
  expect(screen.queryByText("The password is missing.")).toBeNull();
  await userEvent.click(await button("Boot hosts: 2"));
  await screen.findByText("The password is missing.");
  expect(document.activeElement).toBe(field("Address of row 1"));
  expect(requests).toEqual([]);
});

test("one login fills rows without one", async () => {
  open();
  await paste("cp-0,redfish://10.0.0.1,,\ncp-1,redfish://10.0.0.2,admin,y");
  await userEvent.click(await button("Add rows: 2"));
  await userEvent.click(await button("One login for all rows without one"));
  type("User name", "root");
  type("Password", "x");
  await userEvent.click(await button("Fill in"));
  expect([1, 2].map((row) => [field(`User name of row ${row}`).value, field(`Password of row ${row}`).value])).toEqual([["root", "x"], ["admin", "y"]]);
});

test("a refusal is shown in the row that it names, on its page", async () => {
  refusals[`POST ${BOOTS}`] = [400, "bmcs[24].address: is that of bmcs[3], too: each host has its own"];
  open();
  await paste(Array.from({ length: 25 }, (_, at) => `h${at},redfish://h${at},root,x`).join("\n"));
  await userEvent.click(await button("Add rows: 25"));
  await userEvent.click(await button("Boot hosts: 25"));
  await screen.findByText("is that of bmcs[3], too: each host has its own");
  await screen.findByText(/The service refused row 25/);
  expect(document.activeElement).toBe(field("Address of row 25"));
});

test("other refusals are shown with their remedy", async () => {
  refusals[`POST ${BOOTS}`] = [409, "no discovery image is on offer: add its base image to OS_IMAGES"];
  open();
  await paste("cp-0,redfish://10.0.0.1,root,x");
  await userEvent.click(await button("Add rows: 1"));
  await userEvent.click(await button("Boot hosts: 1"));
  await screen.findByText(/No discovery image is on offer/);
  await screen.findByText("Correct the cause, then try again.");
  expect(field("Password of row 1").value).toBe("x");
});

test("failed hosts are tried again, with credentials that are typed again", async () => {
  hosts = [boot("cp-0", { state: "done" }), boot("cp-1", { state: "failed", error: "the user name or the password is wrong" })];
  open();
  await screen.findByText(/the user name or the password is wrong/i);
  await userEvent.click(await button("Try failed hosts again: 1"));
  await screen.findByText(/Enter the user names and passwords again/);
  expect([field("Name of row 1").value, field("Address of row 1").value, field("User name of row 1").value]).toEqual(["cp-1", "redfish://cp-1", ""]);
  expect(screen.queryByLabelText("Name of row 2")).toBeNull();
});

test("boots that are under way are cancelled after a confirmation", async () => {
  hosts = [boot("cp-0", { state: "installing" }), boot("cp-1", {})];
  open();
  await screen.findByText("Waits for the end of the installation");
  await userEvent.click(await button("Cancel the boots"));
  expect(requests).toEqual([]);
  await userEvent.click(within(await screen.findByRole("dialog")).getByRole("button", { name: "Cancel the boots" }));
  await waitFor(() => expect(requests).toEqual([["DELETE", BOOTS]]));
});

test("an empty list says the next step, and an older server that it has no boots", async () => {
  open();
  await screen.findByText("No boots yet");
  cleanup();
  refusals[`GET ${BOOTS}`] = [404, "no such path"];
  open();
  await screen.findByText("This version of the server boots no hosts by BMCs");
  expect(screen.queryByText("New boots")).toBeNull();
});
