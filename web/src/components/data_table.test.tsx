import { cleanup, render, screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { MemoryRouter } from "react-router-dom-v5-compat";
import { afterEach, expect, test } from "vitest";
import { DataTable } from "./data_table";

interface Machine {
  name: string;
  status: string;
}

const MACHINES: Machine[] = [...Array(25).keys()].map((index) => ({ name: `node-${index}`, status: index < 5 ? "ready" : "error" }));

function show(rows: Machine[], address = "/") {
  render(
    <MemoryRouter initialEntries={[address]}>
      <DataTable label="Machines" rows={rows} rowId={({ name }) => name}
        columns={[{ id: "name", title: "Name", text: ({ name }) => name, cell: ({ name }) => name }]}
        choice={{ id: "status", title: "Status", of: ({ status }) => status }}
        actions={(selected) => <span>{selected.length} selected</span>}
        empty={{ title: "No machines yet", body: "Boot one." }} />
    </MemoryRouter>,
  );
}

const names = () => within(screen.getByRole("grid")).getAllByText(/^node-/).map((cell) => cell.textContent);

afterEach(cleanup);

test("rows are in the order of numbers, a page at a time", () => {
  show(MACHINES);
  expect(names()).toHaveLength(20);
  expect(names().slice(0, 3)).toEqual(["node-0", "node-1", "node-2"]);
});

test("text and attribute filter", async () => {
  show(MACHINES, "/?status=ready");
  expect(names()).toHaveLength(5);
  await userEvent.type(screen.getByRole("textbox", { name: "Filter" }), "node-3");
  expect(names()).toEqual(["node-3"]);
  await userEvent.type(screen.getByRole("textbox", { name: "Filter" }), "x");
  expect(screen.getByText("Nothing matches the filter.")).toBeDefined();
});

test("a page behind the last one is the last one", () => {
  show(MACHINES, "/?page=9");
  expect(names()).toHaveLength(5);
});

test("all that match are selected, on other pages, too", async () => {
  show(MACHINES, "/?status=error");
  await userEvent.click(screen.getByRole("checkbox", { name: "Select all rows" }));
  expect(screen.getByText("20 selected")).toBeDefined();
});

test("without rows the next step is shown", () => {
  show([]);
  expect(screen.getByText("No machines yet")).toBeDefined();
});
