//! Reads an inventory, and applies its defaults.

use std::net::{IpAddr, Ipv6Addr};

use located_yaml::Position;
use located_yaml::v1_1::{Located, Value};
use secrecy::SecretString;

use super::hosts::{Inventory, InventoryBmc, InventoryHost, PasswordSource};
use super::places::HostPlaces;
use super::schema::INVENTORY;
use crate::check::finding::FindingList;
use crate::check::shape::{self, ShapeMode};
use crate::check::{CheckReport, RecordCounts};
use crate::{
    ApiGroups, BmcFamily, BmcScheme, BrokenDocument, RecordFile, RecordNode, RootDeviceHints,
};

/// Largest inventory. Units: bytes.
pub const MAX_INVENTORY: usize = 1 << 20;
/// Most hosts of an inventory.
pub const MAX_HOSTS: usize = 2000;
const DEFAULT_ROLE: &str = "worker";
const DEFAULT_SCHEME: &str = "redfish-virtualmedia";
const DEFAULT_SYSTEM: &str = "1";
const DEFAULT_BOOT_MODE: &str = "UEFI";

/// Reads an inventory.
///
/// Errors: its mistakes; no value is among them that could be a password.
pub fn read(name: &str, content: &[u8], groups: &ApiGroups) -> Result<Inventory, CheckReport> {
    let file = if content.len() > MAX_INVENTORY {
        let mut file = RecordFile::read(name, b"");
        file.broken.push(BrokenDocument {
            place: Position::START,
            reason: format!("the inventory has more than {MAX_INVENTORY} bytes; split it"),
        });
        file
    } else {
        one_document(RecordFile::read(name, content))
    };
    let files = [file];
    let mut findings = FindingList::new(&files);
    findings.begin("inventory");
    for broken in &files[0].broken {
        findings.broken(&files[0], broken);
    }
    let inventory = files[0].documents.first().map(|root| {
        let node = RecordNode { file: name, root };
        let mode = ShapeMode {
            hides_values: true,
            is_strict: true,
        };
        shape::walk(&node, &INVENTORY, mode, &mut findings);
        inventory(&node, groups, &mut findings)
    });
    let report = findings.into_report(RecordCounts::default());
    match inventory {
        Some(mut inventory) if report.errors() == 0 => {
            inventory.warnings = report.findings;
            Ok(inventory)
        }
        _ => Err(report),
    }
}

/// The file with one document, or with a reason why it has not.
fn one_document(mut file: RecordFile) -> RecordFile {
    let place = file.documents.get(1).map(|second| second.place);
    let reason = match (file.documents.len(), file.broken.is_empty()) {
        (1, _) | (_, false) => return file,
        (0, _) => "the inventory is empty; write hosts",
        _ => "another document begins here, and an inventory is one",
    };
    file.broken.push(BrokenDocument {
        place: place.unwrap_or(Position::START),
        reason: reason.to_owned(),
    });
    file
}

fn inventory(
    node: &RecordNode<'_>,
    groups: &ApiGroups,
    findings: &mut FindingList<'_>,
) -> Inventory {
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let cluster = some(node.text(&["cluster"]));
    let count = node.list(&["hosts"]).len();
    if count > MAX_HOSTS {
        let reason = format!("has {count} hosts, and at most {MAX_HOSTS} are read");
        findings.error(node, &["hosts"], reason, "split the inventory");
    }
    if node.get(&["hosts"]).is_some() && count == 0 {
        findings.error(node, &["hosts"], "is empty", "add a host");
    }
    one_password(node, &["defaults", "bmc"], findings);
    let hosts = (0..count.min(MAX_HOSTS)).map(|index| {
        let source = HostSource {
            node,
            index: index.to_string(),
        };
        source.host(cluster.as_deref(), findings)
    });
    Inventory {
        hosts: hosts.collect(),
        file: node.file.to_owned(),
        namespace: some(node.text(&["namespace"])).unwrap_or_else(|| groups.namespace.clone()),
        cluster,
        warnings: Vec::new(),
    }
}

/// Reports a password that is given twice.
fn one_password(node: &RecordNode<'_>, bmc: &[&str], findings: &mut FindingList<'_>) {
    let at = |member: &'static str| [bmc, &[member]].concat();
    let are_given = ["password", "passwordFile"].map(|member| node.get(&at(member)).is_some());
    if are_given == [true, true] {
        let reason = "is given beside password";
        findings.error(node, &at("passwordFile"), reason, "remove one of them");
    }
}

/// A host of the inventory, with the defaults behind it.
struct HostSource<'a> {
    node: &'a RecordNode<'a>,
    index: String,
}

impl<'a> HostSource<'a> {
    fn path<'b>(&'b self, member: &[&'b str]) -> Vec<&'b str> {
        let host = ["hosts", &self.index];
        host.iter().chain(member).copied().collect()
    }

    /// The member of the host, or of the defaults.
    fn get(&self, member: &[&str]) -> Option<&'a Located> {
        let default: Vec<&str> = [&["defaults"], member].concat();
        let own = self.node.get(&self.path(member));
        own.or_else(|| self.node.get(&default))
    }

    fn text(&self, member: &[&str]) -> Option<&'a str> {
        match &self.get(member)?.value {
            Value::Text(text) if !text.is_empty() => Some(text),
            _ => None,
        }
    }

    fn flag(&self, member: &[&str]) -> Option<bool> {
        match self.get(member)?.value {
            Value::Bool(flag) => Some(flag),
            _ => None,
        }
    }

    fn host(&self, cluster: Option<&str>, findings: &mut FindingList<'_>) -> InventoryHost {
        let name = self.text(&["name"]).unwrap_or_default().to_owned();
        let role = self.text(&["role"]).unwrap_or(DEFAULT_ROLE).to_owned();
        let machine = self.machine(&name, &role, cluster, findings);
        InventoryHost {
            mac: self.text(&["mac"]).map(str::to_owned),
            bmc: self.bmc(findings),
            boot_mode: self
                .text(&["bootMode"])
                .unwrap_or(DEFAULT_BOOT_MODE)
                .to_owned(),
            online: self.flag(&["online"]).unwrap_or(true),
            is_externally_provisioned: self
                .flag(&["externallyProvisioned"])
                .unwrap_or(machine.is_some()),
            addresses: self.addresses(findings),
            root_device: self.root_device(),
            places: self.places(),
            name,
            role,
            machine,
        }
    }

    /// Control nodes of a known cluster have a machine, unless that is declined.
    fn machine(
        &self,
        name: &str,
        role: &str,
        cluster: Option<&str>,
        findings: &mut FindingList<'_>,
    ) -> Option<String> {
        if let Some(name) = self.text(&["machine"]) {
            if cluster.is_none() {
                self.without_cluster(findings);
            }
            return Some(name.to_owned());
        }
        match (self.flag(&["machine"]), cluster) {
            (Some(false), _) | (None, None) => None,
            (Some(true), Some(cluster)) => Some(format!("{cluster}-{name}")),
            (None, Some(cluster)) => (role == "master").then(|| format!("{cluster}-{name}")),
            (Some(true), None) => {
                self.without_cluster(findings);
                None
            }
        }
    }

    fn without_cluster(&self, findings: &mut FindingList<'_>) {
        let reason = "is wanted, and the id of the cluster is missing";
        let remedy = "add cluster: (status.infrastructureName of Infrastructure)";
        findings.error(self.node, &self.path(&["machine"]), reason, remedy);
    }

    fn bmc(&self, findings: &mut FindingList<'_>) -> Option<InventoryBmc> {
        let address = self
            .text(&["bmc", "address"])
            .or_else(|| self.text(&["bmc"]))?;
        one_password(self.node, &self.path(&["bmc"]), findings);
        let username = self.text(&["bmc", "username"]);
        if username.is_none() {
            let path = self.path(&["bmc", "username"]);
            findings.error(
                self.node,
                &path,
                "is missing",
                "add it, or defaults.bmc.username",
            );
        }
        Some(InventoryBmc {
            address: self.address(address),
            username: username.unwrap_or_default().to_owned(),
            password: self.password(findings)?,
            is_unverified: self.flag(&["bmc", "disableCertificateVerification"]) == Some(true),
        })
    }

    /// The password of the host before that of the defaults, and the file before the text.
    fn password(&self, findings: &mut FindingList<'_>) -> Option<PasswordSource> {
        for base in [&self.path(&["bmc"])[..], &["defaults", "bmc"]] {
            let at = |member: &'static str| [base, &[member]].concat();
            let [file, inline] = ["passwordFile", "password"].map(|it| self.node.text(&at(it)));
            if !file.is_empty() {
                return Some(PasswordSource::File(file.to_owned()));
            }
            if !inline.is_empty() {
                return Some(PasswordSource::Inline(SecretString::from(inline)));
            }
        }
        let path = self.path(&["bmc", "passwordFile"]);
        let remedy = "add it or password, to the host or to defaults.bmc";
        findings.error(self.node, &path, "is missing", remedy);
        None
    }

    /// The whole address of `host[:port]`, by scheme and system.
    fn address(&self, text: &str) -> String {
        if text.contains("://") {
            return text.to_owned();
        }
        let host = match text.parse::<Ipv6Addr>() {
            Ok(ip) => format!("[{ip}]"),
            Err(_) => text.to_owned(),
        };
        let scheme = self.text(&["bmc", "scheme"]).unwrap_or(DEFAULT_SCHEME);
        let name = scheme.split('+').next().unwrap_or_default();
        let known = BmcScheme::find(&name.to_ascii_lowercase());
        if known.is_some_and(|known| known.family == BmcFamily::Ipmi) {
            return format!("{scheme}://{host}");
        }
        let usual = known.and_then(|known| known.system_id);
        let system = self.text(&["bmc", "system"]);
        let system = system.or(usual).unwrap_or(DEFAULT_SYSTEM);
        format!("{scheme}://{host}/redfish/v1/Systems/{system}")
    }

    fn addresses(&self, findings: &mut FindingList<'_>) -> Vec<IpAddr> {
        let count = self.node.list(&self.path(&["addresses"])).len();
        let mut addresses = Vec::new();
        for index in (0..count).map(|index| index.to_string()) {
            let path = self.path(&["addresses", &index]);
            match self.node.text(&path).parse() {
                // Other types are findings of the schema.
                _ if self.node.text(&path).is_empty() => {}
                Ok(address) => addresses.push(address),
                Err(_) => {
                    let remedy = "write the address without prefix, as 10.0.0.20";
                    findings.error(self.node, &path, "is no IP address", remedy);
                }
            }
        }
        addresses
    }

    fn root_device(&self) -> Option<RootDeviceHints> {
        let value = self.get(&["rootDevice"])?;
        if let Value::Text(device) = &value.value {
            return Some(RootDeviceHints {
                device_name: Some(device.clone()),
                ..RootDeviceHints::default()
            });
        }
        let node = RecordNode {
            file: self.node.file,
            root: value,
        };
        // Members of other types are findings of the schema.
        node.decode().ok()
    }

    fn places(&self) -> HostPlaces {
        let host = self.node.lookup(&["hosts", &self.index]).place;
        let of = |member: &[&str]| self.get(member).map_or(host, |it| it.place);
        let members: [(&'static str, &[&str]); 9] = [
            ("metadata.name", &["name"]),
            ("spec.bootMACAddress", &["mac"]),
            ("spec.bootMode", &["bootMode"]),
            ("spec.online", &["online"]),
            ("spec.externallyProvisioned", &["externallyProvisioned"]),
            ("spec.bmc", &["bmc"]),
            ("spec.rootDeviceHints", &["rootDevice"]),
            ("spec.consumerRef", &["machine"]),
            ("data.username", &["bmc", "username"]),
        ];
        let mut members: Vec<_> = members.map(|(path, member)| (path, of(member))).into();
        if self.get(&["bmc", "address"]).is_some() {
            members.push(("spec.bmc.address", of(&["bmc", "address"])));
        }
        for password in ["password", "passwordFile"] {
            if self.get(&["bmc", password]).is_some() {
                members.push(("data.password", of(&["bmc", password])));
            }
        }
        HostPlaces { host, members }
    }
}
