// The progress of a job: its phase, how much of it is done, how fast, and the time that is left.

import { Progress, Spinner } from "@patternfly/react-core";
import { useEffect, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { bytes as size, span, words } from "../components/format";
import { type Sample, percentage, rateOf, timeLeft, withSample } from "./rate";
import type { JobProgress as Amounts } from "./records";

const TICK = 1_000;

/** Bytes in a second over the last seconds. A job that stalls reports nothing new: time alone takes the samples. */
function useRate({ bytes, phase }: Amounts): number | undefined {
  const [samples, setSamples] = useState<Sample[]>([]);
  const latest = useRef({ bytes, phase });
  latest.current = { bytes, phase };
  useEffect(() => {
    const sample = () => setSamples((before) => withSample(before, { at: performance.now(), ...latest.current }));
    sample();
    const timer = setInterval(sample, TICK);
    return () => clearInterval(timer);
  }, []);
  return rateOf(samples);
}

export function JobProgress({ progress }: { progress: Amounts }) {
  const { t } = useTranslation();
  const { phase, items, items_total: allItems, bytes, bytes_total: allBytes } = progress;
  const rate = useRate(progress);
  const left = timeLeft(progress, rate);
  const value = percentage(progress);
  const amounts = [
    allItems > 0 && t("{{done}} of {{all}}", { done: items, all: allItems }),
    allBytes > 0 && t("{{done}} of {{all}}", { done: size(bytes), all: size(allBytes) }),
    rate !== undefined && rate > 0 && `${size(rate)}/s`,
    left !== undefined && t("{{time}} left", { time: span(left) }),
  ].filter(Boolean);
  return (
    <div className="atoll-job">
      {value === undefined
        ? <><Spinner size="md" aria-label={t(words(phase))} /> {t(words(phase))}</>
        : <Progress value={value} title={t(words(phase))} size="sm" aria-label={t(words(phase))} />}
      <div className="atoll-muted">{amounts.join(" · ")}</div>
    </div>
  );
}
