// Actions on jobs that are confirmed. Jobs have no dry run.

import type { TFunction } from "react-i18next";
import type { Action } from "../components/action_dialog";
import { JOBS, type Job } from "./records";

export function cancelling(t: TFunction, { id }: Job): Action {
  return {
    title: t("Cancel the job"),
    body: t("Content that was sent stays in the registry: a later publication of the same archives sends the rest."),
    changes: [{ method: "POST", path: `${JOBS}/${id}/actions/cancel` }],
    hasNoDryRun: true,
  };
}

export function removing(t: TFunction, { id }: Job): Action {
  return {
    title: t("Remove the job"),
    body: t("Its results and files are removed, too. The registry keeps its content."),
    changes: [{ method: "DELETE", path: `${JOBS}/${id}` }],
    isDangerous: true,
    hasNoDryRun: true,
  };
}

/** The publication once more, with consent to its prunes. */
export function pruning(t: TFunction, { archives, publication }: Job): Action {
  const count = publication?.unconfirmed_prunes ?? 0;
  return {
    title: t("Publish and remove {{count}} images", { count }),
    body: t("Images that have left the image set are removed from the registry. Clusters that use them cannot pull them any more."),
    changes: [{ method: "POST", path: JOBS, body: { kind: "publish-archives", archives, prune: true } }],
    isDangerous: true,
    hasNoDryRun: true,
  };
}
