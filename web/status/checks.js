// What holds a cluster or a host up, out of its validations and states.

import { inner } from "./api.js";

// The check that only repeats what the checks of the hosts say.
const ABOUT_HOSTS = "all-hosts-are-ready-to-install";
const STUCK = ["error", "disconnected", "preparing-failed", "installing-pending-user-action",
  "resetting-pending-user-action"];
const MOVING = ["preparing-for-installation", "installing", "finalizing", "installing-pending-user-action"];
const UNDECIDED = ["pending-for-input", "insufficient"];

function withStatus(record, statuses) {
  return Object.values(inner(record.validations_info, {}))
    .flatMap((list) => (Array.isArray(list) ? list : []))
    .filter(({ status }) => statuses.includes(status));
}

/** The validations that do not hold. */
export function failing(record) {
  return withStatus(record, ["failure", "error"]);
}

/** The validations that cannot be decided yet. */
export function waiting(record) {
  return withStatus(record, ["pending"]);
}

/** Whether its checks still decide if it may be installed. */
export function isUndecided({ status }) {
  return UNDECIDED.includes(status);
}

/** Whether an installation is on its way. */
export function isMoving({ status }) {
  return MOVING.includes(status);
}

/** Why the last attempt did not get as far as installing, while there is no new one. */
export function refusal(cluster) {
  const { status, reason } = cluster["last-installation-preparation"] ?? {};
  const isWaiting = cluster.status === "ready" || isUndecided(cluster);
  return isWaiting && status === "failed" && reason ? `The last preparation failed: ${reason}` : undefined;
}

/** The sentences that say what holds a cluster up, most important first. */
export function reasons(cluster) {
  const checks = isUndecided(cluster) ? failing(cluster).map(({ message }) => message) : [];
  const said = [refusal(cluster), ...checks].filter(Boolean);
  return said.length > 0 ? said : [cluster.status_info].filter(Boolean);
}

/** Hosts that need somebody, each with the sentences that say why. */
export function stuck(cluster) {
  return (cluster.hosts ?? []).map((host) => ({ host, sentences: sentences(host) }))
    .filter(({ sentences: list }) => list.length > 0);
}

function sentences(host) {
  if (STUCK.includes(host.status)) return [host.status_info || host.status];
  if (!isUndecided(host) && host.status !== "discovering") return [];
  const failed = failing(host).map(({ message }) => message);
  return failed.length > 0 ? failed : [host.status_info || host.status];
}

/** The checks of a cluster that fail, without the one that `stuck` tells better. */
export function ofCluster(cluster, stuckHosts) {
  return failing(cluster).filter(({ id }) => id !== ABOUT_HOSTS || stuckHosts.length === 0);
}
