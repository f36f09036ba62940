// Times with their full form as a tooltip, and ages that count on.

import { useEffect, useState } from "react";
import { instant, localTime, since } from "./format";

const TICK = 1000;

export function Time({ at }: { at: string | undefined }) {
  const then = instant(at);
  return then === undefined ? <>–</> : <time dateTime={at} title={new Date(then).toISOString()}>{localTime(at)}</time>;
}

export function Age({ at }: { at: string | undefined }) {
  const [, tick] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => tick((count) => count + 1), TICK);
    return () => clearInterval(timer);
  }, []);
  const then = instant(at);
  return then === undefined ? <>–</> : <time dateTime={at} title={localTime(at)} className="atoll-nowrap">{since(at)}</time>;
}
