// Refusals of the installer API that name a row of the form.

import type { ApiError } from "../api/client";
import type { BmcTarget } from "./records";
import { FIELDS, type Field } from "./checks";

export interface RowRefusal {
  /** From 0 on. */
  row: number;
  field: Field;
  /** As the service gave it. */
  reason: string;
}

/** The row that a refusal names; undefined when it names none of these. */
export function rowRefusal({ message }: ApiError, targets: BmcTarget[]): RowRefusal | undefined {
  const [, place, member, reason = ""] = /^bmcs\[(\d+)\]\.(\w+): (.+)$/is.exec(message) ?? [];
  const field = FIELDS.find((one) => one === member);
  if (field && Number(place) < targets.length) return { row: Number(place), field, reason };
  // A BMC that is under way is named by its host.
  const [, name] = /^the BMC of (\S+)(?: of another infra-env)? is under way/i.exec(message) ?? [];
  const row = targets.findIndex((target) => target.name === name);
  return row < 0 ? undefined : { row, field: "name", reason: message };
}
