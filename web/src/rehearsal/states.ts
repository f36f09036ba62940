// States of simulated hosts and clusters: a status, and the stage of the installation.

import type { TFunction } from "react-i18next";
import { words } from "../components/format";

/** Statuses in the order of an installation; others are after them. */
const STATUSES = ["discovering", "insufficient", "pending-for-input", "known", "preparing-for-installation", "preparing-successful",
  "installing", "installing-in-progress", "installed", "added-to-existing-cluster"];
const STAGES = ["", "Starting installation", "Installing", "Writing image to disk", "Waiting for control plane", "Waiting for bootkube",
  "Waiting for controller", "Rebooting", "Waiting for ignition", "Configuring", "Joined", "Done"];

export interface HostState {
  status: string;
  stage: string;
  count: number;
}

/** A state of the server as `[status, stage]`. */
export function parts(state: string): [status: string, stage: string] {
  const [status = "", ...stage] = state.split(", ");
  return [status, stage.join(", ")];
}

const place = (list: string[], item: string) => (list.includes(item) ? list.indexOf(item) : list.length);

/** Counted states in the order of an installation. */
export function hostStates(hosts: Record<string, number> = {}): HostState[] {
  const states = Object.entries(hosts).map(([state, count]) => {
    const [status, stage] = parts(state);
    return { status, stage, count };
  });
  return states.sort((one, other) => place(STATUSES, one.status) - place(STATUSES, other.status) || place(STAGES, one.stage) - place(STAGES, other.stage));
}

export function stateText(t: TFunction, state: string): string {
  const [status, stage] = parts(state);
  const texts = [status, stage].filter((text) => text !== "").map((text) => t(words(text)));
  return [...new Set(texts)].join(": ");
}
