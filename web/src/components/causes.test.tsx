import { cleanup, render, screen, within } from "@testing-library/react";
import { MemoryRouter } from "react-router-dom-v5-compat";
import { afterEach, beforeAll, expect, test } from "vitest";
import type { Cause, Subject } from "../api/records";
import { startTexts } from "../i18n";
import { Causes } from "./causes";
import { Reason } from "./reason";

beforeAll(startTexts);
afterEach(cleanup);

const CLUSTER: Subject = { kind: "cluster", id: "c", name: "north" };
const host = (name: string): Subject => ({ kind: "host", id: name, name });
const cause = (id: string, subject: Subject, members: Partial<Cause> = {}): Cause => ({ kind: "validation", id, status: "failure", subject, observed: `no ${id}`, ...members });

const CAUSES = [
  cause("machine-cidr-defined", CLUSTER), cause("api-vips-defined", CLUSTER), ...["m-0", "m-1"].map((name) => cause("machine-cidr-defined", host(name))),
  ...["m-0", "m-1"].map((name) => cause("belongs-to-machine-cidr", host(name), { status: "pending", observed: "waiting for the machine network" })),
];
const ids = () => within(screen.getAllByRole("list")[0]!).getAllByRole("listitem").map((item) => item.querySelector("code")?.textContent);
const show = (limit?: number) => render(<MemoryRouter><Causes subject={CLUSTER} causes={CAUSES} {...(limit !== undefined && { limit })} /></MemoryRouter>);

test("each mistake has one entry, checks that wait are behind a click", () => {
  show();
  expect(ids()).toEqual(["api-vips-defined", "machine-cidr-defined"]);
  expect(screen.getByRole("link", { name: "Set the machine networks" }).getAttribute("href")).toBe("/assisted-installer/clusters/c?step=networking");
  expect(screen.getByText("Checks that wait for an input: 2").closest("details")?.open).toBe(false);
});

test("a part of the mistakes is shown where there is little space", () => {
  show(1);
  expect(ids()).toEqual(["api-vips-defined"]);
  expect(screen.queryByText(/Checks that wait/)).toBeNull();
});

test("an error chain is one sentence, its details are behind a click", () => {
  const chain = "pull the image: error sending request: client error (Connect): connection refused";
  render(<Reason text={chain} />);
  expect(screen.getByText("Details").closest("details")?.open).toBe(false);
  screen.getByText(chain);
  expect(document.body.textContent).toMatch(/^Pull the image: connection refusedDetails/);
});
