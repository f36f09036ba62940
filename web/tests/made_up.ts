// Made-up responses of the installer API, for states that a new site does not have.

import type { Page } from "playwright-core";
import type { ArchiveList, ArchiveSet, Job } from "../src/archives/records";
import type { BmcBootHost } from "../src/bmc_boot/records";
import type { ClusterNode, NodeList, NodeReplacement, ReplacementStep } from "../src/nodes/records";
import type { RehearsalOptions } from "../src/rehearsal/records";
import type { OperatorCatalog } from "../src/operator_catalogs/records";
import type { OsImage } from "../src/os_images/records";
import type { ReleaseImage } from "../src/releases/records";
import type { Cluster, Explanation, Host, InfraEnv, SiteCheck, SiteEvent, Versions } from "../src/api/records";

/** Bodies of responses by path below the API's base. */
export type Responses = Record<string, string>;

export const CLUSTER_ID = uuid(1, 1);
/** A cluster with nodes, one of which is replaced. */
export const INSTALLED_ID = uuid(1, 3);
/** An infra-env whose hosts boot by their BMCs. */
export const INFRA_ENV_ID = uuid(3, 1);
/** A rehearsal with its result. */
export const REHEARSAL_ID = uuid(7, 3);
const STATUSES = ["ready", "insufficient", "installing", "installed", "error", "pending-for-input"];
const SINCE = "2026-01-02T03:04:05.678Z";
const NO_TIME = "0001-01-01T00:00:00.000Z";
const NO_UUID = "00000000-0000-0000-0000-000000000000";
const GIB = 1024 ** 3;

function uuid(kind: number, number: number): string {
  return `${String(kind).padStart(8, "0")}-0000-4000-8000-${String(number).padStart(12, "0")}`;
}

function list<T>(count: number, make: (number: number) => T): T[] {
  return Array.from({ length: count }, (_, index) => make(index + 1));
}

function inventory(number: number): string {
  return JSON.stringify({
    hostname: `host-${number}`,
    cpu: { count: 8 + (number % 4) * 8, architecture: "x86_64", model_name: "Processor", flags: Array.from({ length: 80 }, (_, flag) => `flag${flag}`) },
    memory: { physical_bytes: (32 + (number % 8) * 16) * GIB, usable_bytes: 31 * GIB },
    disks: Array.from({ length: 4 }, (_, disk) => ({
      id: `/dev/disk/by-id/wwn-0x${number}${disk}`, name: `sd${"abcd"[disk]}`, path: `/dev/sd${"abcd"[disk]}`, drive_type: disk === 0 ? "SSD" : "HDD",
      size_bytes: 480e9, vendor: "Vendor", model: "Model", serial: `S${number}-${disk}`,
      installation_eligibility: { eligible: disk < 3, not_eligible_reasons: disk < 3 ? [] : ["Disk is removable"] },
    })),
    interfaces: Array.from({ length: 2 }, (_, nic) => ({
      name: `eno${nic + 1}`, mac_address: `52:54:00:${[number >> 8, number & 255, nic].map((byte) => byte.toString(16).padStart(2, "0")).join(":")}`,
      speed_mbps: 25_000, has_carrier: nic === 0, ipv4_addresses: nic === 0 ? [`10.${number >> 8}.${number & 255}.2/16`] : [], ipv6_addresses: [],
    })),
    system_vendor: { manufacturer: "Vendor", product_name: "Server 2U", serial_number: `SN${number}` },
  });
}

function host(number: number): Host {
  const isFailing = number % 5 === 0;
  return {
    id: uuid(2, number), infra_env_id: INFRA_ENV_ID, cluster_id: CLUSTER_ID, requested_hostname: `host-${number}`, status: isFailing ? "insufficient" : "known",
    status_info: isFailing ? "Host cannot be installed due to following failing validation(s): Require at least 32.00 GiB RAM for role master, found only 16.00 GiB" : "Host is ready to be installed",
    role: number <= 3 ? "master" : "worker", inventory: inventory(number), checked_in_at: SINCE,
    validations_info: JSON.stringify({ hardware: [{ id: "has-memory-for-role", status: isFailing ? "failure" : "success", message: "Require at least 32.00 GiB RAM" }] }),
    connectivity: JSON.stringify({
      remote_hosts: number > 40 ? [] : Array.from({ length: 40 }, (_, other) => ({
        host_id: uuid(2, other + 1), l3_connectivity: [{ successful: other !== 7, average_rtt_ms: 0.4, packet_loss_percentage: other === 7 ? 100 : 0 }],
      })),
    }),
  };
}

/** As large as that of the service: 8 kB of each cluster of a list are its validations. */
const VALIDATIONS = JSON.stringify({
  "operators": list(60, (id) => ({ id: `operator-${id}-requirements-satisfied`, status: "success", message: "The operator is not enabled; its requirements are not checked for this cluster" })),
});

function cluster(number: number): Cluster {
  const status = STATUSES[number % STATUSES.length] ?? "ready";
  return {
    id: uuid(1, number), name: `cluster-${number}`, kind: "Cluster", status, status_info: `The cluster is ${status}`, openshift_version: "4.18.30", cpu_architecture: "x86_64",
    base_dns_domain: "example.org", created_at: SINCE, total_host_count: 4, progress: { total_percentage: number % 100 }, hosts: [],
    validations_info: VALIDATIONS,
  };
}

function explanation(number: number): Explanation {
  return {
    subject: { kind: "cluster", id: uuid(1, number), name: `cluster-${number}` }, status: "insufficient", outcome: "not-ready",
    causes: Array.from({ length: 4 }, (_, cause) => ({
      kind: "validation" as const, id: `has-memory-for-role-${cause}`, status: "failure" as const, subject: { kind: "host" as const, id: uuid(2, cause), name: `host-${cause}` }, since: SINCE,
      observed: "16.00 GiB RAM", required: "at least 32.00 GiB RAM for role master", fix: "Add memory, or choose another role for the host.", allowed_seconds: 3600,
    })),
  };
}

function event(number: number): SiteEvent {
  const severity = (["info", "warning", "error", "critical"] as const)[number % 4] ?? "info";
  return { id: uuid(4, number), name: "host_status_updated", cluster_id: CLUSTER_ID, severity, event_time: SINCE, message: `Host host-${number}: updated status from discovering to known (Host is ready to be installed)` };
}

function check(number: number): SiteCheck {
  const status = (["passed", "warning", "failed"] as const)[number % 3] ?? "passed";
  return { id: `registry-${number}`, group: "content", status, finding: `registry-${number}.example.org:5000 responds within 12 ms`, ...(status !== "passed" && { remedy: "Check its certificate: openssl s_client -connect registry.example.org:5000" }) };
}

function infraEnv(number: number): InfraEnv {
  return { id: uuid(3, number), name: `cluster-${number}_infra-env`, cluster_id: uuid(1, number), type: "full-iso", cpu_architecture: "x86_64", openshift_version: "4.18.30", updated_at: SINCE };
}

function bmcBoot(number: number): BmcBootHost {
  const state = (["waiting", "running", "installing", "done", "failed"] as const)[number % 5] ?? "done";
  const isEnded = state === "done" || state === "failed";
  return {
    name: `host-${number}.rack-12.example.org`, address: `redfish-virtualmedia://192.0.2.${number % 255}/redfish/v1/Systems/System.Embedded.1`, state, requested_by: "admin", requested_at: SINCE,
    started_at: state === "waiting" ? NO_TIME : SINCE, ended_at: isEnded ? "2026-01-02T04:04:05.678Z" : NO_TIME,
    ...(state === "running" && { step: "check medium and boot source" }),
    ...(state === "failed" && { error: "https://192.0.2.1/redfish/v1/Managers/1/VirtualMedia/1: the user name or the password is wrong: correct it, and send the request again" }),
    ...(state === "done" && number % 2 === 0 && { warning: "the boot order starts with PXE: set the disk first" }),
  };
}

/** Three of the control plane, one of which is lost; the last one is a Machine without a node. */
function node(number: number, count: number): ClusterNode {
  const [isLost, isSpare] = [number === 2, number > 3 && number === count];
  return {
    node: isSpare ? null : `host-${number}.example.org`, is_ready: !isLost && !isSpare, reason: isLost ? "Kubelet stopped posting node status." : "", is_cordoned: number % 7 === 0, is_control_plane: number <= 3,
    address: `2001:db8:0:1::${number.toString(16)}`, machine: `cluster-3-x7f2k-${number <= 3 ? "master" : "worker"}-${number}`, machine_phase: isSpare ? "Provisioning" : "Running",
    host: `host-${number}`, host_state: isSpare ? "provisioning" : "provisioned", is_powered_on: number % 3 === 0 ? null : !isLost, host_error: isLost ? "power management error: the BMC does not answer" : "",
  };
}

function nodeList(count: number): NodeList {
  const isEmpty = count === 0;
  return {
    url: "https://api.cluster-3.example.org:6443", version: "4.18.30", topology: "HighlyAvailable", upgrade: isEmpty ? null : "Working towards 4.18.31: 120 of 900 done", nodes: list(count, (number) => node(number, count)),
    etcd: isEmpty ? null : "2 of 3 members are available, host-2.example.org is unhealthy", rolling_out: isEmpty ? [] : ["Etcd", "KubeAPIServer"],
    pending_csrs: list(Math.min(count, 120), (number) => ({ name: `csr-${number}x7f2k`, signer: "kubernetes.io/kube-apiserver-client-kubelet", requestor: "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper", created_at: SINCE })),
    certificates: list(Math.min(count, 9), (number) => ({ secret: `etcd-serving-metrics-host-${number}.example.org`, not_after: SINCE, days_left: number * 30 - 40 })),
  };
}

/** One under way; without nodes, there was none. */
function nodeReplacement(count: number): NodeReplacement {
  if (count === 0) return { run: null, last: null };
  const steps = ["Take and check a snapshot of etcd", "Make sure that the old node is off", "Remove the old member from etcd", "Approve the certificates of the new node until it is ready", "Make the new member a voter when it is in sync"];
  const of = (title: string, index: number): ReplacementStep => ({
    step: `step-${index}`, title, only_waits: index === 3, state: index < 2 ? "finished" : index === 2 ? "done" : index === 3 ? "started" : "planned", undo: index < 2 ? "nothing" : "stays",
  });
  const place = { name: "host-2.example.org", address: "2001:db8:0:1::2" };
  return {
    run: { holder: "alice@bastion.example.org, process 4711", since: SINCE, seen_at: SINCE },
    last: {
      id: "2026-01-02-host-2", updated_at: SINCE, kind: "failed", old: place, new: place, state: "unfinished", steps: steps.map(of), stopped: null, window: { since: SINCE, until: null },
      waiting: { step: "step-3", title: steps[3] ?? "", reason: "host-2.example.org has not asked for its certificates", since: SINCE },
    },
  };
}

/** Three image sets, each with a gap and a damaged archive. */
function archiveSet(number: number): ArchiveSet {
  const [set, sequence] = [number % 3, Math.ceil(number / 3) + (number > 6 ? 2 : 0)];
  const name = `stick-${set}/mirror_seq${sequence}_000000.tar`;
  const isDamaged = number % 8 === 0;
  const step = isDamaged ? "damaged" : sequence === 1 ? "published" : sequence === 2 ? "next" : "out-of-order";
  return {
    name, uid: isDamaged ? NO_UUID : uuid(5, set), sequence, single_use: false, created_at: SINCE, bytes: 80 * GIB,
    files: Array.from({ length: 20 }, (_, file) => ({ name: `mirror_seq${sequence}_${String(file).padStart(6, "0")}.tar`, size: 4 * GIB })),
    releases: ["stable-4.18 4.18.1", "stable-4.19 4.19.2"], catalogs: ["registry.example.org/redhat/redhat-operator-index:v4.18"], release_images: [`4.18.${number}-x86_64`], images: 1234, step, published_sequence: isDamaged ? 0 : 1,
    ...(step === "out-of-order" && { reason: "expecting imageset with prefix mirror_seq2: invalid mirror sequence order: publish the archive of sequence 2 first" }),
    ...(isDamaged && { reason: "the archive ends within a member: copy it again" }),
  };
}

function job(number: number): Job {
  const state = (["running", "queued", "failed", "succeeded", "cancelled"] as const)[(number - 1) % 5] ?? "failed";
  const isActive = number <= 2;
  const isVerification = number % 2 === 1;
  return {
    id: uuid(6, number), kind: isVerification ? "verify-archives" : "publish-archives", state: isActive || state === "cancelled" ? state : "failed", archives: `stick-${number % 3}/mirror_seq${Math.ceil(number / 3)}_000000.tar`,
    created_by: "admin", created_at: SINCE, started_at: SINCE, ended_at: isActive ? "0001-01-01T00:00:00.000Z" : "2026-01-02T04:04:05.678Z",
    ...(number === 1 && { progress: { phase: "verifying", items: 1, items_total: 20, bytes: 3 * GIB, bytes_total: 80 * GIB } }),
    ...(!isActive && isVerification && { verification: { files: 20, members: 4000, hashed_bytes: 80 * GIB, is_signed: true, fault_count: 312, faults: list(100, (fault) => `mirror_seq1_000000.tar: blob ${fault} has another digest than its name`) } }),
    ...(!isActive && !isVerification && {
      publication: {
        is_unchanged: false, images: 1234, catalogs: 1, sent_blobs: 4000, sent_bytes: 70 * GIB, pruned: 2, unconfirmed_prunes: number % 4 === 0 ? 40 : 0,
        files: ["catalogSource-cs-redhat-operator-index.yaml", "imageContentSourcePolicy.yaml", "idms-oc-mirror.yaml", "install-config/imageContentSources.yaml", "mapping.txt", ...list(40, (file) => `release-signatures/signature-sha256-${file}.json`)].map((name) => ({ name, size: 5000 })),
      },
    }),
  };
}

/** The first one runs, the second one waits, the third one has a mistake of each host. */
function rehearsal(number: number, hosts: number): Job {
  const state = (["running", "queued", "succeeded", "failed", "cancelled"] as const)[(number - 1) % 5] ?? "failed";
  const isEnded = state !== "running" && state !== "queued";
  const isGood = hosts === 0 || number % 2 === 0;
  return {
    id: uuid(7, number), kind: "rehearsal", state, created_by: "admin", created_at: SINCE, started_at: SINCE, ended_at: isEnded ? "2026-01-02T03:04:45.678Z" : "0001-01-01T00:00:00.000Z",
    ...(state === "failed" && { reason: "its server ended 5 times while the job was running: its log has the reason" }),
    ...(state === "running" && {
      progress: {
        phase: "finalizing, Waiting for cluster operators", items: 400, items_total: 500, bytes: 0, bytes_total: 0,
        hosts: { discovering: 100, "installing-in-progress, Writing image to disk": 100, "installing-pending-user-action, Rebooting": 50, "installed, Done": 120, error: 30 },
      },
    }),
    ...(state === "succeeded" && {
      rehearsal: {
        verdict: isGood ? "installed, no mistakes" : `not installed (insufficient), ${hosts} mistakes`, good: isGood,
        findings: isGood ? [] : list(hosts, (host) => ({ id: "has-memory-for-role", host: `host-${host}.rack-12.example.org`, observed: "Require at least 16.00 GiB RAM for role master, found only 4.00 GiB", required: "at least 16.00 GiB RAM for role master", fix: "Add memory, or choose another role for the host." })),
      },
    }),
  };
}

const REHEARSAL_OPTIONS: RehearsalOptions = {
  profiles: ["3+0", "3+2", "sno", "tna", "duplicate-identity"].map((name, index) => ({ name, purpose: "two machines with one serial number", control_plane: 3, arbiters: index % 2, workers: index })),
  faults: ["ram", "speed", "boot-order", "medium", "clock"].map((name) => ({ name, when: "after the installation", effect: "steps fail: the medium of the discovery image is unplugged" })),
};

function archiveList(sets: number): ArchiveList {
  return { folder: "/archives", registry: "registry.example.org:5000/mirror", sets: list(sets, archiveSet) };
}

function releaseImage(number: number): ReleaseImage {
  return {
    openshift_version: "4.18", version: `4.18.${number}`, cpu_architecture: "x86_64", default: number === 2, is_found: true,
    url: `registry.example.org:5000/mirror/openshift/release-images:4.18.${number}-x86_64`,
    missing: number % 3 === 0 ? ["cli", "console", "etcd", "installer"] : [],
  };
}

function osImage(number: number): OsImage {
  return {
    openshift_version: `4.${number}`, cpu_architecture: "x86_64", version: `4${number}.94.202511191518-0`, is_found: true,
    url: `oci://registry.example.org:5000/mirror/openshift/boot-images:4${number}.94.202511191518-0-x86_64`,
  };
}

function operatorCatalog(number: number): OperatorCatalog {
  return {
    openshift_version: `4.${number}`, image: `registry.example.org:5000/mirror/redhat/redhat-operator-index:v4.${number}`,
    missing_repositories: number % 3 === 0 ? 1200 : 0, missing: number % 3 === 0 ? ["registry.example.com/acme/tool@sha256:0123456789abcdef"] : [],
  };
}

function responses(clusters: number, hosts: number): Responses {
  const isEmpty = clusters === 0;
  const versions: Versions = Object.fromEntries(list(isEmpty ? 0 : 40, (patch) => [`4.18.${patch}`, { display_name: `4.18.${patch}`, support_level: "production", cpu_architectures: ["x86_64", "arm64"], default: patch === 40 }]));
  const one = explanation(1);
  const bodies = {
    "/clusters/": list(clusters, cluster),
    [`/clusters/${CLUSTER_ID}`]: { ...cluster(1), hosts: list(hosts, host) },
    [`/clusters/${CLUSTER_ID}/explain`]: isEmpty ? { ...one, outcome: "settled", causes: [] } : { ...one, omitted_causes: 12 },
    [`/clusters/${INSTALLED_ID}`]: { ...cluster(3), hosts: [] },
    [`/clusters/${INSTALLED_ID}/explain`]: { ...one, outcome: "settled", causes: [] },
    [`/clusters/${INSTALLED_ID}/nodes`]: nodeList(hosts),
    [`/clusters/${INSTALLED_ID}/node-replacement`]: nodeReplacement(hosts),
    [`/infra-envs/?cluster_id=${INSTALLED_ID}`]: [],
    "/infra-envs/": list(clusters, infraEnv),
    [`/infra-envs/${INFRA_ENV_ID}`]: infraEnv(1),
    [`/infra-envs/${INFRA_ENV_ID}/bmc-boot`]: { hosts: list(Math.min(hosts, 1000), bmcBoot) },
    [`/infra-envs/?cluster_id=${CLUSTER_ID}`]: list(Math.min(clusters, 1), infraEnv),
    "/explain": { items: list(Math.min(clusters, 10), explanation), ...(!isEmpty && { next: "10" }) },
    "/events": list(isEmpty ? 0 : 50, event),
    "/doctor": { checks: list(isEmpty ? 0 : 60, check) },
    "/openshift-versions": versions,
    "/release-images": list(Math.min(clusters, 240), releaseImage),
    "/os-images": list(Math.min(clusters, 50), osImage),
    "/operator-catalogs": list(Math.min(clusters, 50), operatorCatalog),
    "/archives": archiveList(clusters),
    "/jobs": [...list(Math.min(clusters, 40), job), ...list(Math.min(clusters, 10), (number) => rehearsal(number, hosts))],
    [`/jobs/${uuid(7, 1)}`]: rehearsal(1, hosts),
    [`/jobs/${REHEARSAL_ID}`]: rehearsal(3, hosts),
    "/jobs?kinds=verify-archives,publish-archives&limit=50": list(Math.min(clusters, 40), job),
    "/jobs?kinds=rehearsal&limit=50": list(Math.min(clusters, 10), (number) => rehearsal(number, hosts)),
    "/rehearsal-options": REHEARSAL_OPTIONS,
    "/component-versions": { release_tag: "latest", versions: isEmpty ? {} : { "assisted-installer-service": "registry.example.org:5000/atoll/api-server:latest" } },
    [`/infra-envs/${INFRA_ENV_ID}/downloads/image-url`]: { url: `https://images.example.org/byid/${INFRA_ENV_ID}/4.18/x86_64/full.iso` },
  };
  return Object.fromEntries(Object.entries(bodies).map(([path, body]) => [path, JSON.stringify(body)]));
}

export const EMPTY = responses(0, 0);
export const SOME = responses(12, 35);
/** 500 clusters, one of them with 2000 hosts. */
export const LARGE = responses(500, 2000);

const BASE = "/api/assisted-install/v2";

/** Responds to the page's requests with made-up data; the stream of events stays that of the site. */
export async function respondWith(page: Page, table: Responses): Promise<void> {
  await page.route(`**${BASE}/**`, (route) => {
    const { pathname, search } = new URL(route.request().url());
    const path = pathname.slice(BASE.length);
    if (path === "/events/stream") return route.continue();
    const body = table[path + search] ?? table[path];
    return body === undefined
      ? route.fulfill({ status: 404, json: { code: "404", kind: "Error", id: 404, href: "", reason: `${path} was not made up` } })
      : route.fulfill({ body, contentType: "application/json", headers: path === "/events" ? { "event-count": "120" } : {} });
  });
}

/** Refuses the page's requests as the service does it. */
export async function refuseWith(page: Page, status: number, reason: string): Promise<void> {
  await page.route(`**${BASE}/**`, (route) => route.fulfill({ status, json: { code: String(status), kind: "Error", id: status, href: "", reason } }));
}

/** Lets requests through again. */
export async function respondAgain(page: Page): Promise<void> {
  await page.unroute(`**${BASE}/**`);
}
