// The jobs of the site, and what people do with them.

import { useEffect, useRef } from "react";
import { mutate } from "swr";
import { send } from "../api/client";
import { type Resource, useResource } from "../api/resource";
import { ARCHIVES, type Job, JOBS, type JobKind, LATEST_JOBS, isActive } from "./records";

/** While a job waits or runs. Units: milliseconds. */
const REFRESH_ACTIVE = 1_000;
/** Jobs that others start appear after this time. Units: milliseconds. */
const REFRESH = 20_000;

const refresh = (jobs: Job[]) => (jobs.some(isActive) ? REFRESH_ACTIVE : REFRESH);

/** The newest jobs first. The list of archives is read again whenever one ends. */
export function useJobs(): Resource<Job[]> {
  const jobs = useResource<Job[]>(LATEST_JOBS, refresh);
  const ended = jobs.data?.filter((job) => !isActive(job)).map(({ id }) => id).join(" ");
  const known = useRef<string>();
  useEffect(() => {
    const before = known.current;
    known.current = ended ?? before;
    if (before !== undefined && ended?.split(" ").some((id) => !before.includes(id))) void mutate(ARCHIVES);
  }, [ended]);
  return jobs;
}

/** Starts a job for an archive set. Errors: `ApiError`. */
export async function startJob(kind: JobKind, archives: string): Promise<void> {
  await send<Job>("POST", JOBS, { kind, archives });
  await mutate(LATEST_JOBS);
}
