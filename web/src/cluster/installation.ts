// Whether a cluster can be installed, and the mistakes that prevent it.

import { type Cluster, hostName } from "../api/records";
import type { Mistake } from "../mistakes/mistakes";
import { type FailedValidation, mistakesOfCluster } from "../mistakes/validations";

/** Statuses before an installation, in which settings can be changed. */
const BEFORE = ["ready", "insufficient", "pending-for-input"];

/** Whether the wizard can change the settings of the cluster. */
export const isEditable = ({ status }: Cluster) => BEFORE.includes(status);

export const isInstallable = ({ status }: Cluster) => status === "ready";

export function mistakesIn({ validations_info: validations, hosts = [] }: Cluster): Mistake<FailedValidation>[] {
  return mistakesOfCluster(validations, hosts.map((host) => ({ name: hostName(host), status: host.status, validations: host.validations_info })));
}
