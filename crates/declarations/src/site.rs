//! Site files: the inventory of one installation, and the mistakes that its data alone prove.
//!
//! A site file has the documents of a [`Declaration`], install-config.yaml and agent-config.yaml, and optionally
//! records of the machines, of kind HardwareData and BareMetalHost. It has no grammar of its own. Mistakes that need the
//! answers of machines are found by the validations of a rehearsed installation, not here.
//!
//! Source: openshift/installer, pkg/types; metal3-io/baremetal-operator, apis/metal3.io/v1alpha1.

mod mistakes;
mod network;
mod records;
#[cfg(test)]
mod tests;

use std::net::IpAddr;

use ipnet::IpNet;
use located_yaml::v1_2::ConfigNode;
use model::Error;
use model::expected_hosts::DiskHints;
use model::host::HostRole;
use rules::host::expected_hosts::fits;

use crate::files::read_documents;
use crate::problems::ReadPurpose;
use crate::{Declaration, DeclaredInterface, documents};

pub use mistakes::{KINDS, MistakeKind, SiteFinding, check, is_consequence};
pub use network::{AutomaticFamilies, HostNetwork, NetworkInterface, NetworkRoute};
pub use records::{
    HostHardware, HostRecord, RecordedCpu, RecordedDisk, RecordedNic, RecordedVendor,
};

/// The inventory of one installation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Site {
    /// The wanted cluster and its hosts.
    pub declaration: Declaration,
    /// Hosts of agent-config.yaml, each with its records.
    pub hosts: Vec<SiteHost>,
    /// Names of records that belong to no host of agent-config.yaml.
    pub strangers: Vec<String>,
}

/// A host of a site.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SiteHost {
    /// Its name; hosts without one are named by their place in the file.
    pub name: String,
    /// Declared role.
    pub role: Option<HostRole>,
    /// Declared interfaces, sorted by MAC address.
    pub interfaces: Vec<DeclaredInterface>,
    /// Properties of the installation disk.
    pub disk_hints: Option<DiskHints>,
    /// Static network; none with DHCP.
    pub network: Option<HostNetwork>,
    /// Hardware and board, as far as there are records.
    pub record: HostRecord,
}

impl SiteHost {
    /// Static addresses with their prefixes, those of the first interface first.
    pub fn addresses(&self) -> impl Iterator<Item = IpNet> {
        let network = self.network.iter();
        network.flat_map(HostNetwork::addresses)
    }

    /// Position of the recorded disk that has all properties of the hints.
    pub fn installation_disk(&self) -> Option<usize> {
        let hints = self.disk_hints.as_ref()?;
        let mut disks = self.record.hardware.as_ref()?.storage.iter();
        disks.position(|disk| fits(hints, &disk.inventory()))
    }
}

impl Site {
    /// Declared virtual addresses, with the member that names them; malformed ones are left out.
    pub fn vips(&self) -> Vec<(&'static str, IpAddr)> {
        let lists = [
            ("apiVIPs", &self.declaration.api_vips),
            ("ingressVIPs", &self.declaration.ingress_vips),
        ];
        let mut found = Vec::new();
        for (member, list) in lists {
            let texts = list.iter().flatten();
            found.extend(texts.filter_map(|text| Some((member, text.parse().ok()?))));
        }
        found
    }

    /// Declared machine networks; malformed ones are left out.
    pub fn machine_networks(&self) -> Vec<IpNet> {
        let texts = self.declaration.machine_networks.iter().flatten();
        texts.filter_map(|text| text.parse().ok()).collect()
    }
}

/// Reads a site file.
///
/// Errors: Invalid – not YAML, a document of another kind, or as [`crate::parse`].
pub fn parse(text: &str) -> Result<Site, Error> {
    let documents = documents("site", text)?;
    let (mut declared, mut records) = (Vec::new(), Vec::new());
    for document in documents {
        match document.get("kind").and_then(ConfigNode::as_text) {
            Some("HardwareData" | "BareMetalHost") => {
                records.push(records::read(&document.to_json())?);
            }
            // Credentials of boards: `BareMetalHost` names them, and nothing here needs them.
            Some("Secret") => {}
            _ => declared.push(document),
        }
    }
    Ok(assemble(
        read_documents(&declared, ReadPurpose::Rehearse)?,
        records,
    ))
}

/// Joins the declared hosts with their records.
fn assemble(declaration: Declaration, records: Vec<HostRecord>) -> Site {
    let declared = declaration.hosts.iter().flatten().enumerate();
    let mut hosts: Vec<SiteHost> = declared
        .map(|(at, host)| SiteHost {
            name: if host.hostname.is_empty() {
                format!("hosts[{at}]")
            } else {
                host.hostname.clone()
            },
            role: host.role,
            interfaces: host.interfaces.clone(),
            disk_hints: host.root_device_hints.clone().map(Into::into),
            network: host.network_config.as_ref().map(HostNetwork::read),
            record: HostRecord::default(),
        })
        .collect();
    let mut strangers = Vec::new();
    for record in records {
        match hosts
            .iter_mut()
            .find(|host| record.is_of(&host.name, &host.interfaces))
        {
            Some(host) => host.record.merge(record),
            None => strangers.push(record.name),
        }
    }
    Site {
        declaration,
        hosts,
        strangers,
    }
}
