// The jobs of archives: read often while one is active.

import { useEffect, useMemo, useRef } from "react";
import { type Resource, useResource } from "../api/resource";
import { type Job, LATEST_JOBS, isActive, ofArchives } from "./records";

/** While a job waits or runs. Units: milliseconds. */
const REFRESH_ACTIVE = 1_000;
/** Jobs that others start appear after this time. Units: milliseconds. */
const REFRESH = 20_000;

const refresh = (jobs: Job[]) => (ofArchives(jobs).some(isActive) ? REFRESH_ACTIVE : REFRESH);

/** The jobs of archives, the newest first. `onEnd` is called when some have ended. */
export function useJobs(onEnd?: () => void): Resource<Job[]> {
  const all = useResource<Job[]>(LATEST_JOBS, refresh);
  const jobs = useMemo(() => all.data && ofArchives(all.data), [all.data]);
  const ended = jobs?.filter((job) => !isActive(job)).map(({ id }) => id).join(" ");
  const known = useRef<string>();
  const latest = useRef(onEnd);
  latest.current = onEnd;
  useEffect(() => {
    const before = known.current;
    known.current = ended ?? before;
    if (before !== undefined && ended?.split(" ").some((id) => !before.includes(id))) latest.current?.();
  }, [ended]);
  return { ...all, data: jobs };
}
