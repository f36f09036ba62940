// The rate of a job and the time that it needs, by its progress over the last seconds.

import type { JobProgress } from "./records";

/** Units: milliseconds. */
const WINDOW = 10_000;
/** A rate of a shorter time jumps. Units: milliseconds. */
const SHORTEST = 2_000;

export interface Sample {
  /** Units: milliseconds. */
  at: number;
  bytes: number;
  phase: string;
}

/** The samples of the window with one more; those of another phase, or of a start before this one, are left out. */
export function withSample(samples: Sample[], sample: Sample): Sample[] {
  const last = samples.at(-1);
  if (last && (last.phase !== sample.phase || last.bytes > sample.bytes)) return [sample];
  const oldest = sample.at - WINDOW;
  // The last one before the window belongs to it, so that the rate is that of a whole window.
  const start = Math.max(0, samples.findIndex(({ at }) => at > oldest) - 1);
  return [...(samples.some(({ at }) => at > oldest) ? samples.slice(start) : samples.slice(-1)), sample];
}

/** Bytes in a second; undefined while it is not known. */
export function rateOf(samples: Sample[]): number | undefined {
  const [first, last] = [samples[0], samples.at(-1)];
  if (!first || !last || last.at - first.at < SHORTEST) return undefined;
  return ((last.bytes - first.bytes) * 1000) / (last.at - first.at);
}

/** Milliseconds until all bytes are done; undefined without a rate. */
export function timeLeft({ bytes, bytes_total: total }: JobProgress, rate: number | undefined): number | undefined {
  return !rate || total <= bytes ? undefined : ((total - bytes) * 1000) / rate;
}

/** Percentage of a phase: of its bytes, or else of its items. */
export function percentage({ items, items_total: allItems, bytes, bytes_total: allBytes }: JobProgress): number | undefined {
  const [done, all] = allBytes > 0 ? [bytes, allBytes] : [items, allItems];
  return all > 0 ? Math.min(100, Math.floor((100 * done) / all)) : undefined;
}
