// Nodes of an installed cluster, and the replacement of a control node: records of the installer API.

/** A node, or a Machine or host without one. */
export interface ClusterNode {
  node: string | null;
  is_ready: boolean;
  /** Message of a node that is not ready. */
  reason: string;
  is_cordoned: boolean;
  is_control_plane: boolean;
  address: string;
  machine: string | null;
  machine_phase: string;
  host: string | null;
  host_state: string;
  /** Null: the BMC was not asked. */
  is_powered_on: boolean | null;
  host_error: string;
}

export interface PendingCsr {
  name: string;
  signer: string;
  requestor: string;
  created_at: string;
}

export interface ClusterCertificate {
  secret: string;
  not_after: string;
  /** Negative: it has ended. */
  days_left: number;
}

export interface NodeList {
  url: string;
  version: string;
  topology: string;
  /** Message of an upgrade under way. */
  upgrade: string | null;
  nodes: ClusterNode[];
  /** The etcd operator's message about its members. */
  etcd: string | null;
  /** Operators whose static pods are not on one revision. */
  rolling_out: string[];
  pending_csrs: PendingCsr[];
  certificates: ClusterCertificate[];
}

export interface ReplacedNode {
  name: string;
  address: string;
}

export interface ReplacementStep {
  /** As `remove-member`. */
  step: string;
  title: string;
  state: "planned" | "started" | "done" | "finished";
  only_waits: boolean;
  /** Effect of an abort after it. */
  undo: "nothing" | "reversible" | "stays";
}

export interface ReplacementPlanParams {
  node: string;
  new_name?: string;
  new_address?: string;
  unwanted?: boolean;
  also_lost?: string[];
}

export type ReplacementKind = "failed" | "unwanted";

export interface ReplacementPlan {
  kind: ReplacementKind;
  old: ReplacedNode;
  new: ReplacedNode;
  machine: string | null;
  host: string | null;
  has_machine_api: boolean;
  /** Whether etcd's operator changes the membership. */
  is_operator_managed: boolean;
  voters: { voters: number; healthy: number };
  /** With two, quorum survives no failure. */
  fewest_voters: number;
  steps: ReplacementStep[];
  /** Reasons that keep the next step from its begin, each with its remedy. */
  closed: { reason: string; may_open: boolean }[];
}

/** The repair under way, by the clock of its machine. */
export interface RepairRun {
  holder: string;
  since: string;
  seen_at: string;
}

export interface ReplacementReport {
  id: string;
  updated_at: string;
  kind: ReplacementKind;
  old: ReplacedNode;
  new: ReplacedNode;
  state: "unfinished" | "aborted" | "completed";
  steps: ReplacementStep[];
  waiting: { step: string; title: string; reason: string; since: string } | null;
  /** End of the last run in a step. */
  stopped: { step: string; title: string; reason: string } | null;
  /** Period in which quorum survives no failure. */
  window: { since: string; until: string | null } | null;
}

export interface NodeReplacement {
  run: RepairRun | null;
  last: ReplacementReport | null;
}

export function nodesPath(cluster: string): string {
  return `/clusters/${encodeURIComponent(cluster)}/nodes`;
}

export function replacementPath(cluster: string): string {
  return `/clusters/${encodeURIComponent(cluster)}/node-replacement`;
}

/** The name of a row: of the node, or else of its Machine or host. */
export function rowName({ node, machine, host }: ClusterNode): string {
  return node ?? machine ?? host ?? "";
}

export function isActive({ run, last }: NodeReplacement): boolean {
  return run !== null || last?.state === "unfinished";
}
