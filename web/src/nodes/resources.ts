// Nodes and replacements of a cluster, read from the API of that cluster: it may be away while this site is not.

import { ApiError, CAUSES } from "../api/client";
import type { Cluster } from "../api/records";
import { type Resource, useResource } from "../api/resource";
import { type NodeList, type NodeReplacement, isActive, nodesPath, replacementPath } from "./records";

/** While a replacement is unfinished. Units: milliseconds. */
const REFRESH_ACTIVE = 2_000;
/** Replacements that begin elsewhere appear after this time. Units: milliseconds. */
const REFRESH = 20_000;

const INSTALLED = ["installed", "adding-hosts"];

/** A failure, with the remedy of one of the cluster: without a reason, it is one of this site, unless it is a timeout. */
export function clusterFailure(error: ApiError): ApiError {
  const { message, status } = error;
  if (status === 409) return new ApiError(message, "Nodes are read with the cluster's kubeconfig, which this site has once it has installed the cluster.", status);
  const isAway = status === 504 || (status === 503 && message !== CAUSES[503]?.[0]);
  return isAway ? new ApiError(message, "Check that the cluster runs, and that this site reaches its API and, for plans, port 2379 of its control nodes.", status) : error;
}

/** Whether the cluster has an API of its own by now. */
export function hasNodes({ status }: Cluster): boolean {
  return INSTALLED.includes(status);
}

function ofCluster<T>({ data, error, reload }: Resource<T>): Resource<T> {
  return { data, error: error && clusterFailure(error), reload };
}

export function useNodes(cluster: string): Resource<NodeList> {
  return ofCluster(useResource<NodeList>(nodesPath(cluster)));
}

/** The replacement of a node that is under way, or the last one. */
export function useReplacement(cluster: string): Resource<NodeReplacement> {
  return ofCluster(useResource<NodeReplacement>(replacementPath(cluster), (latest) => (isActive(latest) ? REFRESH_ACTIVE : REFRESH)));
}
