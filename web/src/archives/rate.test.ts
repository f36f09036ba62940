import { expect, test } from "vitest";
import { type Sample, percentage, rateOf, timeLeft, withSample } from "./rate";
import type { JobProgress } from "./records";

const progress = (members: Partial<JobProgress>): JobProgress => ({ phase: "publishing", items: 0, items_total: 0, bytes: 0, bytes_total: 0, ...members });

/** Samples of each second. */
function sampled(bytes: number[], phase = "publishing", start: Sample[] = []): Sample[] {
  const from = (start.at(-1)?.at ?? -1000) + 1000;
  return bytes.reduce((samples, count, index) => withSample(samples, { at: from + index * 1000, bytes: count, phase }), start);
}

test("the rate is that of the last ten seconds", () => {
  const slowThenFast = [...Array.from({ length: 30 }, (_, second) => second), ...Array.from({ length: 11 }, (_, second) => 30 + second * 100)];
  const samples = sampled(slowThenFast);
  expect(rateOf(samples)).toBeCloseTo(100);
  expect(samples.length).toBeLessThan(15);
});

test("a rate takes two seconds to be known", () => {
  expect(rateOf([])).toBeUndefined();
  expect(rateOf(sampled([0, 500]))).toBeUndefined();
  expect(rateOf(sampled([0, 500, 1000]))).toBe(500);
});

test("another phase starts anew, as does a job that starts again", () => {
  const first = sampled([0, 1000, 2000]);
  expect(rateOf(sampled([5000], "verifying", first))).toBeUndefined();
  expect(rateOf(sampled([100, 200, 300], "publishing", first))).toBe(100);
});

test("a job that stalls comes to a rate of zero", () => {
  expect(rateOf(sampled([0, 1000, ...Array.from({ length: 12 }, () => 1000)]))).toBe(0);
});

test("a sample after a long rest is compared with the one before", () => {
  const samples = withSample(sampled([0, 1000]), { at: 101_000, bytes: 2000, phase: "publishing" });
  expect(rateOf(samples)).toBe(10);
});

test("the time that is left", () => {
  expect(timeLeft(progress({ bytes: 100, bytes_total: 1100 }), 100)).toBe(10_000);
  expect(timeLeft(progress({ bytes: 100, bytes_total: 1100 }), 0)).toBeUndefined();
  expect(timeLeft(progress({ bytes: 100, bytes_total: 1100 }), undefined)).toBeUndefined();
  expect(timeLeft(progress({ bytes: 1100, bytes_total: 1100 }), 100)).toBeUndefined();
});

test("percentages are of bytes, or else of items", () => {
  expect(percentage(progress({ bytes: 999, bytes_total: 1000, items: 1, items_total: 2 }))).toBe(99);
  expect(percentage(progress({ items: 1, items_total: 2 }))).toBe(50);
  expect(percentage(progress({ bytes: 3, bytes_total: 2 }))).toBe(100);
  expect(percentage(progress({}))).toBeUndefined();
});
