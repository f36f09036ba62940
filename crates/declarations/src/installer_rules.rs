//! Rules of the installer over members of install-config.yaml that this service passes on to it: it would refuse them
//! when an installation is prepared.
//!
//! Source: openshift/installer, pkg/types/validation/installconfig.go, machinepools.go, pkg/asset/agent/installconfig.go.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;
use model::cluster::{LoadBalancerType, PlatformType};
use model::network::NetworkType;
use model::{Error, nearest};
use rules::input::is_mac;
use rules::input::{NetworkInput, NetworkRules};

use crate::api_members;
use crate::declaration::Declaration;
use crate::documents::INSTALL;
use crate::members::FileMembers;
use crate::problems::SiteProblems;

/// A version in which all networks are possible: the one of the cluster is checked with its record.
const ANY_VERSION: &str = "4.99.0";
/// Most members of a control plane.
const MOST_MASTERS: i64 = 5;
/// Wrong letters of a word that still suggest a known one.
const TYPOS: usize = 3;
/// Closed sets.
const WORDS: &[(&str, &[&str])] = &[
    ("additionalTrustBundlePolicy", &["Proxyonly", "Always"]),
    ("cpuPartitioningMode", &["None", "AllNodes"]),
    (
        "featureSet",
        &[
            "TechPreviewNoUpgrade",
            "DevPreviewNoUpgrade",
            "CustomNoUpgrade",
            "OKD",
        ],
    ),
    (
        "osImageStream",
        &["rhel-9", "rhel-10", "centos-9", "centos-10"],
    ),
    ("publish", &["External", "Internal", "Mixed"]),
    (
        "platform.baremetal.provisioningNetwork",
        &["Managed", "Unmanaged", "Disabled"],
    ),
    (
        "platform.baremetal.dnsRecordsType",
        &["Internal", "External"],
    ),
];
const POLICIES: &[&str] = &["NeverContactSource", "AllowContactingSource"];
const VERIFICATIONS: &[&str] = &["Enabled", "Disabled"];
/// Source: openshift/api, config/v1/types_cluster_version.go.
const CAPABILITIES: &[&str] = &[
    "openshift-samples",
    "baremetal",
    "marketplace",
    "Console",
    "Insights",
    "Storage",
    "CSISnapshot",
    "NodeTuning",
    "MachineAPI",
    "Build",
    "DeploymentConfig",
    "ImageRegistry",
    "OperatorLifecycleManager",
    "OperatorLifecycleManagerV1",
    "CloudCredential",
    "Ingress",
    "CloudControllerManager",
    "CompatibilityRequirements",
    "ClusterAPI",
];
/// Networks inside OVN-Kubernetes. Source: openshift/installer, pkg/validate/validate.go.
const OVN_NETWORKS: [(&str, &str); 6] = [
    ("100.64.0.0/16", "join"),
    ("100.88.0.0/16", "transit"),
    ("169.254.0.0/17", "masquerade"),
    ("fd98::/64", "join"),
    ("fd97::/64", "transit"),
    ("fd69::/112", "masquerade"),
];
const JOIN: &str = "networking.ovnKubernetesConfig.ipv4.internalJoinSubnet";
/// Credentials of fencing, of one control plane.
const FENCED: usize = 2;

/// Adds the refusals and notes of the rules.
pub(crate) fn check(members: &FileMembers, declaration: &Declaration, problems: &mut SiteProblems) {
    let mut rules = InstallerRules {
        members,
        declaration,
        problems,
    };
    for (path, known) in WORDS {
        rules.word(path, known);
    }
    rules.capabilities();
    rules.features();
    for list in ["imageDigestSources", "imageContentSources"] {
        rules.mirrors(list);
    }
    rules.counts();
    rules.fencing();
    rules.proxy();
    rules.networks();
    rules.installation_disk();
}

struct InstallerRules<'a> {
    members: &'a FileMembers,
    declaration: &'a Declaration,
    problems: &'a mut SiteProblems,
}

impl InstallerRules<'_> {
    fn text(&self, path: &str) -> Option<String> {
        self.members.text(path).filter(|text| !text.is_empty())
    }

    fn refuse(&mut self, path: &str, reason: impl Into<String>) {
        self.members.refuse(self.problems, path, reason);
    }

    fn refuse_value(&mut self, path: &str, value: &str, remedy: &str) {
        self.members
            .refuse_value(self.problems, path, (value, remedy));
    }

    fn platform(&self) -> Option<PlatformType> {
        let platform = self.declaration.platform.as_ref();
        platform.map(|platform| platform.r#type)
    }

    fn word(&mut self, path: &str, known: &[&str]) {
        let Some(given) = self.text(path) else {
            return;
        };
        if !known.contains(&given.as_str()) {
            let remedy = format!("is unknown: write {}", known.join(" or "));
            self.refuse_value(path, &given, &remedy);
        }
    }

    fn capabilities(&mut self) {
        if self.members.node("capabilities").is_none() {
            return;
        }
        let path = "capabilities.baselineCapabilitySet";
        let baseline = self.text(path).unwrap_or_default();
        let is_version = |text: &str| {
            let minor = text.strip_prefix("v4.");
            minor.is_some_and(|minor| minor.parse::<u8>().is_ok())
        };
        if baseline.is_empty() {
            let reason = "has no baselineCapabilitySet, which the installer needs: write vCurrent, or None for those in additionalEnabledCapabilities alone";
            self.refuse("capabilities", reason);
        } else if !["None", "vCurrent"].contains(&baseline.as_str()) && !is_version(&baseline) {
            let remedy = "is unknown: write vCurrent, None, or a version as v4.18";
            self.refuse_value(path, &baseline, remedy);
        }
        let list = "capabilities.additionalEnabledCapabilities";
        let enabled = self.members.texts(list).unwrap_or_default();
        for (at, name) in enabled.iter().enumerate() {
            if !CAPABILITIES.contains(&name.as_str()) {
                let known = CAPABILITIES.iter().copied();
                let remedy = match nearest(name, known, TYPOS) {
                    Some(known) => format!("is unknown: its name is {known}"),
                    None => format!("is unknown: known are {}", CAPABILITIES.join(", ")),
                };
                self.refuse_value(&format!("{list}[{at}]"), name, &remedy);
            }
        }
        if baseline == "None" {
            self.enabled_capabilities(list, &enabled);
        }
    }

    /// Needs of a cluster whose capabilities are listed one by one.
    fn enabled_capabilities(&mut self, list: &str, enabled: &[String]) {
        let has = |name: &str| enabled.iter().any(|one| one == name);
        let platform = self.platform();
        if platform == Some(PlatformType::Baremetal) && !has("baremetal") {
            let reason = "lacks baremetal, which platform baremetal needs: add it";
            self.refuse(list, reason);
        }
        let needs_credentials = matches!(
            platform,
            Some(PlatformType::External | PlatformType::Vsphere | PlatformType::Nutanix)
        );
        for (is_needed, name, since) in [
            (true, "Ingress", "4.16"),
            (has("marketplace"), "OperatorLifecycleManager", "4.15"),
            (needs_credentials, "CloudCredential", "4.15"),
        ] {
            if is_needed && !has(name) {
                let text =
                    format!("lacks {name}: openshift-install {since} and later refuse the list");
                self.problems.note(INSTALL, list, text);
            }
        }
    }

    fn features(&mut self) {
        let gates = self.members.texts("featureGates").unwrap_or_default();
        let set = self.text("featureSet").unwrap_or_default();
        if !gates.is_empty() && set != "CustomNoUpgrade" {
            let reason =
                "is possible with featureSet CustomNoUpgrade only: set it, or leave the gates out";
            self.refuse("featureGates", reason);
        }
        for (at, gate) in gates.iter().enumerate() {
            let value = gate.split_once('=').map(|(_, value)| value);
            if !matches!(
                value,
                Some(
                    "true"
                        | "True"
                        | "TRUE"
                        | "t"
                        | "T"
                        | "1"
                        | "false"
                        | "False"
                        | "FALSE"
                        | "f"
                        | "F"
                        | "0"
                )
            ) {
                let path = format!("featureGates[{at}]");
                self.refuse_value(&path, gate, "is no gate: write Name=true or Name=false");
            }
        }
    }

    fn mirrors(&mut self, list: &str) {
        let count = self.members.count(list);
        if count > 0
            && list == "imageContentSources"
            && self.members.count("imageDigestSources") > 0
        {
            let reason = "is the older name of imageDigestSources: write one of both";
            self.refuse(list, reason);
        }
        for at in 0..count {
            let path = format!("{list}[{at}]");
            let source = self.text(&format!("{path}.source"));
            match &source {
                None => self.refuse(
                    &path,
                    "has no source: write the repository that is mirrored",
                ),
                Some(source) => self.repository(&format!("{path}.source"), source),
            }
            let mirrors = self.members.texts(&format!("{path}.mirrors"));
            let mirrors = mirrors.unwrap_or_default();
            for (at, mirror) in mirrors.iter().enumerate() {
                self.repository(&format!("{path}.mirrors[{at}]"), mirror);
            }
            let policy = format!("{path}.sourcePolicy");
            self.word(&policy, POLICIES);
            if self.text(&policy).is_some() && mirrors.is_empty() {
                self.refuse(
                    &policy,
                    "has an effect on mirrors only: name one, or leave it out",
                );
            }
        }
    }

    /// A repository without tag and digest, or a registry alone.
    fn repository(&mut self, path: &str, text: &str) {
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/:[]".contains(&byte);
        let (registry, inner) = text.split_once('/').unwrap_or((text, ""));
        if text.contains("://") {
            // It might hold a password.
            let reason = "is a URL: write the repository alone, as registry.example.com:5000/openshift/release";
            return self.refuse(path, reason);
        }
        let remedy = if text.contains('@') || inner.contains(':') {
            "is an image: write the repository without tag and digest"
        } else if registry.is_empty()
            || text.ends_with('/')
            || !text.bytes().all(is_name)
            || inner.bytes().any(|byte| byte.is_ascii_uppercase())
        {
            "is no repository: write registry.example.com:5000/openshift/release"
        } else {
            return;
        };
        self.refuse_value(path, text, remedy);
    }

    fn counts(&mut self) {
        let masters = self.declaration.control_plane;
        let path = "controlPlane.replicas";
        if let Some(count) = masters.filter(|count| *count == 0 || *count > MOST_MASTERS) {
            let remedy = "is no number of masters: write 3, 4 or 5, 1 for a single node, or 2 with an arbiter or with fencing";
            self.refuse_value(path, &count.to_string(), remedy);
        }
        let is_single = masters == Some(1);
        if self.members.node("arbiter").is_some() {
            self.arbiter(masters);
        }
        let workers = self.declaration.workers;
        if is_single && workers.is_none() {
            let text = "is missing: the installer takes 3 workers then, and refuses them beside a single master; write replicas: 0";
            self.problems.note(INSTALL, "compute", text);
        }
        let platform = self.platform();
        let is_possible = matches!(
            platform,
            None | Some(PlatformType::None | PlatformType::External)
        );
        if let Some(kind) = platform.filter(|_| is_single && !is_possible) {
            let reason = format!(
                "is {kind}, and controlPlane.replicas is 1: a single node has platform none or external"
            );
            self.refuse("platform", reason);
        }
        let network = self.declaration.network_type;
        if is_single && network.is_some_and(|kind| kind != NetworkType::OVNKubernetes) {
            let text =
                "is not OVNKubernetes: the agent-based installer refuses it for a single node";
            self.problems.note(INSTALL, "networking.networkType", text);
        }
    }

    fn arbiter(&mut self, masters: Option<i64>) {
        match self.declaration.arbiters {
            None => self.refuse("arbiter", "has no replicas: write 1"),
            Some(0) => self.refuse("arbiter.replicas", "is 0: write 1, or leave arbiter out"),
            Some(_) => {}
        }
        if let Some(masters) = masters.filter(|count| *count < 2) {
            let reason =
                format!("needs 2 masters at least, and controlPlane.replicas is {masters}");
            self.refuse("arbiter", reason);
        }
        let platform = self.platform();
        if let Some(kind @ (PlatformType::Vsphere | PlatformType::Nutanix)) = platform {
            let reason =
                format!("is not possible on platform {kind}: use baremetal, none or external");
            self.refuse("arbiter", reason);
        }
    }

    fn fencing(&mut self) {
        let list = "controlPlane.fencing.credentials";
        let count = self.members.count(list);
        let masters = self.declaration.control_plane;
        let has_arbiter = self.declaration.arbiters.is_some_and(|count| count > 0);
        if count > 0 && (masters != Some(2) || has_arbiter) {
            let reason = "is for 2 masters without an arbiter: leave it out, or set controlPlane.replicas to 2";
            self.refuse(list, reason);
        } else if count != FENCED && count > 0 {
            let reason = format!("has {count} entries: write one for each of the 2 masters");
            self.refuse(list, reason);
        }
        if count > FENCED {
            return;
        }
        let mut seen = BTreeMap::new();
        for at in 0..count {
            self.credential(&format!("{list}[{at}]"), &mut seen);
        }
    }

    fn credential(&mut self, path: &str, seen: &mut BTreeMap<String, String>) {
        let missing: Vec<&str> = ["address", "username", "password"]
            .into_iter()
            .filter(|name| self.text(&format!("{path}.{name}")).is_none())
            .collect();
        if !missing.is_empty() {
            self.refuse(
                path,
                format!("has no {}: fencing needs it", missing.join(", no ")),
            );
        }
        let (host, mac) = (format!("{path}.hostName"), format!("{path}.macAddress"));
        if self.text(&host).is_none() && self.text(&mac).is_none() {
            let reason = "has neither hostName nor macAddress: name the host that it belongs to";
            self.refuse(path, reason);
        }
        if let Some(text) = self.text(&mac)
            && !is_mac(&text.to_ascii_lowercase())
        {
            let remedy = "is not a MAC address: write 52:54:00:12:34:56";
            self.refuse_value(&mac, &text, remedy);
        }
        let address = format!("{path}.address");
        if let Some(text) = self.text(&address) {
            let authority = text.split_once("://").map(|(_, rest)| rest);
            let is_url = authority.is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/'));
            if !is_url || !text.contains("redfish") {
                // The address might hold a password.
                let reason = "is no address of a Redfish BMC: write redfish+https://192.0.2.9/redfish/v1/Systems/1";
                self.refuse(&address, reason);
            }
        }
        self.word(&format!("{path}.certificateVerification"), VERIFICATIONS);
        for member in [address, host, mac] {
            let Some(text) = self.text(&member) else {
                continue;
            };
            if let Some(other) = seen.insert(text.to_ascii_lowercase(), member.clone()) {
                let reason = format!("is that of {other}, too: each master has its own");
                self.refuse(&member, reason);
            }
        }
        self.fenced_host(path);
    }

    /// Credentials that belong to no declared host would never be used.
    fn fenced_host(&mut self, path: &str) {
        let hosts = self.declaration.hosts.as_deref().unwrap_or_default();
        let named = |name: &str| {
            let mut hosts = hosts.iter();
            hosts.any(|host| host.hostname.eq_ignore_ascii_case(name))
        };
        let all_named = hosts.iter().all(|host| !host.hostname.is_empty());
        if hosts.is_empty() || !all_named || !self.problems.refuses_disagreements() {
            return;
        }
        let member = format!("{path}.hostName");
        if let Some(name) = self.text(&member).filter(|name| !named(name)) {
            let remedy = "is the name of no host: write one of the hosts' names";
            self.refuse_value(&member, &name, remedy);
        }
    }

    fn proxy(&mut self) {
        let Some([http, https, exceptions]) = &self.declaration.proxy else {
            return;
        };
        if http.is_empty() && https.is_empty() && !exceptions.is_empty() {
            let text = "has no effect without httpProxy and httpsProxy: the installer refuses it";
            self.problems.note(INSTALL, "proxy.noProxy", text);
        }
        if exceptions.split(',').any(|one| one == "*") && exceptions != "*" {
            let remedy = "has * beside other items: write * alone, or leave it out";
            self.refuse_value("proxy.noProxy", exceptions, remedy);
        }
        let (clusters, services) = (self.cluster_networks(), self.service_networks());
        for (path, url) in [("proxy.httpProxy", http), ("proxy.httpsProxy", https)] {
            let Some(address) = address_of(url) else {
                continue;
            };
            let mut networks = clusters.iter().map(|(network, _)| network).chain(&services);
            if let Some(network) = networks.find(|network| network.contains(&address)) {
                let reason = format!(
                    "is in {network}, a network inside the cluster: write the address of the proxy outside"
                );
                self.refuse(path, reason);
            }
        }
    }

    fn machine_networks(&self) -> Vec<IpNet> {
        parsed(self.declaration.machine_networks.iter().flatten())
    }

    fn service_networks(&self) -> Vec<IpNet> {
        parsed(self.declaration.service_networks.iter().flatten())
    }

    fn cluster_networks(&self) -> Vec<(IpNet, i64)> {
        let networks = self.declaration.cluster_networks.iter().flatten();
        networks
            .filter_map(|(cidr, prefix)| Some((cidr.parse().ok()?, *prefix)))
            .collect()
    }

    /// The rules of the API over networks and virtual addresses, at their places, then those of the installer.
    fn networks(&mut self) {
        if ["networking", "platform"]
            .into_iter()
            .any(|path| self.problems.has_refused(INSTALL, path))
        {
            return;
        }
        let addresses = |list: &Option<Vec<String>>| -> Vec<IpAddr> {
            let texts = list.iter().flatten();
            texts.filter_map(|text| text.parse().ok()).collect()
        };
        let mut input = NetworkInput {
            cluster: self.cluster_networks(),
            service: self.service_networks(),
            machine: self.machine_networks(),
            api: addresses(&self.declaration.api_vips),
            ingress: addresses(&self.declaration.ingress_vips),
        };
        let is_partial =
            input.cluster.is_empty() || input.service.is_empty() || input.machine.is_empty();
        if is_partial && input.is_dual_stack() {
            // The other lists are those of the record, or follow from this one.
            (input.cluster, input.service, input.machine) = Default::default();
        }
        let platform = self.platform();
        let has_own_balancer =
            self.declaration.load_balancer == Some(LoadBalancerType::UserManaged);
        let rules = NetworkRules {
            version: ANY_VERSION,
            single_node: self.declaration.control_plane == Some(1),
            user_managed_networking: matches!(
                platform,
                Some(PlatformType::None | PlatformType::External)
            ),
            user_managed_load_balancer: has_own_balancer,
            dhcp: false,
            ipv6_support: true,
            hosts: 0,
        };
        self.host_prefixes(&input.cluster);
        self.inner_networks(&input);
        if self.members.node("platform").is_none() {
            // The record decides the rest, and the API refuses at the place in the file.
            return;
        }
        let found: Vec<Error> = input.problems(&rules).collect();
        for error in found {
            self.refuse_of_api(error);
        }
        let is_dual = input.is_dual_stack();
        if input.service.len() > 1 && !is_dual {
            let reason = "has several networks of one address family: write one, or one of each for dual stack";
            self.refuse("networking.serviceNetwork", reason);
        }
        if input.machine.len() > 1 && !is_dual && !has_own_balancer {
            let reason = "has several networks of one address family: write one of each, or use a load balancer of type UserManaged";
            self.refuse("networking.machineNetwork", reason);
        }
    }

    /// Adds a refusal of a member of the API, at its place in the file.
    fn refuse_of_api(&mut self, error: Error) {
        let Error::Invalid { field, reason } = error else {
            return;
        };
        if let Some((INSTALL, path)) = api_members::place_of(self.declaration, &field) {
            self.refuse(&path, reason);
        }
    }

    fn host_prefixes(&mut self, networks: &[(IpNet, i64)]) {
        let of_v4 = networks
            .iter()
            .find(|(network, _)| network.addr().is_ipv4());
        for (at, (network, prefix)) in networks.iter().enumerate() {
            let wanted = if network.addr().is_ipv6() {
                Some(64)
            } else {
                of_v4.map(|(_, first)| *first)
            };
            if let Some(wanted) = wanted.filter(|wanted| wanted != prefix) {
                let path = format!("networking.clusterNetwork[{at}].hostPrefix");
                let reason = format!("is {prefix}: the installer takes {wanted} here alone");
                self.refuse(&path, reason);
            }
        }
    }

    /// Networks that OVN-Kubernetes uses inside.
    fn inner_networks(&mut self, input: &NetworkInput) {
        let kind = ["networking.networkType", "networking.type"].map(|path| self.text(path));
        let join = self.text(JOIN);
        let ovn = NetworkType::OVNKubernetes.as_str();
        if kind
            .into_iter()
            .flatten()
            .any(|name| !name.eq_ignore_ascii_case(ovn))
        {
            if join.is_some() {
                let reason = "has an effect on networkType OVNKubernetes only: leave it out";
                self.refuse("networking.ovnKubernetesConfig", reason);
            }
            return;
        }
        let lists = [
            ("networking.machineNetwork", input.machine.clone()),
            (
                "networking.clusterNetwork",
                input.cluster.iter().map(|(network, _)| *network).collect(),
            ),
            ("networking.serviceNetwork", input.service.clone()),
        ];
        let own: Option<IpNet> = join.as_ref().and_then(|text| text.parse().ok());
        if let (Some(text), None) = (&join, own) {
            self.refuse_value(JOIN, text, "is not a CIDR: write 100.98.0.0/16");
        }
        for (path, networks) in lists {
            for (at, network) in networks.iter().enumerate() {
                if let Some(own) = own.filter(|own| overlap(own, network)) {
                    let reason =
                        format!("overlaps {network} of {path}: choose a network of its own");
                    self.refuse(JOIN, format!("{own} {reason}"));
                }
                for (inner, name) in OVN_NETWORKS {
                    let is_replaced = join.is_some() && inner.starts_with("100.64.");
                    let is_met = inner
                        .parse()
                        .is_ok_and(|inner: IpNet| overlap(&inner, network));
                    if is_met && !is_replaced {
                        let remedy = if name == "join" && network.addr().is_ipv4() {
                            ", or set networking.ovnKubernetesConfig.ipv4.internalJoinSubnet"
                        } else {
                            ""
                        };
                        let reason = format!(
                            "overlaps {inner}, the {name} network of OVN-Kubernetes: choose another{remedy}"
                        );
                        self.refuse(&format!("{path}[{at}]"), reason);
                    }
                }
            }
        }
    }

    fn installation_disk(&mut self) {
        let path = "bootstrapInPlace.installationDisk";
        if let Some(disk) = self.text(path).filter(|disk| !disk.starts_with("/dev/")) {
            let remedy = "is no device: write /dev/sda or /dev/disk/by-path/…";
            self.refuse_value(path, &disk, remedy);
        }
    }
}

fn parsed<'a>(texts: impl Iterator<Item = &'a String>) -> Vec<IpNet> {
    texts.filter_map(|text| text.parse().ok()).collect()
}

fn overlap(one: &IpNet, other: &IpNet) -> bool {
    one.contains(other) || other.contains(one)
}

/// The address in a URL whose host is one.
fn address_of(url: &str) -> Option<IpAddr> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?']).next()?;
    let host = authority.rsplit('@').next()?;
    let host = match host.strip_prefix('[') {
        Some(inner) => inner.split(']').next()?,
        None => host.split(':').next()?,
    };
    host.parse().ok()
}
