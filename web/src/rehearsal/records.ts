// Rehearsals of installations: records of the installer API.

export const OPTIONS = "/rehearsal-options";

/** Larger site files are refused. Units: bytes. */
export const MAX_SITE = 2 << 20;

export interface RehearsalParams {
  /** Empty: the machines of the profile. */
  site: string;
  profile: string;
  /** `NAME@HOST`, or `NAME` for a host that the seed chooses. */
  faults: string[];
  seed: string;
  /** Empty: the default. */
  release: string;
}

export interface RehearsalFinding {
  id: string;
  /** Empty: the cluster. */
  host: string;
  observed: string;
  required: string;
  fix: string;
}

export interface RehearsalResult {
  /** Name of the cluster, or of the profile. */
  subject?: string;
  /** The result in a few words. */
  verdict: string;
  good: boolean;
  findings: RehearsalFinding[];
}

export interface RehearsalProfile {
  name: string;
  purpose: string;
  control_plane: number;
  arbiters: number;
  workers: number;
}

export interface RehearsalFault {
  name: string;
  when: string;
  effect: string;
}

export interface RehearsalOptions {
  profiles: RehearsalProfile[];
  faults: RehearsalFault[];
}
