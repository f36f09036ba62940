//! Validation of an install-config beyond its schema. All problems are reported together.

use std::collections::BTreeSet;
use std::net::IpAddr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ipnet::IpNet;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde_json::Value;

use super::config::{
    Baremetal, ConfigProxy, InstallConfig, LoadBalancerType, MachinePool, ProvisioningNetwork,
};

/// Problems found so far, each with its member.
#[derive(Default)]
struct ConfigProblems(Vec<String>);

impl ConfigProblems {
    fn add(&mut self, member: &str, value: &str, why: &str) {
        self.0
            .push(format!("{member}: Invalid value: {value:?}: {why}"));
    }

    fn require(&mut self, is_good: bool, member: &str, value: &str, why: &str) {
        if !is_good {
            self.add(member, value, why);
        }
    }
}

/// The problems of `config`; none when it can be installed.
pub(super) fn problems(config: &InstallConfig) -> Vec<String> {
    let mut problems = ConfigProblems::default();
    names(config, &mut problems);
    secrets(config, &mut problems);
    pools(config, &mut problems);
    let machine = networks(config, &mut problems);
    platform(config, &machine, &mut problems);
    sources(config, &mut problems);
    if let Some(proxy) = &config.proxy {
        check_proxy(proxy, &mut problems);
    }
    problems.0
}

fn names(config: &InstallConfig, problems: &mut ConfigProblems) {
    problems.require(
        config.api_version == "v1",
        "apiVersion",
        &config.api_version,
        "install-config version must be \"v1\"",
    );
    let name = &config.metadata.name;
    problems.require(
        is_label(name) && name.len() <= 54,
        "metadata.name",
        name,
        "must be a lower-case DNS label of at most 54 characters",
    );
    let domain = &config.base_domain;
    let is_domain = !domain.is_empty() && domain.len() <= 253 && domain.split('.').all(is_label);
    problems.require(
        is_domain,
        "baseDomain",
        domain,
        "must be a lower-case DNS name",
    );
}

fn is_label(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty()
        && text.len() <= 63
        && text.bytes().all(inner)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

fn secrets(config: &InstallConfig, problems: &mut ConfigProblems) {
    if let Err(why) = check_pull_secret(&config.pull_secret) {
        problems.add("pullSecret", "<redacted>", &why);
    }
    for line in config.ssh_key.lines().filter(|line| !line.is_empty()) {
        let mut words = line.split_whitespace();
        let is_key = words
            .next()
            .is_some_and(|kind| kind.starts_with("ssh-") || kind.starts_with("ecdsa-"))
            && words.next().is_some_and(|key| STANDARD.decode(key).is_ok());
        problems.require(is_key, "sshKey", line, "is not a public key");
    }
    let bundle = &config.additional_trust_bundle;
    if !bundle.is_empty() {
        let certificates: Vec<_> = CertificateDer::pem_slice_iter(bundle.as_bytes()).collect();
        let is_pem = !certificates.is_empty() && certificates.iter().all(Result::is_ok);
        problems.require(
            is_pem,
            "additionalTrustBundle",
            &bundle[..bundle.floor_char_boundary(40)],
            "is not a list of PEM certificates",
        );
    }
}

fn check_pull_secret(text: &str) -> Result<(), String> {
    let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let auths = value
        .get("auths")
        .and_then(Value::as_object)
        .filter(|auths| !auths.is_empty())
        .ok_or("auths required")?;
    for (registry, entry) in auths {
        let auth = entry.get("auth").and_then(Value::as_str).unwrap_or("");
        let is_pair = STANDARD
            .decode(auth)
            .is_ok_and(|decoded| decoded.contains(&b':'));
        if !is_pair {
            return Err(format!(
                "{registry} requires auth, the base64 of user:password"
            ));
        }
    }
    Ok(())
}

fn pools(config: &InstallConfig, problems: &mut ConfigProblems) {
    let control = &config.control_plane;
    problems.require(
        control.name == "master",
        "controlPlane.name",
        &control.name,
        "must be master",
    );
    let masters = replicas(control);
    let with_two = config.arbiter.is_some() || control.fencing.is_some();
    let is_count = matches!(masters, 1 | 3..=5) || (masters == 2 && with_two);
    problems.require(
        is_count,
        "controlPlane.replicas",
        &masters.to_string(),
        "must be 1 or 3 to 5; 2 needs an arbiter or fencing",
    );
    problems.require(
        config.compute.len() <= 1,
        "compute",
        &config.compute.len().to_string(),
        "at most one pool on this platform",
    );
    for pool in &config.compute {
        problems.require(
            pool.name == "worker",
            "compute[0].name",
            &pool.name,
            "must be worker",
        );
    }
    if let Some(arbiter) = &config.arbiter {
        problems.require(
            arbiter.name == "arbiter",
            "arbiter.name",
            &arbiter.name,
            "must be arbiter",
        );
    }
    if let Some(in_place) = &config.bootstrap_in_place {
        let disk = &in_place.installation_disk;
        problems.require(
            !disk.is_empty(),
            "bootstrapInPlace.installationDisk",
            disk,
            "must be set the target disk drive for the installation",
        );
        problems.require(
            masters == 1,
            "controlPlane.replicas",
            &masters.to_string(),
            "bootstrap in place requires a single control plane replica",
        );
    }
}

/// Control plane, compute and arbiter machines of a pool; a pool without a number means the platform's default.
pub(super) fn replicas(pool: &MachinePool) -> u32 {
    pool.replicas.unwrap_or(3)
}

/// Checks the networks and answers the machine networks that parse.
fn networks(config: &InstallConfig, problems: &mut ConfigProblems) -> Vec<IpNet> {
    let networking = &config.networking;
    let known = ["", "OVNKubernetes", "OpenShiftSDN", "Calico", "Cilium"];
    problems.require(
        known.contains(&networking.network_type.as_str()),
        "networking.networkType",
        &networking.network_type,
        "unknown network type",
    );
    let mut all = Vec::new();
    for (index, network) in networking.cluster_network.iter().enumerate() {
        let member = format!("networking.clusterNetwork[{index}]");
        if let Some(net) = cidr(&member, &network.cidr, problems) {
            let fits = (net.prefix_len()..=net.max_prefix_len()).contains(&network.host_prefix);
            problems.require(
                fits,
                &format!("{member}.hostPrefix"),
                &network.host_prefix.to_string(),
                "cluster network host subnetwork prefix must not be larger than its network",
            );
            all.push(net);
        }
    }
    for (index, text) in networking.service_network.iter().enumerate() {
        all.extend(cidr(
            &format!("networking.serviceNetwork[{index}]"),
            text,
            problems,
        ));
    }
    let mut machine = Vec::new();
    for (index, network) in networking.machine_network.iter().enumerate() {
        machine.extend(cidr(
            &format!("networking.machineNetwork[{index}]"),
            &network.cidr,
            problems,
        ));
    }
    all.extend(&machine);
    for (member, count) in [
        (
            "networking.clusterNetwork",
            networking.cluster_network.len(),
        ),
        (
            "networking.serviceNetwork",
            networking.service_network.len(),
        ),
        (
            "networking.machineNetwork",
            networking.machine_network.len(),
        ),
    ] {
        problems.require(count > 0, member, "[]", "at least one network is required");
    }
    for (index, first) in all.iter().enumerate() {
        for second in &all[index + 1..] {
            problems.require(
                !first.contains(second) && !second.contains(first),
                "networking",
                &first.to_string(),
                &format!("must not overlap with {second}"),
            );
        }
    }
    machine
}

fn cidr(member: &str, text: &str, problems: &mut ConfigProblems) -> Option<IpNet> {
    match text.parse::<IpNet>() {
        Ok(net) if net.addr() == net.network() => Some(net),
        Ok(net) => {
            let why = format!("invalid network address, expecting {}", net.trunc());
            problems.add(member, text, &why);
            None
        }
        Err(_) => {
            problems.add(member, text, "is not a network in CIDR form");
            None
        }
    }
}

fn platform(config: &InstallConfig, machine: &[IpNet], problems: &mut ConfigProblems) {
    let platform = &config.platform;
    let present = [
        ("baremetal", platform.baremetal.is_some()),
        ("none", platform.none.is_some()),
        ("external", platform.external.is_some()),
        ("vsphere", platform.vsphere.is_some()),
        ("nutanix", platform.nutanix.is_some()),
    ];
    let names: Vec<_> = present
        .iter()
        .filter(|(_, is_present)| *is_present)
        .map(|(name, _)| *name)
        .collect();
    problems.require(
        names.len() == 1,
        "platform",
        &names.join(","),
        "must specify one of the platforms (baremetal, external, none, nutanix, vsphere)",
    );
    if config.bootstrap_in_place.is_some() && platform.baremetal.is_some() {
        problems.add(
            "platform",
            "baremetal",
            "bootstrap in place is for platform none or external",
        );
    }
    if let Some(baremetal) = &platform.baremetal {
        vips(baremetal, machine, problems);
        hosts(config, baremetal, problems);
    }
}

fn vips(baremetal: &Baremetal, machine: &[IpNet], problems: &mut ConfigProblems) {
    let is_user_managed = baremetal
        .load_balancer
        .as_ref()
        .is_some_and(|balancer| balancer.r#type == LoadBalancerType::UserManaged);
    let lists = [
        ("platform.baremetal.apiVIPs", &baremetal.api_vips),
        ("platform.baremetal.ingressVIPs", &baremetal.ingress_vips),
    ];
    for (member, vips) in lists {
        problems.require(
            (1..=2).contains(&vips.len()),
            member,
            &vips.join(","),
            "must hold one VIP, or two for dual stack",
        );
        for vip in vips {
            let Ok(address) = vip.parse::<IpAddr>() else {
                problems.add(member, vip, "is not a valid IP");
                continue;
            };
            let is_inside = machine.iter().any(|net| net.contains(&address));
            problems.require(
                is_inside || is_user_managed,
                member,
                vip,
                "IP expected to be in one of the machine networks",
            );
            problems.require(
                is_user_managed
                    || member.contains("ingress")
                    || !baremetal.ingress_vips.contains(vip),
                member,
                vip,
                "VIP for API must not be one of the Ingress VIPs",
            );
        }
    }
    for (member, single, list) in [
        (
            "platform.baremetal.apiVIP",
            &baremetal.api_vip,
            &baremetal.api_vips,
        ),
        (
            "platform.baremetal.ingressVIP",
            &baremetal.ingress_vip,
            &baremetal.ingress_vips,
        ),
    ] {
        if let Some(vip) = single {
            problems.require(
                list.first() == Some(vip),
                member,
                vip,
                "must be the first of the list",
            );
        }
    }
}

fn hosts(config: &InstallConfig, baremetal: &Baremetal, problems: &mut ConfigProblems) {
    let mut names = BTreeSet::new();
    let mut macs = BTreeSet::new();
    for (index, host) in baremetal.hosts.iter().enumerate() {
        let member = |name: &str| format!("platform.baremetal.hosts[{index}].{name}");
        problems.require(
            !host.name.is_empty() && names.insert(&host.name),
            &member("name"),
            &host.name,
            "must be set and different from the other hosts'",
        );
        let mac = host.boot_mac_address.to_ascii_lowercase();
        let is_good = is_mac(&mac) && macs.insert(mac);
        problems.require(
            is_good,
            &member("bootMACAddress"),
            &host.boot_mac_address,
            "must be a MAC address different from the other hosts'",
        );
        let role = host.role.as_str();
        problems.require(
            matches!(role, "" | "master" | "worker" | "arbiter"),
            &member("role"),
            role,
            "must be master, arbiter or worker",
        );
        let needs_bmc = baremetal.provisioning_network != Some(ProvisioningNetwork::Disabled);
        problems.require(
            !needs_bmc || !host.bmc.address.is_empty(),
            &member("bmc.address"),
            &host.bmc.address,
            "missing BMC address",
        );
    }
    let wanted = replicas(&config.control_plane)
        + config.compute.iter().map(replicas).sum::<u32>()
        + config.arbiter.iter().map(replicas).sum::<u32>();
    let count = u32::try_from(baremetal.hosts.len()).unwrap_or(u32::MAX);
    problems.require(
        count >= wanted,
        "platform.baremetal.hosts",
        &count.to_string(),
        &format!("not enough hosts found to support all the configured replicas ({wanted})"),
    );
}

fn is_mac(text: &str) -> bool {
    let parts: Vec<&str> = text.split(':').collect();
    parts.len() == 6
        && parts
            .iter()
            .all(|part| part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

fn sources(config: &InstallConfig, problems: &mut ConfigProblems) {
    problems.require(
        config.image_content_sources.is_empty() || config.image_digest_sources.is_empty(),
        "imageContentSources",
        "[…]",
        "cannot set imageContentSources and imageDigestSources at the same time",
    );
    for (member, list) in [
        ("imageContentSources", &config.image_content_sources),
        ("imageDigestSources", &config.image_digest_sources),
    ] {
        for (index, entry) in list.iter().enumerate() {
            for location in std::iter::once(&entry.source).chain(&entry.mirrors) {
                let is_repository = !location.is_empty()
                    && !location.contains("://")
                    && !location.contains('@')
                    && !location.contains(char::is_whitespace)
                    && location.split('/').all(|element| !element.is_empty());
                problems.require(
                    is_repository,
                    &format!("{member}[{index}]"),
                    location,
                    "the repository provided is invalid",
                );
            }
        }
    }
}

fn check_proxy(proxy: &ConfigProxy, problems: &mut ConfigProblems) {
    for (member, text, schemes) in [
        ("proxy.httpProxy", &proxy.http, &["http"][..]),
        ("proxy.httpsProxy", &proxy.https, &["http", "https"][..]),
    ] {
        let is_good = text.is_empty()
            || url::Url::parse(text)
                .is_ok_and(|url| schemes.contains(&url.scheme()) && url.host_str().is_some());
        problems.require(is_good, member, text, "is not a proxy URL");
    }
    problems.require(
        !(proxy.http.is_empty() && proxy.https.is_empty()),
        "proxy",
        &proxy.exceptions,
        "must include httpProxy or httpsProxy",
    );
}
