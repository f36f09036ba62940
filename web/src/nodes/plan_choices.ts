// Choices of a replacement, and the request of its plan.

import type { ReplacementPlanParams } from "./records";

export interface PlanChoices {
  hasNewPlace: boolean;
  name: string;
  address: string;
  isUnwanted: boolean;
  /** Names of other nodes. */
  alsoLost: string[];
}

export const NO_CHOICES: PlanChoices = { hasNewPlace: false, name: "", address: "", isUnwanted: false, alsoLost: [] };

/** Whether nothing is missing. */
export function isComplete({ hasNewPlace, name, address }: PlanChoices): boolean {
  return !hasNewPlace || (name.trim() !== "" && address.trim() !== "");
}

export function planParams(node: string, { hasNewPlace, name, address, isUnwanted, alsoLost }: PlanChoices): ReplacementPlanParams {
  return {
    node,
    ...(hasNewPlace && { new_name: name.trim(), new_address: address.trim() }),
    ...(isUnwanted && { unwanted: true }),
    ...(alsoLost.length > 0 && { also_lost: alsoLost }),
  };
}
