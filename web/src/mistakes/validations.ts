// Failed validations of clusters and hosts, from the texts inside their records.

import { inner } from "../api/records";
import { type Failed, type Mistake, mistakesOf } from "./mistakes";
import { isWarning, placeOf } from "./topics";

interface Validation {
  id: string;
  status: string;
  message: string;
}

/** Validations by their group: as text of a record, or parsed. */
export type Validations = string | Partial<Record<string, Validation[] | null>> | undefined;

/** A host of the API, as the page and as the library read it. */
export interface JudgedHost {
  name: string;
  status: string;
  validations: Validations;
}

export interface FailedValidation extends Failed {
  group: string;
  isWarning: boolean;
}

/** The failed validations of one record, those first that are corrected first. */
export function failedValidations(validations: Validations, host: string): FailedValidation[] {
  const groups = typeof validations === "string" ? inner<Exclude<Validations, string>>(validations, {}) : validations;
  const all = Object.entries(groups ?? {}).flatMap(([group, list]) => (list ?? []).map((validation) => ({ ...validation, group })));
  return all
    .filter(({ status }) => status === "failure" || status === "error")
    .map(({ id, group, message }) => ({ id, group, host, observed: message, isWarning: isWarning(id) }))
    .sort((one, other) => placeOf(one.id) - placeOf(other.id));
}

/** Statuses of hosts whose validations say why. Others act, were switched off, or are of an installed cluster. */
const JUDGED = ["discovering", "insufficient", "pending-for-input", "disconnected", "known", "discovering-unbound", "insufficient-unbound", "disconnected-unbound", "known-unbound"];

/** The mistake of a host that is corrected first. */
export function firstMistakeOfHost({ status, validations }: JudgedHost): Mistake<FailedValidation> | undefined {
  return JUDGED.includes(status) ? mistakesOf(failedValidations(validations, "")).at(0) : undefined;
}

/** The mistakes of a cluster and its hosts, those first that prevent the installation. */
export function mistakesOfCluster(validations: Validations, hosts: JudgedHost[]): Mistake<FailedValidation>[] {
  const judged = hosts.filter(({ status }) => JUDGED.includes(status));
  const failed = [failedValidations(validations, ""), ...judged.map((host) => failedValidations(host.validations, host.name))].flat();
  const mistakes = mistakesOf(failed.sort((one, other) => placeOf(one.id) - placeOf(other.id)));
  return [...mistakes.filter(({ first }) => !first.isWarning), ...mistakes.filter(({ first }) => first.isWarning)];
}
