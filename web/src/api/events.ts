// The stream of events: one connection for each filter, shared by the components of a page, while it is visible. Browsers
// open six connections to a server, over all tabs.

import { BASE } from "./client";

/** Several events of one change arrive together: listeners are called once for them. Units: milliseconds. */
const GATHER = 200;

interface Stream {
  listeners: Set<() => void>;
  source?: EventSource;
  timer?: ReturnType<typeof setTimeout>;
  hasConnected: boolean;
}

const streams = new Map<string, Stream>();

function call(stream: Stream): void {
  stream.timer = undefined;
  for (const listener of stream.listeners) listener();
}

function open(filter: string, stream: Stream): void {
  // Changes without an event, too: a cluster that another person renamed.
  const source = new EventSource(`${BASE}/events/stream?changes=true${filter && `&${filter}`}`);
  source.onopen = () => {
    // Events between two connections are not sent to a new source: what they changed is read again.
    if (stream.hasConnected) call(stream);
    stream.hasConnected = true;
  };
  const note = () => {
    stream.timer ??= setTimeout(() => call(stream), GATHER);
  };
  source.onmessage = note;
  source.addEventListener("change", note);
  stream.source = source;
}

function close(stream: Stream): void {
  stream.source?.close();
  stream.source = undefined;
  clearTimeout(stream.timer);
  stream.timer = undefined;
}

document.addEventListener("visibilitychange", () => {
  for (const [filter, stream] of streams) {
    if (document.hidden) close(stream);
    else if (!stream.source) open(filter, stream);
  }
});

/** Calls `listener` after events of a filter, a query of the API's; returns the function that stops it. */
export function onEvents(filter: string, listener: () => void): () => void {
  let stream = streams.get(filter);
  if (!stream) {
    stream = { listeners: new Set(), hasConnected: false };
    streams.set(filter, stream);
    if (!document.hidden) open(filter, stream);
  }
  const shared = stream;
  shared.listeners.add(listener);
  return () => {
    shared.listeners.delete(listener);
    if (shared.listeners.size > 0) return;
    close(shared);
    streams.delete(filter);
  };
}
