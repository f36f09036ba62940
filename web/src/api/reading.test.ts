import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { rested } from "./reading";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test("changes during a read and its rest cause one more", async () => {
  let reads = 0;
  const change = rested(async () => {
    reads += 1;
    await new Promise((done) => setTimeout(done, 100));
  });
  change();
  for (let index = 0; index < 10; index++) {
    await vi.advanceTimersByTimeAsync(30);
    change();
  }
  expect(reads).toBe(1);
  await vi.advanceTimersByTimeAsync(200);
  expect(reads).toBe(2);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(reads).toBe(2);
});

test("a failed read does not end them", async () => {
  let reads = 0;
  const change = rested(() => Promise.reject(new Error(String(++reads))));
  change();
  await vi.advanceTimersByTimeAsync(10);
  change();
  await vi.advanceTimersByTimeAsync(10);
  expect(reads).toBe(2);
});
