import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { onEvents } from "./events";

/** Event source of the tests: jsdom has none. */
class Source {
  static open: Source[] = [];
  onopen?: () => void;
  onmessage?: () => void;

  constructor(readonly url: string) {
    Source.open.push(this);
  }

  changed?: () => void;

  addEventListener(name: string, listener: () => void): void {
    if (name === "change") this.changed = listener;
  }

  close(): void {
    Source.open = Source.open.filter((one) => one !== this);
  }
}

function hide(isHidden: boolean): void {
  vi.spyOn(document, "hidden", "get").mockReturnValue(isHidden);
  document.dispatchEvent(new Event("visibilitychange"));
}

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal("EventSource", Source);
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
  vi.useRealTimers();
  Source.open = [];
});

test("components share a connection, which ends with the last", () => {
  const [one, other] = [onEvents("cluster_id=1", () => {}), onEvents("cluster_id=1", () => {})];
  expect(Source.open.map(({ url }) => url)).toEqual(["/api/assisted-install/v2/events/stream?changes=true&cluster_id=1"]);
  one();
  expect(Source.open).toHaveLength(1);
  other();
  expect(Source.open).toHaveLength(0);
});

test("a change without an event is a call, too", () => {
  const listener = vi.fn();
  const stop = onEvents("", listener);
  Source.open[0]!.changed!();
  vi.advanceTimersByTime(200);
  expect(listener).toHaveBeenCalledTimes(1);
  stop();
});

test("events that arrive together are one call", () => {
  const listener = vi.fn();
  const stop = onEvents("", listener);
  for (let index = 0; index < 10; index++) Source.open[0]!.onmessage!();
  expect(listener).not.toHaveBeenCalled();
  vi.advanceTimersByTime(200);
  expect(listener).toHaveBeenCalledTimes(1);
  stop();
});

test("a hidden page has no connection, and reads again when it is shown", () => {
  const listener = vi.fn();
  const stop = onEvents("", listener);
  Source.open[0]!.onopen!();
  hide(true);
  expect(Source.open).toHaveLength(0);
  hide(false);
  expect(Source.open).toHaveLength(1);
  Source.open[0]!.onopen!();
  expect(listener).toHaveBeenCalledTimes(1);
  stop();
});
