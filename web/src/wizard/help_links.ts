// Links of the library's pages, to our own help: the originals lead out of the air gap.
//
// Each export of the library's module is here under its name, which a test compares.

import type { HelpTopic } from "../pages/help_topics";

const help = (topic: HelpTopic) => `/help#${topic}`;

export const getYearForAssistedInstallerDocumentationLink = () => new Date().getFullYear();

export const ASSISTED_INSTALLER_DOCUMENTATION_LINK = help("start");
export const OPENSHIFT_LIFE_CYCLE_DATES_LINK = help("versions");
export const TECH_SUPPORT_LEVEL_LINK = help("support-levels");
export const DEVELOPER_SUPPORT_LEVEL_LINK = help("support-levels");
export const CLUSTER_MANAGER_SITE_LINK = help("pull-secret");
export const PULL_SECRET_INFO_LINK = help("pull-secret");
export const SSH_GENERATION_DOC_LINK = help("ssh-keys");
export const NMSTATE_EXAMPLES_LINK = help("static-network");
export const NUTANIX_CONFIG_LINK = help("platforms");
export const VSPHERE_CONFIG_LINK = help("platforms");
export const VSPHERE_LIMITATIONS_LINK = help("platforms");
export const OCI_CONFIG_LINK = help("platforms");
export const HOW_TO_KNOW_IF_CLUSTER_SUPPORTS_MULTIPLE_CPU_ARCHS = help("cpu-architectures");
export const OCP_RELEASES_PAGE = help("versions");
export const DISK_WRITE_SPEED_LINK = help("disk-speed");
export const HOST_REQUIREMENTS_LINK = help("host-requirements");
export const ODF_REQUIREMENTS_LINK = help("operators");
export const OPENSHIFT_AI_REQUIREMENTS_LINK = help("operators");
export const OSC_REQUIREMENTS_LINK = help("operators");
export const CNV_LINK = help("operators");
export const ODF_LINK = help("operators");
export const NODE_HEALTHCHECK_LINK = help("operators");
export const SELF_NODE_REMEDIATION_LINK = help("operators");
export const FENCE_AGENTS_REMEDIATION_LINK = help("operators");
export const NODE_MAINTENANCE_LINK = help("operators");
export const FEEDBACK_FORM_LINK = help("report");
export const CHANGE_ISO_PASSWORD_FILE_LINK = help("image-password");
export const MTV_LINK = help("operators");
export const OPENSHIFT_AI_LINK = help("operators");
export const OSC_LINK = help("operators");
export const AUTHORINO_OPERATOR_LINK = help("operators");
export const PIPELINES_OPERATOR_LINK = help("operators");
export const SERVICE_MESH_OPERATOR_LINK = help("operators");
export const SERVERLESS_OPERATOR_LINK = help("operators");
export const KUBECONFIG_INFO_LINK = help("kubeconfig");
export const REDHAT_CONSOLE_OPENSHIFT = "/";

export const getEncryptingDiskDuringInstallationDocsLink = (_version?: string) => help("disk-encryption");
export const getOpenShiftNetworkingDocsLink = (_version?: string) => help("networking");
export const getApproveNodesInClLink = (_version?: string) => help("approve-nodes");
export const getOCPStaticIPDocLink = (_version?: string) => help("static-network");
export const getKmmDocsLink = (_version?: string) => help("operators");
export const getMceDocsLink = (_version?: string) => help("operators");
export const getLvmsDocsLink = (_version?: string) => help("operators");
export const getKubeDeschedulerLink = (_version?: string) => help("operators");
export const getReportIssueLink = (_version?: string) => help("report");
export const getMtuLink = (_version?: string) => help("mtu");
export const getLsoLink = (_version?: string) => help("operators");
export const getNmstateLink = (_version?: string) => help("operators");
export const getNodeFeatureDiscoveryLink = (_version?: string) => help("operators");
export const getNvidiaGpuLink = (_version?: string) => help("operators");
export const getOadpLink = (_version?: string) => help("operators");
export const getMetalLbLink = (_version?: string) => help("operators");
export const getClusterObservabilityLink = (_version?: string) => help("operators");
export const getLokiLink = (_version?: string) => help("operators");
export const getOpenShiftLoggingLink = (_version?: string) => help("operators");
export const getNumaResourcesLink = (_version?: string) => help("operators");

/** The page of nodes in the web console of an installed cluster. */
export const getOcpConsoleNodesPage = (consoleUrl: string) => `${consoleUrl}/k8s/cluster/nodes`;

/** The form of a management service that boots servers from an image; empty unless the page's settings name one. */
export const getCiscoIntersightLink = (imageUrl: string, serviceUrl?: string) =>
  serviceUrl ? `${serviceUrl}?_workflow_Version=1&IsoUrl=${imageUrl}` : help("boot");
