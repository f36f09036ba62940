import { cleanup, render, screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ActionDialog } from "./action_dialog";

const ACTION = {
  title: "Install", body: "Disks are overwritten.",
  changes: [{ method: "POST", path: "/a/actions/install" }, { method: "POST", path: "/b/actions/install" }],
};

/** Requests, and what they get: a status and a reason. */
let requests: string[];
let responses: Record<string, [number, string]>;

beforeEach(() => {
  requests = [];
  responses = {};
  vi.stubGlobal("fetch", async (url: string, { method }: RequestInit) => {
    const request = `${method} ${url.replace("/api/assisted-install/v2", "")}`;
    requests.push(request);
    const [status, message] = responses[request] ?? [202, ""];
    return new Response(JSON.stringify({ message }), { status });
  });
});
afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

const open = (done = () => {}) => render(<ActionDialog action={ACTION} close={() => {}} done={done} />);
const button = () => screen.getByRole("button", { name: "Install" });

test("nothing is changed before it is confirmed", async () => {
  let isDone = false;
  open(() => (isDone = true));
  await waitFor(() => expect(button().hasAttribute("disabled")).toBe(false));
  expect(requests).toEqual(["POST /a/actions/install?dry_run=true", "POST /b/actions/install?dry_run=true"]);
  await userEvent.click(button());
  await waitFor(() => expect(isDone).toBe(true));
  expect(requests.slice(2)).toEqual(["POST /a/actions/install", "POST /b/actions/install"]);
});

test("a refusal is shown with its reason, and cannot be confirmed", async () => {
  responses["POST /b/actions/install?dry_run=true"] = [409, "host b is not ready"];
  open();
  await screen.findByText("Host b is not ready", { exact: false });
  expect(button().hasAttribute("disabled")).toBe(true);
  expect(requests).toHaveLength(2);
});

test("a failure in the middle is shown", async () => {
  responses["POST /b/actions/install"] = [500, ""];
  open();
  await waitFor(() => expect(button().hasAttribute("disabled")).toBe(false));
  await userEvent.click(button());
  await screen.findByText(/The service failed/);
  expect(requests.slice(2)).toEqual(["POST /a/actions/install", "POST /b/actions/install"]);
});

test("an action without dry run is asked of the service once, when it is confirmed", async () => {
  render(<ActionDialog action={{ ...ACTION, changes: ACTION.changes.slice(0, 1), hasNoDryRun: true }} close={() => {}} done={() => {}} />);
  expect(requests).toEqual([]);
  await userEvent.click(button());
  await waitFor(() => expect(requests).toEqual(["POST /a/actions/install"]));
});
