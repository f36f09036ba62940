//! The two files: read from YAML documents, and printed.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;
use model::Error;
use model::network::NetworkType;
use model::versions::CpuArchitecture;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Declaration;
use super::hosts::DeclaredHost;
use super::refused;

/// Names of the files.
pub(super) const INSTALL: &str = "install-config.yaml";
pub(super) const AGENT: &str = "agent-config.yaml";
/// Members of the install-config that become overrides of the generated one.
pub(super) const OVERRIDES: &[&str] = &[
    "additionalTrustBundlePolicy",
    "capabilities",
    "cpuPartitioningMode",
    "featureGates",
    "featureSet",
    "fips",
    "imageContentSources",
    "imageDigestSources",
    "publish",
];

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Metadata {
    name: String,
    /// Generated files have it, and null.
    #[serde(default, rename = "creationTimestamp", skip_serializing)]
    _creation_timestamp: (),
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct InstallConfigFile {
    api_version: String,
    metadata: Metadata,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base_domain: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    control_plane: Option<MachinePool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    compute: Option<Vec<MachinePool>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    networking: Option<Networking>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    platform: Option<PlatformMember>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    proxy: Option<ProxyMember>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pull_secret: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ssh_key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    additional_trust_bundle: Option<String>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
struct MachinePool {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    replicas: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    architecture: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hyperthreading: Option<String>,
    /// Empty in files for machines without a cloud.
    #[serde(skip_serializing_if = "Option::is_none")]
    platform: Option<NoMembers>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct NoMembers {}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
struct Networking {
    #[serde(skip_serializing_if = "Option::is_none")]
    network_type: Option<NetworkType>,
    #[serde(skip_serializing_if = "Option::is_none")]
    machine_network: Option<Vec<CidrMember>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster_network: Option<Vec<ClusterNetworkMember>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    service_network: Option<Vec<String>>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CidrMember {
    cidr: String,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct ClusterNetworkMember {
    cidr: String,
    #[serde(default)]
    host_prefix: i64,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct PlatformMember {
    #[serde(skip_serializing_if = "Option::is_none")]
    none: Option<NoMembers>,
    #[serde(skip_serializing_if = "Option::is_none")]
    baremetal: Option<BaremetalMember>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct BaremetalMember {
    #[serde(rename = "apiVIPs", skip_serializing_if = "Option::is_none")]
    api_vips: Option<Vec<String>>,
    #[serde(rename = "ingressVIPs", skip_serializing_if = "Option::is_none")]
    ingress_vips: Option<Vec<String>>,
    #[serde(rename = "apiVIP", skip_serializing_if = "Option::is_none")]
    api_vip: Option<String>,
    #[serde(rename = "ingressVIP", skip_serializing_if = "Option::is_none")]
    ingress_vip: Option<String>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ProxyMember {
    #[serde(rename = "httpProxy", skip_serializing_if = "String::is_empty")]
    http: String,
    #[serde(rename = "httpsProxy", skip_serializing_if = "String::is_empty")]
    https: String,
    #[serde(rename = "noProxy", skip_serializing_if = "String::is_empty")]
    exceptions: String,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct AgentConfigFile {
    api_version: String,
    kind: String,
    metadata: Metadata,
    #[serde(
        default,
        rename = "additionalNTPSources",
        skip_serializing_if = "Option::is_none"
    )]
    ntp_sources: Option<Vec<String>>,
    #[serde(
        default,
        rename = "minimalISO",
        skip_serializing_if = "Option::is_none"
    )]
    minimal_iso: Option<bool>,
    /// An addition to the installer's file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    embedded_agent: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hosts: Option<Vec<DeclaredHost>>,
}

/// Reads both files from the documents of one text, in any order; an agent-config alone is not enough.
///
/// Errors: Invalid – not YAML, a file that is missing or present twice, or a member that is refused or malformed.
pub fn parse(text: &str) -> Result<Declaration, Error> {
    read_documents(documents(text)?)
}

/// The documents of a text, without empty ones.
///
/// Errors: Invalid – not YAML.
pub fn documents(text: &str) -> Result<Vec<Value>, Error> {
    let documents: Vec<Value> = serde_yaml::from_multiple(text)
        .map_err(|error| Error::invalid("body", format!("is not YAML: {error}")))?;
    let documents = documents.into_iter();
    Ok(documents.filter(|document| !document.is_null()).collect())
}

/// Reads both files from their documents.
///
/// Errors: as [`parse`].
pub fn read_documents(documents: Vec<Value>) -> Result<Declaration, Error> {
    let (mut install, mut agent) = (None, None);
    for document in documents {
        let is_agent = document
            .get("kind")
            .is_some_and(|kind| kind == "AgentConfig");
        let (slot, file) = if is_agent {
            (&mut agent, AGENT)
        } else {
            (&mut install, INSTALL)
        };
        if slot.replace(document).is_some() {
            let reason =
                "is present twice: send one install-config and one document of kind AgentConfig";
            return Err(Error::invalid(file, reason));
        }
    }
    let install = install.ok_or_else(|| {
        let reason = "is missing: send it as a document beside agent-config.yaml";
        Error::invalid(INSTALL, reason)
    })?;
    let mut declaration = read_install_config(install)?;
    if let Some(agent) = agent {
        read_agent_config(agent, &mut declaration)?;
    }
    Ok(declaration)
}

fn read<T: DeserializeOwned>(file: &str, value: Value) -> Result<T, Error> {
    serde_json::from_value(value).map_err(|error| Error::invalid(file, error.to_string()))
}

fn read_install_config(mut value: Value) -> Result<Declaration, Error> {
    refused::check(INSTALL, &value, refused::INSTALL_CONFIG)?;
    let overrides = take_overrides(&mut value);
    let file: InstallConfigFile = read(INSTALL, value)?;
    if file.api_version != "v1" {
        return Err(refused::value(
            INSTALL,
            "apiVersion",
            &file.api_version,
            "is unknown: write v1",
        ));
    }
    let control_plane = file.control_plane.unwrap_or_default();
    let mut compute = file.compute.unwrap_or_default();
    if compute.len() > 1 {
        let reason = "has several pools: hosts of one role are one pool here";
        return Err(Error::invalid(format!("{INSTALL}: compute"), reason));
    }
    let compute = compute.pop().unwrap_or_default();
    for (pool, path, name) in [
        (&control_plane, "controlPlane.name", "master"),
        (&compute, "compute[0].name", "worker"),
    ] {
        if !pool.name.is_empty() && pool.name != name {
            let remedy = format!("is unknown: write {name}");
            return Err(refused::value(INSTALL, path, &pool.name, &remedy));
        }
    }
    let networking = file.networking.unwrap_or_default();
    let platform = read_platform(file.platform)?;
    Ok(Declaration {
        name: file.metadata.name,
        base_domain: file.base_domain,
        pull_secret: file.pull_secret,
        ssh_key: file.ssh_key.map(|key| key.trim().to_owned()),
        trust_bundle: file.additional_trust_bundle,
        network_type: networking.network_type,
        machine_networks: networking
            .machine_network
            .map(|list| list.into_iter().map(|one| canonical(one.cidr)).collect()),
        cluster_networks: networking.cluster_network.map(|list| {
            list.into_iter()
                .map(|one| (canonical(one.cidr), one.host_prefix))
                .collect()
        }),
        service_networks: networking
            .service_network
            .map(|list| list.into_iter().map(canonical).collect()),
        control_plane: control_plane.replicas,
        workers: compute.replicas,
        architecture: read_architecture(&control_plane, &compute)?,
        hyperthreading: read_hyperthreading(&control_plane, &compute)?,
        proxy: file.proxy.map(|one| [one.http, one.https, one.exceptions]),
        overrides,
        ..platform
    })
}

/// An address or network in the spelling of stored records; other texts are refused with their record.
fn canonical(text: String) -> String {
    let network = text.parse::<IpNet>().map(|net| net.trunc().to_string());
    let found = network.or_else(|_| text.parse::<IpAddr>().map(|address| address.to_string()));
    found.unwrap_or(text)
}

fn take_overrides(value: &mut Value) -> BTreeMap<String, Value> {
    let Some(members) = value.as_object_mut() else {
        return BTreeMap::new();
    };
    let names = OVERRIDES.iter();
    let found = names.filter_map(|name| Some(((*name).to_owned(), members.remove(*name)?)));
    found.filter(|(_, value)| !value.is_null()).collect()
}

/// The members of a declaration that follow from the platform.
fn read_platform(platform: Option<PlatformMember>) -> Result<Declaration, Error> {
    let Some(platform) = platform else {
        return Ok(Declaration::default());
    };
    let list = |one: Option<String>, many: Option<Vec<String>>| {
        let list = many.or(one.map(|one| vec![one]));
        list.map(|list| list.into_iter().map(canonical).collect())
    };
    match (platform.none, platform.baremetal) {
        (Some(_), None) => Ok(Declaration {
            user_managed: Some(true),
            ..Declaration::default()
        }),
        (None, Some(baremetal)) => Ok(Declaration {
            user_managed: Some(false),
            api_vips: list(baremetal.api_vip, baremetal.api_vips),
            ingress_vips: list(baremetal.ingress_vip, baremetal.ingress_vips),
            ..Declaration::default()
        }),
        _ => Err(Error::invalid(
            format!("{INSTALL}: platform"),
            "should be either none or baremetal",
        )),
    }
}

/// Names of architectures in install-configs.
const ARCHITECTURES: &[(&str, CpuArchitecture)] = &[
    ("amd64", CpuArchitecture::X86_64),
    ("arm64", CpuArchitecture::Arm64),
    ("ppc64le", CpuArchitecture::Ppc64le),
    ("s390x", CpuArchitecture::S390x),
];

fn read_architecture(
    control_plane: &MachinePool,
    compute: &MachinePool,
) -> Result<Option<CpuArchitecture>, Error> {
    let (first, second) = (&control_plane.architecture, &compute.architecture);
    if let (Some(first), Some(second)) = (first, second)
        && first != second
    {
        let remedy = "differs from that of the control plane: use one for all";
        return Err(refused::value(
            INSTALL,
            "compute[0].architecture",
            second,
            remedy,
        ));
    }
    let Some(name) = first.as_ref().or(second.as_ref()) else {
        return Ok(None);
    };
    let found = ARCHITECTURES.iter().find(|(known, _)| known == name);
    found.map(|(_, found)| Some(*found)).ok_or_else(|| {
        let remedy = "is unknown: write amd64, arm64, ppc64le or s390x";
        refused::value(INSTALL, "controlPlane.architecture", name, remedy)
    })
}

fn read_hyperthreading(
    control_plane: &MachinePool,
    compute: &MachinePool,
) -> Result<Option<(bool, bool)>, Error> {
    let read = |pool: &MachinePool, path: &str| match pool.hyperthreading.as_deref() {
        None => Ok(None),
        Some("Enabled") => Ok(Some(true)),
        Some("Disabled") => Ok(Some(false)),
        Some(other) => Err(refused::value(
            INSTALL,
            path,
            other,
            "should be Enabled or Disabled",
        )),
    };
    let masters = read(control_plane, "controlPlane.hyperthreading")?;
    let workers = read(compute, "compute[0].hyperthreading")?;
    if masters.is_none() && workers.is_none() {
        return Ok(None);
    }
    // The installer's default is Enabled.
    Ok(Some((masters.unwrap_or(true), workers.unwrap_or(true))))
}

fn read_agent_config(value: Value, declaration: &mut Declaration) -> Result<(), Error> {
    refused::check(AGENT, &value, refused::AGENT_CONFIG)?;
    let file: AgentConfigFile = read(AGENT, value)?;
    if !matches!(file.api_version.as_str(), "v1alpha1" | "v1beta1") {
        let remedy = "is unknown: write v1beta1";
        return Err(refused::value(
            AGENT,
            "apiVersion",
            &file.api_version,
            remedy,
        ));
    }
    declaration.infra_env_name = Some(file.metadata.name);
    declaration.ntp_sources = file.ntp_sources;
    declaration.minimal_iso = file.minimal_iso;
    declaration.embedded_agent = file.embedded_agent;
    let hosts = file.hosts.map(|hosts| {
        let hosts = hosts.into_iter().enumerate();
        hosts
            .map(|(at, host)| host.normalised(&format!("hosts[{at}]")))
            .collect::<Result<Vec<_>, Error>>()
    });
    declaration.hosts = hosts.transpose()?;
    Ok(())
}

/// Prints both files as two documents.
///
/// Errors: Internal – values that YAML cannot hold.
pub fn print(declaration: &Declaration) -> Result<String, Error> {
    let internal = |error| Error::internal("printing the declaration", error);
    let mut install = serde_json::to_value(install_config(declaration))
        .map_err(|error| Error::internal("printing the declaration", error))?;
    let more: Map<String, Value> = declaration.overrides.clone().into_iter().collect();
    if let Some(members) = install.as_object_mut() {
        members.extend(more);
    }
    let agent = AgentConfigFile {
        api_version: "v1beta1".to_owned(),
        kind: "AgentConfig".to_owned(),
        metadata: Metadata {
            name: declaration
                .infra_env_name
                .clone()
                .unwrap_or_else(|| declaration.name.clone()),
            ..Metadata::default()
        },
        ntp_sources: declaration.ntp_sources.clone(),
        minimal_iso: declaration.minimal_iso,
        embedded_agent: declaration.embedded_agent,
        hosts: declaration.hosts.clone(),
    };
    Ok(format!(
        "# {INSTALL}: the pull secret is not exported\n{}---\n# {AGENT}\n{}",
        serde_yaml::to_string(&install).map_err(internal)?,
        serde_yaml::to_string(&agent).map_err(internal)?
    ))
}

fn install_config(declaration: &Declaration) -> InstallConfigFile {
    let name = |masters: bool| if masters { "master" } else { "worker" }.to_owned();
    let hyperthreading = |masters: bool| {
        let (of_masters, of_workers) = declaration.hyperthreading?;
        let is_enabled = if masters { of_masters } else { of_workers };
        Some(if is_enabled { "Enabled" } else { "Disabled" }.to_owned())
    };
    let architecture = declaration.architecture.and_then(|wanted| {
        let mut known = ARCHITECTURES.iter();
        let found = known.find(|(_, one)| *one == wanted)?;
        Some(found.0.to_owned())
    });
    let pool = |masters: bool, replicas| MachinePool {
        name: name(masters),
        replicas,
        architecture: architecture.clone(),
        hyperthreading: hyperthreading(masters),
        platform: None,
    };
    let platform = declaration.user_managed.map(|user_managed| {
        if user_managed {
            return PlatformMember {
                none: Some(NoMembers {}),
                baremetal: None,
            };
        }
        PlatformMember {
            none: None,
            baremetal: Some(BaremetalMember {
                api_vips: declaration.api_vips.clone(),
                ingress_vips: declaration.ingress_vips.clone(),
                ..BaremetalMember::default()
            }),
        }
    });
    InstallConfigFile {
        api_version: "v1".to_owned(),
        metadata: Metadata {
            name: declaration.name.clone(),
            ..Metadata::default()
        },
        base_domain: declaration.base_domain.clone(),
        control_plane: Some(pool(true, declaration.control_plane)),
        compute: Some(vec![pool(false, declaration.workers)]),
        networking: Some(Networking {
            network_type: declaration.network_type,
            machine_network: declaration
                .machine_networks
                .clone()
                .map(|list| list.into_iter().map(|cidr| CidrMember { cidr }).collect()),
            cluster_network: declaration.cluster_networks.clone().map(|list| {
                list.into_iter()
                    .map(|(cidr, host_prefix)| ClusterNetworkMember { cidr, host_prefix })
                    .collect()
            }),
            service_network: declaration.service_networks.clone(),
        }),
        platform,
        proxy: declaration
            .proxy
            .clone()
            .map(|[http, https, exceptions]| ProxyMember {
                http,
                https,
                exceptions,
            }),
        pull_secret: declaration.pull_secret.clone(),
        ssh_key: declaration.ssh_key.clone(),
        additional_trust_bundle: declaration.trust_bundle.clone(),
    }
}
