//! The documents of a site's texts, and the file that each one is.

use located_yaml::v1_2::{ConfigNode, documents_from_yaml};
use model::Error;

use crate::schema::{self, Member};

/// Names of the files.
pub(crate) const INSTALL: &str = "install-config.yaml";
pub(crate) const AGENT: &str = "agent-config.yaml";
/// First characters of a text that Windows writes as UTF-16.
const UTF16_MARKS: [[u8; 2]; 2] = [[0xff, 0xfe], [0xfe, 0xff]];
/// Versions that only an agent-config has.
const AGENT_VERSIONS: [&str; 2] = ["v1beta1", "v1alpha1"];

/// The file that a document is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DocumentRole {
    Install,
    Agent,
    /// Neither; the remedy says where its content belongs.
    Foreign(&'static str),
}

/// Kinds that people send along, with the place of their content here.
const FOREIGN_KINDS: &[(&str, &str)] = &[
    (
        "SiteConfig",
        "belongs to zero-touch provisioning by a hub: write install-config.yaml from its clusters, and agent-config.yaml from their nodes",
    ),
    (
        "ClusterInstance",
        "belongs to the SiteConfig operator of a hub: write install-config.yaml from its spec, and agent-config.yaml from its nodes",
    ),
    ("InfraEnv", HUB),
    ("AgentClusterInstall", HUB),
    ("ClusterDeployment", HUB),
    ("Agent", HUB),
    ("AgentServiceConfig", HUB),
    ("ManagedCluster", HUB),
    ("KlusterletAddonConfig", HUB),
    ("HostedCluster", HUB),
    (
        "ClusterImageSet",
        "names a release, which openshift_version of the request chooses here: leave it out",
    ),
    (
        "NMStateConfig",
        "has the network of one host: write spec.config as networkConfig and spec.interfaces as interfaces of the host in agent-config.yaml",
    ),
    (
        "NodeNetworkConfigurationPolicy",
        "configures nodes of a running cluster: write spec.desiredState as networkConfig of each host in agent-config.yaml",
    ),
    ("BareMetalHost", HARDWARE),
    ("HardwareData", HARDWARE),
    (
        "Secret",
        "is no part of a site: write a pull secret as pullSecret of install-config.yaml, and credentials of a BMC as bmc of its host",
    ),
    (
        "ImageSetConfiguration",
        "is read by `atoll mirror`: leave it out",
    ),
    ("ImageDigestMirrorSet", MIRRORS),
    ("ImageTagMirrorSet", MIRRORS),
    ("ImageContentSourcePolicy", MIRRORS),
    ("List", "is a list of objects: send its items as documents"),
];
const HUB: &str = "is a record of assisted installations in Kubernetes: write its values into install-config.yaml and agent-config.yaml";
const HARDWARE: &str =
    "is a record of hardware, which rehearsals alone read: declare the host in agent-config.yaml";
const MIRRORS: &str =
    "belongs to a running cluster: write its mirrors as imageDigestSources of install-config.yaml";
const MANIFEST: &str = "is an object of Kubernetes: upload it as a manifest of the cluster";
const NETWORK: &str =
    "is a network in nmstate's format: write it as networkConfig of a host in agent-config.yaml";
const CREDENTIALS: &str =
    "is a pull secret: write it in quotes as pullSecret of install-config.yaml";
const NOTHING: &str = "has no member of install-config.yaml or agent-config.yaml: leave it out";

/// Decodes a file: UTF-8, or UTF-16 with its mark, as Windows writes it.
///
/// Errors: Invalid – another encoding, with the line of its first character.
pub fn decode(name: &str, bytes: Vec<u8>) -> Result<String, Error> {
    for mark in UTF16_MARKS {
        let Some(rest) = bytes.strip_prefix(&mark) else {
            continue;
        };
        let (pairs, half) = rest.as_chunks::<2>();
        if !half.is_empty() {
            let reason = "is UTF-16 that was cut off: copy it again, or save it as UTF-8";
            return Err(Error::invalid(name, reason));
        }
        let units: Vec<u16> = pairs
            .iter()
            .map(|pair| {
                if mark == UTF16_MARKS[0] {
                    u16::from_le_bytes(*pair)
                } else {
                    u16::from_be_bytes(*pair)
                }
            })
            .collect();
        return String::from_utf16(&units).map_err(|_| {
            let reason = "is not UTF-16, which its first two bytes say: save it as UTF-8";
            Error::invalid(name, reason)
        });
    }
    String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = good.split(|byte| *byte == b'\n').count();
        let reason = "has characters that are not UTF-8: save it in this encoding";
        Error::invalid(format!("{name}:{line}"), reason)
    })
}

/// The documents of a text, without empty ones. Each may begin with a byte-order mark, as joined files have them.
///
/// Errors: Invalid – not YAML.
pub fn documents(name: &str, text: &str) -> Result<Vec<ConfigNode>, Error> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let text = text.replace("\n\u{feff}", "\n");
    let documents = documents_from_yaml(&text).map_err(|error| {
        let remedy = if error.reason.starts_with("key \"apiVersion\"") {
            ": separate documents by a line with ---"
        } else if error.reason.contains("tab") {
            ": indent with blanks"
        } else {
            ""
        };
        Error::invalid(format!("{name}:{}", error.at), error.reason + remedy)
    })?;
    let documents = documents.into_iter();
    Ok(documents.filter(|document| !document.is_null()).collect())
}

/// The file that a document is. The installer reads the kind of no file, so that copied kinds are wrong: the members
/// decide, then kind and version.
pub(crate) fn role(document: &ConfigNode) -> DocumentRole {
    let text = |name: &str| document.get(name).and_then(ConfigNode::as_text);
    let (version, kind) = (
        text("apiVersion").unwrap_or_default(),
        text("kind").unwrap_or_default(),
    );
    let foreign = FOREIGN_KINDS.iter().find(|(known, _)| *known == kind);
    let is_named = |name: &str| kind.eq_ignore_ascii_case(name);
    let install = count_of(document, schema::INSTALL_CONFIG, schema::AGENT_CONFIG);
    let agent = count_of(document, schema::AGENT_CONFIG, schema::INSTALL_CONFIG);
    let is_of_group =
        version.contains('/') && !is_named("AgentConfig") && !is_named("InstallConfig");
    match (foreign, install.cmp(&agent)) {
        (Some((_, remedy)), _) => DocumentRole::Foreign(remedy),
        (None, _) if is_of_group => DocumentRole::Foreign(MANIFEST),
        (None, std::cmp::Ordering::Greater) => DocumentRole::Install,
        (None, std::cmp::Ordering::Less) => DocumentRole::Agent,
        (None, std::cmp::Ordering::Equal) if is_named("AgentConfig") => DocumentRole::Agent,
        (None, std::cmp::Ordering::Equal) if is_named("InstallConfig") => DocumentRole::Install,
        (None, std::cmp::Ordering::Equal) if !kind.is_empty() => DocumentRole::Foreign(MANIFEST),
        (None, std::cmp::Ordering::Equal) if AGENT_VERSIONS.contains(&version) => {
            DocumentRole::Agent
        }
        (None, std::cmp::Ordering::Equal) => of_shape(document),
    }
}

fn of_shape(document: &ConfigNode) -> DocumentRole {
    let has = |name: &str| document.get(name).is_some();
    if has("interfaces") || has("routes") || has("dns-resolver") {
        DocumentRole::Foreign(NETWORK)
    } else if has("auths") {
        DocumentRole::Foreign(CREDENTIALS)
    } else if has("apiVersion") || has("metadata") {
        DocumentRole::Install
    } else {
        DocumentRole::Foreign(NOTHING)
    }
}

/// Number of the document's members that one table has and the other has not.
fn count_of(document: &ConfigNode, table: &[Member], other: &[Member]) -> usize {
    let is_in = |table: &[Member], name: &str| {
        let mut rows = table.iter();
        rows.any(|row| row.name.eq_ignore_ascii_case(name))
    };
    let members = document.members().iter();
    members
        .filter(|member| is_in(table, &member.name) && !is_in(other, &member.name))
        .count()
}
