// The jobs of the site: read often while one is active.

import { useEffect, useRef } from "react";
import { type Resource, useResource } from "../api/resource";
import { type Job, LATEST_JOBS, isActive } from "./records";

/** While a job waits or runs. Units: milliseconds. */
const REFRESH_ACTIVE = 1_000;
/** Jobs that others start appear after this time. Units: milliseconds. */
const REFRESH = 20_000;

const refresh = (jobs: Job[]) => (jobs.some(isActive) ? REFRESH_ACTIVE : REFRESH);

/** The newest jobs first. `onEnd` is called when some have ended. */
export function useJobs(path = LATEST_JOBS, onEnd?: () => void): Resource<Job[]> {
  const jobs = useResource<Job[]>(path, refresh);
  const ended = jobs.data?.filter((job) => !isActive(job)).map(({ id }) => id).join(" ");
  const known = useRef<string>();
  const latest = useRef(onEnd);
  latest.current = onEnd;
  useEffect(() => {
    const before = known.current;
    known.current = ended ?? before;
    if (before !== undefined && ended?.split(" ").some((id) => !before.includes(id))) latest.current?.();
  }, [ended]);
  return jobs;
}
