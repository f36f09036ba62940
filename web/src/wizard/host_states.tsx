// States of hosts in the library's tables: their names and first mistakes are those of the page of the cluster.

import i18n from "i18next";
import { HostCause } from "../mistakes/host_cause";
import { hostState } from "../components/status";

/** The library's table of states with our names. */
export function withHostStates<State extends { title: string }, Table extends Record<string, State>>(states: Table): Table {
  return Object.fromEntries(Object.entries(states).map(([status, state]) => [status, { ...state, title: i18n.t(hostState(status)) }])) as Table;
}

interface WizardHost {
  status: string;
  validationsInfo?: string;
  clusterId?: string;
  kind?: string;
}

/** Kind of hosts that are added to an installed cluster, which has no wizard. */
const ADDED = "AddToExistingClusterHost";

export function WizardHostCause({ host: { status, validationsInfo, clusterId, kind } }: { host: WizardHost }) {
  return <div className="atoll-host-cause"><HostCause host={{ name: "", status, validations: validationsInfo }} cluster={kind === ADDED ? undefined : clusterId} /></div>;
}
