import { act, cleanup, renderHook, waitFor } from "@testing-library/react";
import { afterEach, expect, test } from "vitest";
import { ApiError } from "../api/client";
import { passwordLogin, registryLogin } from "../api/registry";
import { loadEach, useDetails } from "./resource";

afterEach(() => {
  cleanup();
  registryLogin.set(undefined);
});

/** A load whose results are given by hand. */
function manual() {
  const open = new Map<string, { done: (value: string) => void; fail: (error: unknown) => void; signal: AbortSignal }>();
  const asked: string[] = [];
  const load = (id: string, signal: AbortSignal) => new Promise<string>((done, fail) => {
    asked.push(id);
    open.set(id, { done, fail, signal });
  });
  return { load, open, asked };
}

test("a few are loaded at a time, until the end of the signal", async () => {
  let running = 0;
  let most = 0;
  const loaded: string[] = [];
  const stop = new AbortController();
  await loadEach(Array.from({ length: 20 }, (_, index) => String(index)), async (id) => {
    most = Math.max(most, ++running);
    await Promise.resolve();
    running -= 1;
    if (loaded.push(id) === 10) stop.abort();
  }, stop.signal);
  expect(most).toBe(4);
  expect(loaded.length).toBeLessThan(15);
});

test("rows that are not visible any more do not delay others", async () => {
  const { load, open, asked } = manual();
  const { result, rerender } = renderHook(({ ids }) => useDetails("a", ids, load), { initialProps: { ids: ["1", "2", "3", "4", "5", "6"] } });
  await waitFor(() => expect(asked).toEqual(["1", "2", "3", "4"]));
  await act(async () => open.get("1")!.done("one"));
  expect(asked).toEqual(["1", "2", "3", "4", "5"]);
  rerender({ ids: ["7", "1"] });
  await waitFor(() => expect(asked.at(-1)).toBe("7"));
  expect(open.get("2")!.signal.aborted).toBe(true);
  await act(async () => {
    open.get("2")!.done("two");
    open.get("7")!.done("seven");
  });
  // What was loaded is kept, what was given up is not.
  expect([...result.current]).toEqual([["1", "one"], ["7", "seven"]]);
});

test("a failure is a detail, and is loaded again only where the registry was away", async () => {
  const { load, open, asked } = manual();
  const { result, rerender } = renderHook(({ ids }) => useDetails("a", ids, load), { initialProps: { ids: ["1", "2"] } });
  await waitFor(() => expect(asked).toHaveLength(2));
  await act(async () => {
    open.get("1")!.fail(new ApiError("gone", "", 404));
    open.get("2")!.fail(new ApiError("away", "", 503));
  });
  expect((result.current.get("1") as ApiError).message).toBe("gone");
  rerender({ ids: ["1", "2", "3"] });
  await waitFor(() => expect(asked).toEqual(["1", "2", "2", "3"]));
});

test("another login sees nothing of the one before", async () => {
  const { load, open, asked } = manual();
  const { result } = renderHook(() => useDetails("a", ["1"], load));
  await act(async () => open.get("1")!.done("one"));
  expect(result.current.get("1")).toBe("one");
  act(() => registryLogin.set(passwordLogin("b", "c")));
  expect(result.current.size).toBe(0);
  await waitFor(() => expect(asked).toEqual(["1", "1"]));
});
