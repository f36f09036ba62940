//! The two files, read from YAML documents.

use located_yaml::Position;
use located_yaml::v1_2::{ConfigNode, NodeValue};
use model::Error;
use model::cluster::PlatformType;
use model::expected_hosts::DiskHints;
use model::host::HostRole;
use serde_json::Value;

use crate::declaration::Declaration;
use crate::documents::{self, AGENT, DocumentRole, INSTALL, documents};
use crate::hosts::{self, HostSource, machines_with_bmcs};
use crate::members::FileMembers;
use crate::problems::{ReadPurpose, SiteProblems};
use crate::{agent_file, install_file, installer_rules, overrides, schema};

/// Characters of a document's kind that a refusal repeats.
const SHOWN_KIND: usize = 60;
/// Members of the provisioning network, which only machines with BMCs use.
const PROVISIONING: [&str; 7] = [
    "provisioningNetwork",
    "provisioningNetworkCIDR",
    "provisioningNetworkInterface",
    "provisioningDHCPRange",
    "clusterProvisioningIP",
    "bootstrapProvisioningIP",
    "provisioningHostIP",
];

/// A text with documents of the files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileText {
    /// Its name in refusals.
    pub name: String,
    /// Its content.
    pub text: String,
}

/// Reads both files from the documents of some texts, in any order; an agent-config alone is not enough.
///
/// Errors: Invalid – all refusals, each with line and column: not YAML, a file that is missing or present twice, a
/// member that is unknown, refused or malformed, files that disagree.
pub fn parse(texts: &[FileText]) -> Result<Declaration, Error> {
    let (mut all, mut broken) = (Vec::new(), Vec::new());
    for FileText { name, text } in texts {
        match documents(name, text) {
            Ok(documents) => all.extend(documents),
            Err(error) => broken.push(error.to_string()),
        }
    }
    if let Some(first) = broken.first() {
        let (field, reason) = first.split_once(": ").unwrap_or(("body", first));
        let others = broken[1..].iter().map(|text| format!("\n{text}"));
        return Err(Error::invalid(
            field,
            reason.to_owned() + &others.collect::<String>(),
        ));
    }
    read_documents(&all, ReadPurpose::Apply)
}

/// Reads both files from their documents.
///
/// Errors: as [`parse`].
pub(crate) fn read_documents(
    documents: &[ConfigNode],
    purpose: ReadPurpose,
) -> Result<Declaration, Error> {
    let mut problems = SiteProblems::new(purpose);
    let (mut install, mut agent) = (None, None);
    for document in documents {
        let (slot, file) = match documents::role(document) {
            _ if !matches!(document.value, NodeValue::Object(_)) => {
                let reason = format!(
                    "is {}: a document is an object with members",
                    document.type_name()
                );
                problems.refuse(INSTALL, document.at, "", reason);
                continue;
            }
            DocumentRole::Install => (&mut install, INSTALL),
            DocumentRole::Agent => (&mut agent, AGENT),
            DocumentRole::Foreign(remedy) => {
                let kind = document.get("kind").and_then(ConfigNode::as_text);
                let shown: String = kind.unwrap_or_default().chars().take(SHOWN_KIND).collect();
                let subject = if shown.is_empty() {
                    "the document"
                } else {
                    "a document of kind "
                };
                let reason = format!("{subject}{shown} {remedy}");
                problems.refuse(INSTALL, document.at, "", reason);
                continue;
            }
        };
        if slot.replace(document).is_some() {
            let reason =
                "is present twice: send one install-config and one document of kind AgentConfig";
            problems.refuse(file, document.at, "", reason);
        }
    }
    let Some(install) = install else {
        let reason = "is missing: send it as a document beside agent-config.yaml";
        problems.refuse(INSTALL, Position::START, "", reason);
        return Err(problems
            .finish()
            .err()
            .unwrap_or_else(|| Error::invalid(INSTALL, reason)));
    };
    let install = FileMembers::read(INSTALL, install, schema::INSTALL_CONFIG, &mut problems);
    let agent =
        agent.map(|agent| FileMembers::read(AGENT, agent, schema::AGENT_CONFIG, &mut problems));
    let mut declaration = install_file::read(&install, &mut problems);
    declaration.places.add(INSTALL, &install.root);
    if let Some(agent) = &agent {
        agent_file::read(agent, &mut problems, &mut declaration);
        declaration.places.add(AGENT, &agent.root);
    }
    add_platform_hosts(&install, agent.as_ref(), &mut declaration, &mut problems);
    installer_rules::check(&install, &declaration, &mut problems);
    add_installation_disk(&mut declaration, &mut problems);
    if problems.refuses_disagreements() {
        check_counts(&install, agent.as_ref(), &declaration, &mut problems);
    }
    declaration.notes = problems.finish()?;
    Ok(declaration)
}

/// Hosts of the install-config: those of an agent-config replace them, except for their BMCs.
fn add_platform_hosts(
    install: &FileMembers,
    agent: Option<&FileMembers>,
    declaration: &mut Declaration,
    problems: &mut SiteProblems,
) {
    let of_platform = hosts::read(install, HostSource::InstallConfig, problems);
    let mut machines = machines_with_bmcs(install, HostSource::InstallConfig, &of_platform);
    match &declaration.hosts {
        Some(hosts) if !hosts.is_empty() => {
            if !of_platform.is_empty() {
                let text = "has no effect beside the hosts of agent-config.yaml, but for BMCs";
                problems.note(INSTALL, HostSource::InstallConfig.list(), text);
            }
            let of_agent =
                agent.and_then(|agent| machines_with_bmcs(agent, HostSource::AgentConfig, hosts));
            machines = machines.or(of_agent);
        }
        _ if !of_platform.is_empty() => declaration.hosts = Some(of_platform),
        _ => {}
    }
    let platform = declaration.platform.as_ref();
    let is_other = platform.is_some_and(|platform| platform.r#type != PlatformType::Baremetal);
    if is_other && machines.take().is_some() {
        problems.note(
            AGENT,
            "hosts[].bmc",
            "has an effect on platform baremetal only",
        );
    }
    let overrides = &mut declaration.overrides;
    if let Some(machines) = machines {
        overrides::set(overrides, &["platform", "baremetal", "hosts"], machines);
        return;
    }
    for name in PROVISIONING {
        let removed = overrides::remove(overrides, &["platform", "baremetal", name]);
        let is_default = |value: &Value| name == "provisioningNetwork" && value == "Disabled";
        if removed.is_some_and(|value| !is_default(&value)) {
            let text = "has no effect without hosts that have BMCs";
            problems.note(INSTALL, &format!("platform.baremetal.{name}"), text);
        }
    }
}

/// The disk of a single node is a property of its host here.
fn add_installation_disk(declaration: &mut Declaration, problems: &mut SiteProblems) {
    let Some(disk) = declaration.installation_disk.take() else {
        return;
    };
    if let Some([host]) = declaration.hosts.as_deref_mut() {
        let hints = DiskHints {
            device_name: disk,
            ..DiskHints::default()
        };
        host.root_device_hints.get_or_insert_with(|| hints.into());
        return;
    }
    let text = "has no effect without a host in agent-config.yaml: choose the disk on the host";
    problems.note(INSTALL, "bootstrapInPlace.installationDisk", text);
}

/// Refuses more hosts of a role than the pool has replicas, as the installer does.
fn check_counts(
    install: &FileMembers,
    agent: Option<&FileMembers>,
    declaration: &Declaration,
    problems: &mut SiteProblems,
) {
    let hosts = declaration.hosts.as_deref().unwrap_or_default();
    let is_of_agent = agent.is_some_and(|agent| agent.count("hosts") > 0);
    for (role, replicas, pool) in [
        (
            HostRole::Master,
            declaration.control_plane,
            "controlPlane.replicas",
        ),
        (
            HostRole::Arbiter,
            // Without the pool the cluster has none.
            declaration
                .arbiters
                .or(install.node("controlPlane").map(|_| 0)),
            "arbiter.replicas",
        ),
        (HostRole::Worker, declaration.workers, "compute[0].replicas"),
    ] {
        let of_role = hosts.iter().filter(|host| host.role == Some(role)).count();
        let count = i64::try_from(of_role).unwrap_or(i64::MAX);
        if let Some(replicas) = replicas.filter(|replicas| count > *replicas) {
            let file = if is_of_agent { AGENT } else { INSTALL };
            let reason = format!(
                "is {replicas}, and {file} has {count} hosts of role {role}: correct the number, or the roles"
            );
            install.refuse(problems, pool, reason);
        }
    }
}
