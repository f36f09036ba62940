// States of steps in words.

import type { ReplacementKind, ReplacementReport, ReplacementStep } from "./records";

export interface StepMark {
  title: string;
  status?: "success" | "info" | "warning";
}

const MARKS = {
  finished: { title: "Finished", status: "success" },
  done: { title: "Done already", status: "success" },
  started: { title: "In progress", status: "info" },
  waiting: { title: "Waiting", status: "info" },
  stopped: { title: "Stopped", status: "warning" },
  planned: { title: "Planned" },
  waits: { title: "Waits for others" },
} as const satisfies Record<string, StepMark>;

/** The mark of a step in a plan, or in the progress of a replacement. */
export function markOf({ step, state, only_waits: onlyWaits }: ReplacementStep, report?: ReplacementReport): StepMark {
  if (state === "finished" || state === "done") return MARKS[state];
  if (report?.state === "unfinished") {
    if (report.stopped?.step === step) return MARKS.stopped;
    if (report.waiting?.step === step) return MARKS.waiting;
  }
  if (state === "started") return report && report.state !== "unfinished" ? MARKS.stopped : MARKS.started;
  return onlyWaits ? MARKS.waits : MARKS.planned;
}

/** Effects of an abort after a step. */
export const UNDO: Record<ReplacementStep["undo"], { title: string }> = {
  nothing: { title: "Nothing to undo" },
  reversible: { title: "An abort undoes it" },
  stays: { title: "It stays: the replacement is completed later" },
};

/** Orders of the changes. */
export const KINDS: Record<ReplacementKind, { title: string }> = {
  failed: { title: "Failed: its member leaves etcd, then the new one joins" },
  unwanted: { title: "Healthy and unwanted: the new member joins etcd, then this one leaves" },
};

/** Whether quorum survives no failure. */
export function isCritical(voters: number): boolean {
  return voters < 3;
}
