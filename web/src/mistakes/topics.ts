// Topics of mistakes: validations of clusters and hosts, and findings of rehearsals, by the one thing that corrects them.

/** Steps of the wizard in which mistakes are corrected. */
export type WizardStep = "cluster-details" | "operators" | "host-discovery" | "storage" | "networking";

export interface Topic {
  ids: string[];
  /** Whether it is one mistake of the cluster, on however many hosts it shows. */
  isShared?: boolean;
  /** The step that sets it; none where it is set outside. */
  step?: WizardStep;
  /** Text of the link to that step. */
  title?: string;
  /** Names of topics that it follows from, which come first. */
  follows?: TopicName[];
}

export type TopicName = "connection" | "identity" | "cpu" | "memory" | "disks" | "hostname" | "baseDomain" | "pullSecret" | "platform"
  | "encryption" | "apiVip" | "ingressVip" | "machineNetwork" | "networks" | "timeSources" | "hostCount" | "manifests" | "operators" | "readiness";

/** In the order in which they are corrected: what a host lacks itself, then the settings of the cluster. */
export const TOPICS: Record<TopicName, Topic> = {
  connection: { ids: ["connected", "media-connected", "has-inventory", "inventory-not-partially-truncated", "inventory-not-fully-truncated", "compatible-agent"] },
  identity: { ids: ["host-id-unique", "serial-number-unique", "matches-expected-host"] },
  cpu: { ids: ["has-min-cpu-cores", "has-cpu-cores-for-role"], step: "host-discovery", title: "Change hosts and roles" },
  memory: { ids: ["has-min-memory", "has-memory-for-role"], step: "host-discovery", title: "Change hosts and roles" },
  disks: { ids: ["has-min-valid-disks", "sufficient-installation-disk-speed", "no-skip-installation-disk", "no-skip-missing-disk"], step: "storage", title: "Choose the disks" },
  hostname: { ids: ["hostname-unique", "hostname-valid"], step: "host-discovery", title: "Rename the hosts" },
  baseDomain: { ids: ["dns-domain-defined"], isShared: true, step: "cluster-details", title: "Set the base domain" },
  pullSecret: { ids: ["pull-secret-set"], isShared: true, step: "cluster-details", title: "Set the pull secret" },
  platform: {
    ids: ["compatible-with-cluster-platform", "valid-platform-network-settings", "vsphere-disk-uuid-enabled", "platform-requirements-satisfied"],
    step: "cluster-details", title: "Choose the platform",
  },
  encryption: { ids: ["disk-encryption-requirements-satisfied"], step: "cluster-details", title: "Set the disk encryption" },
  hostCount: { ids: ["sufficient-masters-count"], isShared: true, step: "host-discovery", title: "Add hosts or change roles" },
  apiVip: { ids: ["api-vips-defined", "api-vips-valid"], isShared: true, step: "networking", title: "Set the API address", follows: ["hostCount"] },
  ingressVip: { ids: ["ingress-vips-defined", "ingress-vips-valid"], isShared: true, step: "networking", title: "Set the ingress address", follows: ["hostCount"] },
  machineNetwork: {
    ids: ["machine-cidr-defined", "machine-cidr-equals-to-calculated-cidr"],
    isShared: true, step: "networking", title: "Set the machine networks", follows: ["apiVip", "ingressVip"],
  },
  networks: {
    ids: ["belongs-to-machine-cidr", "no-iscsi-nic-belongs-to-machine-cidr", "cluster-cidr-defined", "service-cidr-defined", "no-cidrs-overlapping",
      "networks-same-address-families", "network-prefix-valid", "network-type-valid"],
    step: "networking", title: "Set the networks", follows: ["machineNetwork"],
  },
  timeSources: {
    ids: ["time-source-missing", "ntp-server-configured", "ntp-synced", "time-synced-between-host-and-service"],
    isShared: true, step: "host-discovery", title: "Set time sources",
  },
  manifests: { ids: ["custom-manifests-requirements-satisfied"], isShared: true, step: "cluster-details", title: "Add custom manifests" },
  // Beside those whose names end as those of operators do.
  operators: { ids: [], step: "operators", title: "Choose the operators" },
  readiness: { ids: ["all-hosts-are-ready-to-install"], isShared: true },
};

const OF_OPERATORS = /-requirements-satisfied$/;
const BY_ID = new Map(Object.entries(TOPICS).flatMap(([name, { ids }]) => ids.map((id) => [id, name as TopicName])));
const ORDER = Object.keys(TOPICS);

/** The topic of a validation or finding; undefined where it is one of its own. */
export function topicOf(id: string): TopicName | undefined {
  return BY_ID.get(id) ?? (OF_OPERATORS.test(id) ? "operators" : undefined);
}

/** Place of a validation in the order of corrections. Those without a topic, of links between hosts most of them, follow the cluster's networks. */
export function placeOf(id: string): number {
  const topic = topicOf(id);
  return topic ? ORDER.indexOf(topic) : ORDER.indexOf("networks") + 0.5;
}

/** Failed validations that do not prevent the installation. Source: crates/rules, `HostBlock::Nothing`, `ClusterBlock::Nothing`. */
const WARNINGS = new Set(["inventory-not-partially-truncated", "serial-number-unique", "ntp-synced", "mtu-valid", "openshift-ai-gpu-requirements-satisfied"]);

export const isWarning = (id: string) => WARNINGS.has(id);
