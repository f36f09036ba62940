// Boots of hosts by their BMCs: records of the installer API.

export type BmcBootMedium = "virtual-media" | "uefi-http";
export type BmcBootState = "waiting" | "running" | "installing" | "done" | "failed";

/** BMCs of one request. */
export const MAX_BMCS = 1000;
/** Units: bytes. */
export const MAX_NAME = 253;
/** Units: bytes. */
export const MAX_ADDRESS = 1024;
/** Of a user name or a password. Units: bytes. */
export const MAX_CREDENTIAL = 4096;

/** A BMC, with its credentials. */
export interface BmcTarget {
  name: string;
  address: string;
  username: string;
  password: string;
  disable_certificate_verification: boolean;
}

export interface BmcBootParams {
  medium: BmcBootMedium;
  /** None: the type of the infra-env. */
  image_type?: string;
  bmcs: BmcTarget[];
  eject_after_install: boolean;
}

/** The last boot of one host. */
export interface BmcBootHost {
  name: string;
  address: string;
  state: BmcBootState;
  step?: string;
  error?: string;
  warning?: string;
  requested_by: string;
  requested_at: string;
  started_at: string;
  ended_at: string;
}

export interface BmcBootList {
  hosts: BmcBootHost[];
}

export function bmcBootPath(infraEnv: string): string {
  return `/infra-envs/${encodeURIComponent(infraEnv)}/bmc-boot`;
}

/** Whether the boot has not ended: its host cannot be booted again, and it can be cancelled. */
export function isUnderWay({ state }: BmcBootHost): boolean {
  return state === "waiting" || state === "running" || state === "installing";
}

/** Whether the next change follows within seconds; an installation takes an hour. */
export function isMoving({ state, step }: BmcBootHost): boolean {
  return state === "waiting" || state === "running" || (state === "installing" && !!step);
}
