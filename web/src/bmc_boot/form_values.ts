// Values of the form that boots hosts, and changes of its rows.

import { isTyped } from "./checks";
import { type BmcBootHost, type BmcBootMedium, type BmcBootParams, type BmcTarget, MAX_BMCS } from "./records";

export interface BmcBootValues {
  medium: BmcBootMedium;
  /** Empty: the type of the infra-env. */
  imageType: string;
  ejects: boolean;
  bmcs: BmcTarget[];
}

export const NO_TARGET: BmcTarget = { name: "", address: "", username: "", password: "", disable_certificate_verification: false };
export const EMPTY: BmcBootValues = { medium: "virtual-media", imageType: "", ejects: false, bmcs: [NO_TARGET] };

/** Rows without empty ones; never none. */
export function typedRows(bmcs: BmcTarget[]): BmcTarget[] {
  const typed = bmcs.filter(isTyped);
  return typed.length === 0 ? [NO_TARGET] : typed;
}

/** Rows with others behind them. */
export function withRows(bmcs: BmcTarget[], added: BmcTarget[]): BmcTarget[] {
  return typedRows([...bmcs, ...added]).slice(0, MAX_BMCS);
}

/**
 * Failed hosts as rows, in place of rows of the same name. Their credentials are stored nowhere; certificates are not
 * verified where the rows that were `sent` said so.
 */
export function withFailed(bmcs: BmcTarget[], failed: BmcBootHost[], sent: BmcTarget[]): BmcTarget[] {
  const names = new Set(failed.map(({ name }) => name));
  const unverified = new Set(sent.filter((row) => row.disable_certificate_verification).map(({ name }) => name));
  const rows = failed.map(({ name, address }) => ({ ...NO_TARGET, name, address, disable_certificate_verification: unverified.has(name) }));
  return typedRows([...rows, ...bmcs.filter(({ name }) => !names.has(name))]).slice(0, MAX_BMCS);
}

/** Rows whose missing user names and passwords are those of one login. */
export function withLogin(bmcs: BmcTarget[], username: string, password: string): BmcTarget[] {
  return bmcs.map((row) => (isTyped(row) ? { ...row, username: row.username || username, password: row.password || password } : row));
}

export function paramsOf({ medium, imageType, ejects, bmcs }: BmcBootValues): BmcBootParams {
  return { medium, ...(imageType !== "" && { image_type: imageType }), bmcs, eject_after_install: ejects };
}
