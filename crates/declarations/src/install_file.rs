//! install-config.yaml, read into a declaration.

use std::net::IpAddr;

use model::cluster::{
    CloudControllerManager, ClusterPlatform, LoadBalancerType, PlatformExternal, PlatformType,
};
use model::network::NetworkType;
use model::versions::CpuArchitecture;
use rules::input;
use serde_json::{Map, Value, json};

use crate::declaration::Declaration;
use crate::documents::INSTALL;
use crate::members::FileMembers;
use crate::overrides;
use crate::problems::SiteProblems;

/// Names of architectures in install-configs.
pub(crate) const ARCHITECTURES: &[(&str, CpuArchitecture)] = &[
    ("amd64", CpuArchitecture::X86_64),
    ("arm64", CpuArchitecture::Arm64),
    ("ppc64le", CpuArchitecture::Ppc64le),
    ("s390x", CpuArchitecture::S390x),
];
/// Versions of the file; the installer rewrites older ones.
const API_VERSIONS: [&str; 3] = ["v1", "v1beta3", "v1beta4"];
/// Platforms, by the member that declares each.
const PLATFORMS: [(&str, PlatformType); 5] = [
    ("none", PlatformType::None),
    ("baremetal", PlatformType::Baremetal),
    ("external", PlatformType::External),
    ("vsphere", PlatformType::Vsphere),
    ("nutanix", PlatformType::Nutanix),
];
/// Bits of addresses, from which older files count the length of a host's subnet.
const IPV4_BITS: i64 = 32;
const IPV6_BITS: i64 = 128;
/// A version in which proxies have all exceptions: the one of the cluster is checked with its record.
const ANY_VERSION: &str = "4.99.0";

/// Reads the file. Of members that are refused, the declaration has the rest.
pub(crate) fn read(members: &FileMembers, problems: &mut SiteProblems) -> Declaration {
    InstallReader { members, problems }.declaration()
}

struct InstallReader<'a> {
    members: &'a FileMembers,
    problems: &'a mut SiteProblems,
}

impl InstallReader<'_> {
    fn declaration(mut self) -> Declaration {
        let mut overrides = self.members.overrides.clone();
        self.api_version();
        self.pool_names();
        self.ineffective();
        let platform = self.platform();
        let kind = platform.as_ref().map(|platform| platform.r#type);
        let name = self.name(kind);
        let network_type = self.network_type(&mut overrides);
        Declaration {
            base_domain: self.base_domain(&name),
            pull_secret: self.pull_secret(),
            ssh_key: self.checked("sshKey", |text| {
                input::ssh_public_keys("", &text)?;
                Ok(text.trim().to_owned())
            }),
            trust_bundle: self.checked("additionalTrustBundle", |text| {
                input::ca_certificates("", &without_comments(&text))
            }),
            network_type,
            machine_networks: self.machine_networks(),
            cluster_networks: self.cluster_networks(),
            service_networks: self.service_networks(),
            control_plane: self.replicas("controlPlane.replicas"),
            workers: self.replicas("compute[0].replicas"),
            arbiters: self.replicas("arbiter.replicas"),
            architecture: self.architecture(),
            hyperthreading: self.hyperthreading(),
            load_balancer: kind.and_then(|kind| self.load_balancer(kind)),
            api_vips: kind.and_then(|kind| self.vips(kind, "apiVIP")),
            ingress_vips: kind.and_then(|kind| self.vips(kind, "ingressVIP")),
            proxy: self.proxy(),
            installation_disk: self.text("bootstrapInPlace.installationDisk"),
            platform,
            name,
            overrides,
            ..Declaration::default()
        }
    }

    fn text(&self, path: &str) -> Option<String> {
        self.members.text(path).filter(|text| !text.is_empty())
    }

    /// Text that passes a check.
    fn checked<T>(
        &mut self,
        path: &str,
        check: impl FnOnce(String) -> Result<T, model::Error>,
    ) -> Option<T> {
        let text = self.text(path)?;
        self.members.check(self.problems, path, check(text))
    }

    fn refuse_value(&mut self, path: &str, value: &str, remedy: &str) {
        self.members
            .refuse_value(self.problems, path, (value, remedy));
    }

    fn api_version(&mut self) {
        match self.text("apiVersion") {
            None => {
                let reason = "apiVersion is missing: write apiVersion: v1";
                self.members.refuse(self.problems, "", reason);
            }
            Some(version) if !API_VERSIONS.contains(&version.as_str()) => {
                self.refuse_value("apiVersion", &version, "is unknown: write v1");
            }
            Some(_) => {}
        }
    }

    fn name(&mut self, platform: Option<PlatformType>) -> String {
        let Some(name) = self.text("metadata.name") else {
            let reason = "metadata.name is missing: it names the cluster";
            self.members.refuse(self.problems, "metadata", reason);
            return String::new();
        };
        let is_dotted = platform.is_none_or(|kind| kind == PlatformType::None);
        let checked = input::cluster_name(&name, is_dotted);
        self.members.check(self.problems, "metadata.name", checked);
        name
    }

    fn base_domain(&mut self, name: &str) -> Option<String> {
        self.checked("baseDomain", |text| {
            // The installer takes the name of the root, too.
            let domain = text.strip_suffix('.').unwrap_or(&text);
            input::base_dns_domain(domain, name)?;
            Ok(domain.to_owned())
        })
    }

    fn pull_secret(&mut self) -> Option<String> {
        self.checked("pullSecret", |text| {
            let nothing: [&str; 0] = [];
            input::pull_secret(&text, &nothing, &nothing)?;
            Ok(text)
        })
    }

    fn pool_names(&mut self) {
        let count = self.members.count("compute");
        if count > 1 {
            let reason = "has several pools: hosts of one role are one pool here";
            self.members.refuse(self.problems, "compute[1]", reason);
        }
        for (path, name) in [
            ("controlPlane.name", "master"),
            ("compute[0].name", "worker"),
            ("arbiter.name", "arbiter"),
        ] {
            if let Some(given) = self.text(path).filter(|given| given != name) {
                self.refuse_value(path, &given, &format!("is unknown: write {name}"));
            }
        }
    }

    fn replicas(&mut self, path: &str) -> Option<i64> {
        let count = self.members.integer(path)?;
        if count < 0 {
            self.refuse_value(path, &count.to_string(), "is negative: write 0 or more");
        }
        Some(count)
    }

    /// Members that the installer refuses on the platforms of this service, or that only sites without hosts have.
    fn ineffective(&mut self) {
        let is_given = |path: &str, default: &str| {
            let text = self.text(path);
            text.is_some_and(|text| text != default)
        };
        let mtu = self.members.integer("networking.clusterNetworkMTU");
        let mtu = mtu.is_some_and(|mtu| mtu != 0);
        let rows = [
            ("publish", is_given("publish", "External"), "4.8", ""),
            (
                "credentialsMode",
                is_given("credentialsMode", ""),
                "4.6",
                "",
            ),
            (
                "networking.clusterNetworkMTU",
                mtu,
                "4.15",
                ": set the MTU by a manifest of kind Network, group operator.openshift.io",
            ),
        ];
        for (path, is_given, since, remedy) in rows {
            if is_given {
                let text = format!(
                    "has no effect: openshift-install {since} and later refuse it on this platform{remedy}"
                );
                self.problems.note(INSTALL, path, text);
            }
        }
    }

    fn network_type(&mut self, overrides: &mut Map<String, Value>) -> Option<NetworkType> {
        let given = self.text("networking.networkType");
        let given = given.or_else(|| self.text("networking.type"))?;
        let mut known = NetworkType::ALL.iter();
        let found = known.find(|kind| kind.as_str().eq_ignore_ascii_case(&given));
        if let Some(kind) = found.filter(|kind| **kind != NetworkType::None) {
            return Some(*kind);
        }
        if given.eq_ignore_ascii_case("Kuryr") {
            let path = "networking.networkType";
            self.refuse_value(
                path,
                &given,
                "is of clouds, and gone since 4.15: write OVNKubernetes",
            );
            return None;
        }
        // The record has a closed set; the installer passes other names on.
        overrides::set(overrides, &["networking", "networkType"], json!(given));
        Some(NetworkType::OVNKubernetes)
    }

    fn cidr(&mut self, path: &str, text: &str) -> String {
        let checked = input::cidr("", text);
        let Some(network) = self.members.check(self.problems, path, checked) else {
            return text.to_owned();
        };
        if text.parse() != Ok(network) {
            let text =
                format!("is read as {network}: the installer refuses the address of a host here");
            self.problems.note(INSTALL, path, text);
        }
        network.to_string()
    }

    fn machine_networks(&mut self) -> Option<Vec<String>> {
        let list = "networking.machineNetwork";
        let count = self.members.count(list);
        if count > 0 {
            return Some(self.cidrs(list, count, ".cidr"));
        }
        if let Some(text) = self.text("networking.machineCIDR") {
            return Some(vec![self.cidr("networking.machineCIDR", &text)]);
        }
        self.members.node(list).map(|_| Vec::new())
    }

    fn service_networks(&mut self) -> Option<Vec<String>> {
        let list = "networking.serviceNetwork";
        let count = self.members.count(list);
        if count > 0 {
            return Some(self.cidrs(list, count, ""));
        }
        if let Some(text) = self.text("networking.serviceCIDR") {
            return Some(vec![self.cidr("networking.serviceCIDR", &text)]);
        }
        self.members.node(list).map(|_| Vec::new())
    }

    fn cidrs(&mut self, list: &str, count: usize, member: &str) -> Vec<String> {
        let mut networks = Vec::new();
        for index in 0..count {
            let path = format!("{list}[{index}]{member}");
            let text = self.members.text(&path).unwrap_or_default();
            networks.push(self.cidr(&path, &text));
        }
        networks
    }

    fn cluster_networks(&mut self) -> Option<Vec<(String, i64)>> {
        let lists = ["networking.clusterNetwork", "networking.clusterNetworks"];
        let filled = lists.into_iter().find(|list| self.members.count(list) > 0);
        let list = filled.or_else(|| {
            lists
                .into_iter()
                .find(|list| self.members.node(list).is_some())
        })?;
        let count = self.members.count(list);
        let networks = self.cidrs(list, count, ".cidr");
        let prefix = |index: usize, cidr: &str| {
            let number = |member: &str| self.members.integer(&format!("{list}[{index}].{member}"));
            let is_ipv6 = cidr.contains(':');
            let bits = if is_ipv6 { IPV6_BITS } else { IPV4_BITS };
            let older = || number("hostSubnetLength").map(|length| bits - length);
            number("hostPrefix")
                .filter(|prefix| *prefix != 0)
                .or_else(older)
                .unwrap_or_default()
        };
        let networks = networks.into_iter().enumerate();
        Some(
            networks
                .map(|(index, cidr)| (cidr.clone(), prefix(index, &cidr)))
                .collect(),
        )
    }

    fn architecture(&mut self) -> Option<CpuArchitecture> {
        let paths = [
            "controlPlane.architecture",
            "compute[0].architecture",
            "arbiter.architecture",
        ];
        let mut first: Option<(CpuArchitecture, String)> = None;
        for path in paths {
            let Some(name) = self.text(path) else {
                continue;
            };
            let Some((_, kind)) = ARCHITECTURES.iter().find(|(known, _)| *known == name) else {
                let remedy = "is unknown: write amd64, arm64, ppc64le or s390x";
                self.refuse_value(path, &name, remedy);
                continue;
            };
            match &first {
                Some((other, shown)) if other != kind => {
                    let remedy = format!("differs from {shown} of another pool: use one for all");
                    self.refuse_value(path, &name, &remedy);
                }
                Some(_) => {}
                None => first = Some((*kind, name)),
            }
        }
        first.map(|(kind, _)| kind)
    }

    fn hyperthreading(&mut self) -> Option<(bool, bool)> {
        let mut read = |path: &str| {
            let text = self.text(path)?;
            match text.as_str() {
                "Enabled" => Some(true),
                "Disabled" => Some(false),
                _ => {
                    self.refuse_value(path, &text, "should be Enabled or Disabled");
                    None
                }
            }
        };
        let masters = read("controlPlane.hyperthreading");
        let workers = read("compute[0].hyperthreading");
        if masters.is_none() && workers.is_none() {
            return None;
        }
        // The installer's default is Enabled.
        Some((masters.unwrap_or(true), workers.unwrap_or(true)))
    }

    fn platform(&mut self) -> Option<ClusterPlatform> {
        let node = self.members.node("platform")?;
        let given: Vec<_> = PLATFORMS
            .into_iter()
            .filter(|(name, _)| node.get(name).is_some())
            .collect();
        let [(_, kind)] = given[..] else {
            // A refused one has its own refusal.
            if !self.problems.has_refused(INSTALL, "platform.") {
                let names = PLATFORMS.map(|(name, _)| name).join(", ");
                let reason = format!("should have one member, of {names}");
                self.members.refuse(self.problems, "platform", reason);
            }
            return None;
        };
        let external = (kind == PlatformType::External).then(|| self.external());
        Some(ClusterPlatform {
            r#type: kind,
            external,
        })
    }

    fn external(&mut self) -> PlatformExternal {
        let path = "platform.external.cloudControllerManager";
        let manager = self.text(path);
        let parsed = manager.as_ref().map(|text| text.parse());
        if let (Some(Err(_)), Some(text)) = (&parsed, &manager) {
            self.refuse_value(path, text, "is unknown: write External, or leave it out");
        }
        PlatformExternal {
            platform_name: self.text("platform.external.platformName"),
            cloud_controller_manager: parsed
                .and_then(Result::ok)
                .filter(|manager| *manager != CloudControllerManager::Unset),
        }
    }

    /// The path of a member of the platform.
    fn of_platform(kind: PlatformType, member: &str) -> String {
        format!("platform.{kind}.{member}")
    }

    fn load_balancer(&mut self, kind: PlatformType) -> Option<LoadBalancerType> {
        let path = Self::of_platform(kind, "loadBalancer.type");
        let text = self.text(&path)?;
        match text.as_str() {
            "OpenShiftManagedDefault" => Some(LoadBalancerType::ClusterManaged),
            "UserManaged" => Some(LoadBalancerType::UserManaged),
            _ => {
                let remedy = "is unknown: write OpenShiftManagedDefault or UserManaged";
                self.refuse_value(&path, &text, remedy);
                None
            }
        }
    }

    /// The addresses of the list, or of the older member with a single one.
    fn vips(&mut self, kind: PlatformType, member: &str) -> Option<Vec<String>> {
        let (one, many) = (
            Self::of_platform(kind, member),
            Self::of_platform(kind, &format!("{member}s")),
        );
        let list = self.members.texts(&many).filter(|list| !list.is_empty());
        let single = self.text(&one);
        if let (Some(single), Some(list)) = (&single, &list)
            && !list.contains(single)
        {
            let remedy = format!("is not in {member}s: write one of both");
            self.refuse_value(&one, single, &remedy);
        }
        let given = match (list, single) {
            (Some(list), _) => {
                let paths = (0..list.len()).map(|index| format!("{many}[{index}]"));
                paths.zip(list).collect()
            }
            (None, Some(single)) => vec![(one, single)],
            (None, None) => return self.members.node(&many).map(|_| Vec::new()),
        };
        let mut addresses = Vec::new();
        for (path, text) in given {
            let checked = input::ip("", &text);
            let address = self.members.check(self.problems, &path, checked);
            addresses.push(address.map_or(text, |address: IpAddr| address.to_string()));
        }
        Some(addresses)
    }

    fn proxy(&mut self) -> Option<[String; 3]> {
        self.members.node("proxy")?;
        let http = self.checked("proxy.httpProxy", |text| {
            input::http_proxy("", &text)?;
            Ok(text)
        });
        let https = self.checked("proxy.httpsProxy", |text| {
            input::https_proxy("", &text)?;
            Ok(text)
        });
        let exceptions = self.checked("proxy.noProxy", |text| {
            input::no_proxy("", &text, ANY_VERSION)?;
            Ok(text)
        });
        Some([http, https, exceptions].map(Option::unwrap_or_default))
    }
}

/// PEM blocks without the text in front of each, which the installer skips; text behind the last one stays.
fn without_comments(bundle: &str) -> String {
    let begins = |line: &&str| line.starts_with("-----BEGIN ");
    let lines: Vec<&str> = bundle.lines().map(str::trim).collect();
    let Some(last) = lines.iter().rposition(begins) else {
        return bundle.to_owned();
    };
    let (mut kept, mut is_inside) = (Vec::new(), false);
    for (at, line) in lines.iter().enumerate() {
        is_inside |= begins(line);
        if is_inside || at > last {
            kept.push(*line);
        }
        is_inside &= !line.starts_with("-----END ");
    }
    kept.join("\n")
}
