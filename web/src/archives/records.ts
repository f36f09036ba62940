// Archives that can be carried in, and the jobs of the site: records of the installer API.

import type { RehearsalResult } from "../rehearsal/records";

export const ARCHIVES = "/archives";
export const JOBS = "/jobs";
/** The newest jobs. */
export const LATEST_JOBS = `${JOBS}?limit=50`;
/** Those of archives: rehearsals, of which there are many, do not hide them. */
export const LATEST_ARCHIVE_JOBS = `${JOBS}?kinds=verify-archives,publish-archives&limit=50`;
export const LATEST_REHEARSALS = `${JOBS}?kinds=rehearsal&limit=50`;

export type JobKind = "verify-archives" | "publish-archives" | "rehearsal";
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
  /** Simulated hosts by their status and stage. */
  hosts?: Record<string, number>;
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
  rehearsal?: RehearsalResult;
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
  /** Releases with an image of their own, as `4.18.30-x86_64`; missing: an older server. */
  release_images?: string[];
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
  /** Sets beyond the longest list. */
  omitted_sets?: number;
  registry_reason?: string;
}

export function isActive({ state }: Job): boolean {
  return state === "queued" || state === "running";
}

/** Whether a job is the last one of its kind for its archive set. */
export function isLatest({ id, kind, archives }: Job, newestFirst: Job[]): boolean {
  return newestFirst.find((job) => job.kind === kind && job.archives === archives)?.id === id;
}

export function isRehearsal({ kind }: Job): boolean {
  return kind === "rehearsal";
}
