// Archives that can be carried in, and the jobs that verify and publish them: records of the installer API.

export const ARCHIVES = "/archives";
export const JOBS = "/jobs";
/** The newest jobs. */
export const LATEST_JOBS = `${JOBS}?kinds=verify-archives,publish-archives&limit=50`;

/** Kinds of jobs that work with archives; lists have others, too. */
const KINDS = ["verify-archives", "publish-archives"] as const;
export type JobKind = (typeof KINDS)[number];
export type JobState = "queued" | "running" | "succeeded" | "failed" | "cancelled";
export type ArchiveStep = "unknown" | "next" | "published" | "out-of-order" | "damaged";

export interface JobFile {
  name: string;
  /** Units: bytes. */
  size: number;
}

export interface JobProgress {
  phase: string;
  items: number;
  items_total: number;
  /** Units: bytes. */
  bytes: number;
  /** Units: bytes. */
  bytes_total: number;
}

export interface ArchiveVerification {
  files: number;
  members: number;
  /** Units: bytes. */
  hashed_bytes: number;
  is_signed: boolean;
  /** The first ones of all that `fault_count` counts. */
  faults: string[];
  fault_count: number;
}

export interface ArchivePublication {
  is_unchanged: boolean;
  images: number;
  catalogs: number;
  sent_blobs: number;
  /** Units: bytes. */
  sent_bytes: number;
  pruned: number;
  /** Images whose pruning needs consent; nothing was published. */
  unconfirmed_prunes: number;
  files: JobFile[];
}

export interface Job {
  id: string;
  kind: JobKind;
  state: JobState;
  /** Name of its archive set. */
  archives?: string;
  created_by: string;
  created_at: string;
  started_at: string;
  ended_at: string;
  progress?: JobProgress;
  reason?: string;
  verification?: ArchiveVerification;
  publication?: ArchivePublication;
}

export interface ArchiveSet {
  /** Path of its first file below the folder. */
  name: string;
  /** Id of the image set over all its runs. */
  uid: string;
  sequence: number;
  single_use: boolean;
  created_at: string;
  files: JobFile[];
  /** Most bytes that its publication sends. */
  bytes: number;
  releases: string[];
  catalogs: string[];
  images: number;
  step: ArchiveStep;
  /** 0: the registry has none. */
  published_sequence: number;
  reason?: string;
}

export interface ArchiveList {
  folder: string;
  registry: string;
  sets: ArchiveSet[];
  registry_reason?: string;
}

/** The jobs that work with archives. */
export function ofArchives(jobs: Job[]): Job[] {
  return jobs.filter(({ kind }) => KINDS.includes(kind));
}

export function isActive({ state }: Job): boolean {
  return state === "queued" || state === "running";
}

/** Whether a job is the last one of its kind for its archive set. */
export function isLatest({ id, kind, archives }: Job, newestFirst: Job[]): boolean {
  return newestFirst.find((job) => job.kind === kind && job.archives === archives)?.id === id;
}
