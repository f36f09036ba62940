import { cleanup, render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, beforeEach, expect, test } from "vitest";
import { DraftNotice, useDraft } from "./draft";

beforeEach(() => sessionStorage.clear());
afterEach(cleanup);

function Subject({ saved }: { saved: { name: string } }) {
  const { values, change, isRestored, end } = useDraft("a", saved);
  return (
    <>
      {isRestored && <DraftNotice discard={end} />}
      <input aria-label="Name" value={values.name} onChange={({ target }) => change({ name: target.value })} />
    </>
  );
}
const field = () => screen.getByRole<HTMLInputElement>("textbox");
const EMPTY = { name: "" };

test("typed values are restored, and can be discarded", async () => {
  render(<Subject saved={EMPTY} />);
  expect(screen.queryByText("Restored from this browser tab")).toBeNull();
  await userEvent.type(field(), "x");
  cleanup();
  render(<Subject saved={EMPTY} />);
  expect(field().value).toBe("x");
  await userEvent.click(screen.getByRole("button", { name: "Discard" }));
  expect(field().value).toBe("");
  expect(sessionStorage).toHaveLength(0);
});

test("values that are saved follow what is saved", async () => {
  const { rerender } = render(<Subject saved={EMPTY} />);
  await userEvent.type(field(), "x");
  rerender(<Subject saved={{ name: "x" }} />);
  expect(sessionStorage).toHaveLength(0);
  rerender(<Subject saved={{ name: "y" }} />);
  expect(field().value).toBe("y");
});
