// Topics of the help page, which the wizard's links lead to.

/** A topic: its paragraphs are texts of the locale files. */
export interface Topic {
  title: string;
  paragraphs: string[];
  /** The page that it is about. */
  page?: { path: string; title: string };
}

export const TOPICS = {
  start: {
    title: "From nothing to a cluster",
    paragraphs: [
      "Create a cluster, download its discovery image, boot the hosts from it, assign networks, review, install. The page of the cluster says at each step why it is not ready yet, and the remedy.",
      "All content comes from this site: releases and operators have to be mirrored first.",
    ],
  },
  rehearsal: {
    title: "Rehearsing an installation",
    paragraphs: [
      "Before the first real host boots, the page Rehearsal plays the installation with simulated hosts, from your install-config.yaml and agent-config.yaml or from a profile. It names each mistake with its host, the observed and the required value, and the remedy.",
      "Simulated hosts know what the files say: a switch with another VLAN, a firewall or a broken cable is not part of it.",
    ],
    page: { path: "/rehearsal", title: "Rehearse the installation first" },
  },
  versions: {
    title: "Versions",
    paragraphs: [
      "The versions in the list are those whose release images this site has. To add one, mirror it with atoll mirror, and publish the archive here.",
    ],
  },
  "support-levels": {
    title: "Support levels",
    paragraphs: [
      "Features in technology or developer preview work, but may change with the next version and may not be upgradable. Do not use them for clusters that you depend on.",
    ],
  },
  "pull-secret": {
    title: "Pull secret",
    paragraphs: [
      "The pull secret is the login with which hosts and cluster pull images: here, the login at the registry of this site.",
      'Its format is that of a container engine: {"auths":{"registry.example.org:5000":{"auth":"BASE64 of user:password"}}}. podman login --authfile pull-secret.json registry.example.org:5000 writes it.',
    ],
  },
  "disk-encryption": {
    title: "Disk encryption",
    paragraphs: [
      "With TPM 2.0, the key of the installation disk is sealed in each host's chip, which has to be enabled in the firmware. With Tang, hosts ask Tang servers of your network for it when they boot: give the URL and the thumbprint of each.",
    ],
  },
  networking: {
    title: "Networks of a cluster",
    paragraphs: [
      "The machine network is the one of the hosts' addresses; API and ingress need a free address in it each, unless your own load balancer serves them. Cluster and service networks are internal and must not overlap with others.",
      "DNS needs api.CLUSTER.DOMAIN and api-int.CLUSTER.DOMAIN for the API address, *.apps.CLUSTER.DOMAIN for the ingress address. Every host needs to reach the others, a time server and the registry.",
    ],
  },
  "ssh-keys": {
    title: "SSH keys",
    paragraphs: ["ssh-keygen -t ed25519 makes a pair of keys; paste the content of the file that ends in .pub. With it you can log in to hosts as user core."],
  },
  "approve-nodes": {
    title: "Approving nodes",
    paragraphs: ["Added hosts ask the cluster for certificates, twice each: oc get csr lists the requests, oc adm certificate approve NAME approves one. The nodes page of the web console has them, too."],
  },
  "static-network": {
    title: "Static networks",
    paragraphs: [
      "Each host has a description of its interfaces in the format of nmstate, and the MAC addresses by which the host is recognized. It is part of the discovery image: download the image again after a change.",
    ],
  },
  platforms: {
    title: "Platforms",
    paragraphs: ["On virtualization platforms, boot the machines from the discovery image as a virtual CD. Machines need a fixed MAC address and disk.EnableUUID where the platform has it."],
  },
  "cpu-architectures": {
    title: "CPU architectures",
    paragraphs: ["A cluster takes hosts of another architecture only if its release image is multi-architecture: oc adm release info -o jsonpath={.metadata.metadata} shows release.openshift.io/architecture: multi."],
  },
  "host-requirements": {
    title: "Requirements of hosts",
    paragraphs: ["The requirements of each role are settings of this site (HW_VALIDATOR_REQUIREMENTS), and operators add to them. The page of a cluster names each host that does not meet them, with the value that was found and the one that is required."],
  },
  "disk-speed": {
    title: "Disk speed",
    paragraphs: ["etcd writes each change to disk before it answers: the 99th percentile of fsync has to stay below 10 ms. Use SSD or NVMe disks for control plane hosts; fio --fsync=1 measures it."],
  },
  operators: {
    title: "Operators",
    paragraphs: ["Operators are installed with the cluster from the catalog of this site: only mirrored ones can be. Each adds to the requirements of hosts, which the wizard shows beside its name; its own documentation is part of its catalog entry."],
  },
  kubeconfig: {
    title: "Kubeconfig",
    paragraphs: ["oc --kubeconfig FILE get nodes uses it once; export KUBECONFIG=FILE for a whole session. The names api.CLUSTER.DOMAIN and *.apps.CLUSTER.DOMAIN have to be known to your computer."],
  },
  "image-password": {
    title: "A password in the discovery image",
    paragraphs: ["Hosts that have no network can be examined on their console: atoll image embed IMAGE --ignition FILE adds a user with a password to a copy of the image."],
  },
  mtu: {
    title: "MTU",
    paragraphs: ["All hosts need the same MTU on the machine network, and switches in between have to pass it: the check sends packets of full size."],
  },
  boot: {
    title: "Booting many servers",
    paragraphs: [
      "Each discovery image has a URL for virtual media of BMCs and for UEFI HTTP boot, and a script for iPXE. See the page of the infra-env.",
      "Where the hosts have BMCs with Redfish, many boot it at once: their addresses are typed or pasted there.",
    ],
  },
  report: {
    title: "Reporting a problem",
    paragraphs: ["Download the logs of the cluster and attach them to your report, with the checks of the page Readiness."],
  },
} satisfies Record<string, Topic>;

export type HelpTopic = keyof typeof TOPICS;
