// The stream of events: one connection for each filter that a visible page listens to.

import { BASE } from "./client";
import type { SiteEvent } from "./records";

/** Several events of one change arrive together: listeners of changes are called once for them. Units: milliseconds. */
const GATHER = 200;

/**
 * Calls `listener` with the events of a filter while the page is visible: browsers open six connections to a server, over
 * all tabs. Returns the function that stops it.
 */
export function onEvents(filter: string, listener: (events: SiteEvent[]) => void): () => void {
  let source: EventSource | undefined;
  let gathered: SiteEvent[] = [];
  let timer: ReturnType<typeof setTimeout> | undefined;
  let hasConnected = false;

  const flush = () => {
    timer = undefined;
    const events = gathered;
    gathered = [];
    listener(events);
  };
  const open = () => {
    source = new EventSource(`${BASE}/events/stream${filter && `?${filter}`}`);
    source.onopen = () => {
      // Events between two connections are not sent to a new source: what they changed is read again.
      if (hasConnected) listener([]);
      hasConnected = true;
    };
    source.onmessage = ({ data }: MessageEvent<string>) => {
      gathered.push(JSON.parse(data) as SiteEvent);
      timer ??= setTimeout(flush, GATHER);
    };
  };
  const close = () => {
    source?.close();
    source = undefined;
  };
  const onVisibility = () => (document.hidden ? close() : source === undefined && open());
  document.addEventListener("visibilitychange", onVisibility);
  if (!document.hidden) open();
  return () => {
    document.removeEventListener("visibilitychange", onVisibility);
    clearTimeout(timer);
    close();
  };
}
