// Records of the installer API: the members that pages of ours read. Source: /api/assisted-install/v2/openapi.

export interface Progress {
  total_percentage?: number;
  preparing_for_installation_stage_percentage?: number;
  installing_stage_percentage?: number;
  finalizing_stage_percentage?: number;
  finalizing_stage?: string;
}

export interface Cluster {
  id: string;
  name?: string;
  kind?: string;
  status: string;
  status_info?: string;
  status_updated_at?: string;
  openshift_version?: string;
  cpu_architecture?: string;
  base_dns_domain?: string;
  control_plane_count?: number;
  created_at?: string;
  install_started_at?: string;
  install_completed_at?: string;
  total_host_count?: number;
  ready_host_count?: number;
  enabled_host_count?: number;
  api_vips?: { ip: string }[];
  ingress_vips?: { ip: string }[];
  machine_networks?: { cidr: string }[];
  progress?: Progress;
  hosts?: Host[];
  monitored_operators?: { name: string; status?: string; status_info?: string }[];
  validations_info?: string;
}

export interface HostProgress {
  current_stage?: string;
  installation_percentage?: number;
  progress_info?: string;
  stage_started_at?: string;
  stage_timed_out?: boolean;
}

export interface Host {
  id: string;
  infra_env_id?: string;
  cluster_id?: string;
  requested_hostname?: string;
  status: string;
  status_info?: string;
  role?: string;
  suggested_role?: string;
  bootstrap?: boolean;
  /** The host failed, and a reset retries it while its cluster is installed. */
  can_retry?: boolean;
  inventory?: string;
  validations_info?: string;
  connectivity?: string;
  progress?: HostProgress;
  progress_stages?: string[];
  installation_disk_id?: string;
  checked_in_at?: string;
  logs_collected_at?: string;
}

export interface Disk {
  id?: string;
  name?: string;
  path?: string;
  by_path?: string;
  model?: string;
  vendor?: string;
  serial?: string;
  drive_type?: string;
  size_bytes?: number;
  is_installation_media?: boolean;
  installation_eligibility?: { eligible?: boolean; not_eligible_reasons?: string[] };
}

export interface NetworkInterface {
  name?: string;
  mac_address?: string;
  speed_mbps?: number;
  has_carrier?: boolean;
  product?: string;
  ipv4_addresses?: string[];
  ipv6_addresses?: string[];
}

export interface Inventory {
  hostname?: string;
  cpu?: { count?: number; architecture?: string; model_name?: string };
  memory?: { physical_bytes?: number; usable_bytes?: number };
  disks?: Disk[];
  interfaces?: NetworkInterface[];
  system_vendor?: { manufacturer?: string; product_name?: string; serial_number?: string; virtual?: boolean };
  boot?: { current_boot_mode?: string; secure_boot_state?: string };
  bmc_address?: string;
}

export interface Connectivity {
  remote_hosts?: {
    host_id?: string;
    l2_connectivity?: { successful?: boolean; outgoing_nic?: string; remote_ip_address?: string }[];
    l3_connectivity?: { successful?: boolean; average_rtt_ms?: number; packet_loss_percentage?: number; remote_ip_address?: string }[];
  }[];
}

export interface InfraEnv {
  id: string;
  name?: string;
  cluster_id?: string;
  type?: string;
  cpu_architecture?: string;
  openshift_version?: string;
  download_url?: string;
  expires_at?: string;
  embedded_agent?: boolean;
  /** Another stream of the operating system than the default one. */
  os_stream?: string;
  size_bytes?: number;
  updated_at?: string;
}

export interface SiteEvent {
  id?: string;
  name?: string;
  cluster_id?: string;
  host_id?: string;
  infra_env_id?: string;
  severity: "info" | "warning" | "error" | "critical";
  message: string;
  event_time: string;
}

export interface Cause {
  kind: "validation" | "stage" | "state";
  id: string;
  status: "failure" | "error" | "pending" | "waiting" | "overdue";
  subject: Subject;
  since?: string;
  allowed_seconds?: number;
  observed?: string;
  required?: string;
  fix?: string;
}

export interface Subject {
  kind: "cluster" | "infra-env" | "host";
  id: string;
  name?: string;
  infra_env_id?: string;
}

export interface Explanation {
  subject: Subject;
  status: string;
  outcome: "settled" | "in-progress" | "not-ready" | "stuck";
  causes: Cause[];
  omitted_causes?: number;
}

export interface ExplanationList {
  items: Explanation[];
  next?: string;
}

export interface SiteCheck {
  id: string;
  group: string;
  status: "passed" | "warning" | "failed";
  finding: string;
  remedy?: string;
}

/** A stream of the operating system of a release. */
export interface OsStream {
  /** Empty for a default one without a name. */
  name: string;
  default?: boolean;
}

export type Versions = Record<
  string,
  { display_name?: string; support_level?: string; cpu_architectures?: string[]; default?: boolean; os_streams?: OsStream[] }
>;

/** JSON that travels as text inside a record; `fallback` when it is empty or malformed. */
export function inner<T>(text: string | undefined, fallback: T): T {
  if (!text) return fallback;
  try {
    return (JSON.parse(text) as T | null) ?? fallback;
  } catch {
    return fallback;
  }
}

/** The name that people know a host by. */
export function hostName(host: Host): string {
  return host.requested_hostname || inner<Inventory>(host.inventory, {}).hostname || host.id;
}
