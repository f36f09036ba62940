//! Renders the records of an inventory.

use std::collections::BTreeMap;

use secrecy::SecretString;
use serde_json::{Map, Value};

use super::hosts::{Inventory, InventoryBmc, InventoryHost, PasswordSource};
use crate::check::{CheckReport, CheckSettings, FindingSeverity, RecordFinding, check};
use crate::{
    ApiGroups, BareMetalHost, BmcDetails, CredentialSecret, CustomDeploy, HostSpec, MacAddress,
    MachineProviderSpec, MachineRecord, MachineStatus, NodeAddress, ObjectMetadata,
    ObjectReference, ProviderImage, RecordFile, SecretReference, json_text, yaml_text,
};

/// Deployment of hosts by the platform itself.
const DEPLOY_METHOD: &str = "install_coreos";
const EXTERNAL: &str = "externally provisioned";

/// The records of all hosts, and findings that are no errors.
#[derive(Debug)]
pub struct Rendering {
    /// Hosts, in the order of the inventory.
    pub hosts: Vec<RenderedHost>,
    /// Warnings, with positions of the inventory.
    pub warnings: Vec<RecordFinding>,
}

/// The records of one host.
#[derive(Debug)]
pub struct RenderedHost {
    /// Name of the host.
    pub name: String,
    /// Secret, BareMetalHost and Machine, as far as the host has them.
    pub records: RecordFile,
}

impl RenderedHost {
    /// The records as YAML documents.
    pub fn to_yaml(&self) -> String {
        self.text(|document| yaml_text(document).unwrap_or_default())
    }

    /// The records as JSON objects, one after the other.
    pub fn to_json(&self) -> String {
        self.text(|document| json_text(document).map_or_else(|_| String::new(), |it| it + "\n"))
    }

    // Rendered records have no numbers that JSON lacks.
    fn text(&self, text: impl Fn(&located_yaml::v1_1::Located) -> String) -> String {
        self.records.documents.iter().map(text).collect()
    }
}

/// Renders and checks the records; `passwords` has the content of each password file.
///
/// Errors: the findings, with positions of the inventory; no password is among them.
pub fn render(
    inventory: &Inventory,
    passwords: &BTreeMap<String, SecretString>,
    groups: &ApiGroups,
) -> Result<Rendering, CheckReport> {
    let renderer = Renderer {
        inventory,
        passwords,
        groups,
    };
    let mut hosts = Vec::new();
    for host in &inventory.hosts {
        let mut records = RecordFile::read(&inventory.file, b"");
        let values = renderer.records(host).into_iter();
        records.documents = values.map(|value| host.places.located(&value)).collect();
        hosts.push(RenderedHost {
            name: host.name.clone(),
            records,
        });
    }
    let settings = CheckSettings {
        groups: groups.clone(),
        has_secrets_elsewhere: false,
    };
    let files: Vec<_> = hosts.iter().map(|host| host.records.clone()).collect();
    let report = check(&files, &settings);
    if report.errors() > 0 {
        return Err(report);
    }
    let mut warnings = inventory.warnings.clone();
    warnings.extend(report.findings);
    warnings.retain(|finding| finding.severity == FindingSeverity::Warning);
    Ok(Rendering { hosts, warnings })
}

struct Renderer<'a> {
    inventory: &'a Inventory,
    passwords: &'a BTreeMap<String, SecretString>,
    groups: &'a ApiGroups,
}

impl Renderer<'_> {
    fn records(&self, host: &InventoryHost) -> Vec<Value> {
        let mut records = Vec::new();
        if let Some(bmc) = &host.bmc {
            records.push(self.secret(host, bmc).to_record());
        }
        // Records have text keys only, so that each has a JSON form.
        records.extend(serde_json::to_value(self.host(host)));
        let machine = host.machine.as_deref();
        records
            .extend(machine.and_then(|name| serde_json::to_value(self.machine(host, name)).ok()));
        records
    }

    fn secret(&self, host: &InventoryHost, bmc: &InventoryBmc) -> CredentialSecret {
        let password = match &bmc.password {
            PasswordSource::Inline(password) => password.clone(),
            // An unread file is an empty password, which is a finding.
            PasswordSource::File(path) => self.passwords.get(path).cloned().unwrap_or_default(),
        };
        CredentialSecret {
            name: secret_name(&host.name),
            namespace: self.inventory.namespace.clone(),
            username: bmc.username.clone(),
            password,
        }
    }

    fn host(&self, host: &InventoryHost) -> BareMetalHost {
        let bmc = host.bmc.as_ref().map(|bmc| BmcDetails {
            address: bmc.address.clone(),
            credentials_name: secret_name(&host.name),
            disable_certificate_verification: bmc.is_unverified,
            other: Map::new(),
        });
        let mac = host
            .mac
            .as_ref()
            .map(|text| match text.parse::<MacAddress>() {
                Ok(mac) => mac.to_string(),
                Err(_) => text.clone(),
            });
        let namespace = &self.inventory.namespace;
        let mut spec = HostSpec {
            automated_cleaning_mode: Some("metadata".to_owned()),
            bmc: bmc.unwrap_or_default(),
            boot_mac_address: mac,
            boot_mode: Some(host.boot_mode.clone()),
            externally_provisioned: host.is_externally_provisioned,
            online: host.online,
            root_device_hints: host.root_device.clone(),
            ..HostSpec::default()
        };
        if let Some(machine) = &host.machine {
            spec.consumer_ref = Some(ObjectReference {
                api_version: self.groups.machine.clone(),
                kind: ApiGroups::MACHINE.to_owned(),
                name: machine.clone(),
                namespace: namespace.clone(),
                other: Map::new(),
            });
            spec.custom_deploy = Some(deploy());
            spec.user_data = Some(SecretReference {
                name: user_data(&host.role),
                namespace: namespace.clone(),
            });
        }
        BareMetalHost::new(
            self.groups,
            ObjectMetadata::new(&host.name, namespace),
            spec,
        )
    }

    fn machine(&self, host: &InventoryHost, name: &str) -> MachineRecord {
        let (groups, namespace) = (self.groups, &self.inventory.namespace);
        let mut metadata = ObjectMetadata::new(name, namespace);
        let cluster = self.inventory.cluster.clone().unwrap_or_default();
        metadata.labels = BTreeMap::from([
            (groups.cluster_label(), cluster),
            (groups.role_label(), host.role.clone()),
            (groups.type_label(), host.role.clone()),
        ]);
        metadata.finalizers = vec![groups.machine_finalizer()];
        let own = format!("{namespace}/{}", host.name);
        metadata.annotations.insert(groups.host_annotation(), own);
        if host.is_externally_provisioned {
            let state = groups.instance_state();
            metadata.annotations.insert(state, EXTERNAL.to_owned());
        }
        let provider = MachineProviderSpec {
            api_version: groups.provider.clone(),
            custom_deploy: Some(deploy()),
            host_selector: Map::new(),
            image: ProviderImage::default(),
            kind: ApiGroups::PROVIDER.to_owned(),
            user_data: Some(SecretReference {
                name: user_data(&host.role),
                namespace: String::new(),
            }),
            other: Map::new(),
        };
        let mut machine = MachineRecord::new(groups, metadata, &provider);
        machine.status = (!host.addresses.is_empty()).then(|| status(host));
        machine
    }
}

fn status(host: &InventoryHost) -> MachineStatus {
    let address = |address: &std::net::IpAddr| NodeAddress {
        address: address.to_string(),
        kind: "InternalIP".to_owned(),
    };
    MachineStatus {
        addresses: host.addresses.iter().map(address).collect(),
        node_ref: Some(ObjectReference {
            kind: "Node".to_owned(),
            name: host.name.clone(),
            ..ObjectReference::default()
        }),
        ..MachineStatus::default()
    }
}

fn secret_name(host: &str) -> String {
    format!("{host}-bmc-secret")
}

/// The secret that the platform makes for each role.
fn user_data(role: &str) -> String {
    format!("{role}-user-data-managed")
}

fn deploy() -> CustomDeploy {
    CustomDeploy {
        method: DEPLOY_METHOD.to_owned(),
    }
}
