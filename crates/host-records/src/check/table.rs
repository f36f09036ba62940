//! The table of checks.

use super::finding::FindingList;
use super::scope::{CheckScope, CheckedKind};
use super::{
    annotations, bmc, boot_mac, consumer, devices, identity, image, kinds, machine, power, secret,
    shape,
};
use crate::RecordNode;

/// A check.
pub struct RecordCheck {
    /// Id in JSON reports.
    pub id: &'static str,
    /// Records that it looks at.
    pub kind: CheckedKind,
    /// The mistakes that it finds.
    pub doc: &'static str,
    pub(super) run: CheckFunction,
}

type CheckFunction = for<'a> fn(&RecordNode<'a>, &CheckScope<'a>, &mut FindingList<'_>);

const fn of(
    kind: CheckedKind,
    id: &'static str,
    doc: &'static str,
    run: CheckFunction,
) -> RecordCheck {
    RecordCheck { id, kind, doc, run }
}

use CheckedKind::{Any, Host, Machine, Secret};

/// Mistakes of syntax, found while a file is read.
pub(super) static SYNTAX: RecordCheck = of(
    Any,
    "syntax",
    "the file is YAML or JSON in UTF-8, within its limits",
    |_, _, _| {},
);

/// All checks, in the order in which they run.
pub static CHECKS: &[RecordCheck] = &[
    of(
        Any,
        "kind",
        "kind and apiVersion are known, and spelled right",
        kinds::check,
    ),
    of(
        Any,
        "fields",
        "fields have known names, one value each, and their types",
        shape::check,
    ),
    of(
        Any,
        "identity",
        "name and namespace are there, and no record is given twice",
        identity::check,
    ),
    of(
        Any,
        "metadata",
        "no field that only a cluster sets",
        identity::of_cluster,
    ),
    of(
        Host,
        "bmc-address",
        "the BMC has an address that a driver takes, and credentials",
        bmc::address,
    ),
    of(
        Host,
        "bmc-system",
        "the path of the address names a system that fits the scheme",
        bmc::system,
    ),
    of(
        Host,
        "bmc-transport",
        "passwords are encrypted, and certificates can be verified",
        bmc::transport,
    ),
    of(
        Host,
        "bmc-duplicate",
        "no two hosts have the same BMC",
        bmc::duplicate,
    ),
    of(
        Host,
        "credentials",
        "the credentials secret is in the namespace of the host",
        bmc::credentials,
    ),
    of(
        Host,
        "boot-mac",
        "the boot MAC address is one of a NIC, and of one host only",
        boot_mac::check,
    ),
    of(
        Host,
        "boot-mode",
        "the BMC can do the boot mode",
        power::boot_mode,
    ),
    of(
        Host,
        "inspection",
        "the BMC can do the inspection, and no annotation contradicts it",
        power::inspection,
    ),
    of(
        Host,
        "power",
        "the wanted power state is not contradicted",
        power::check,
    ),
    of(
        Host,
        "image",
        "the image has a URL and a fitting checksum",
        image::check,
    ),
    of(
        Host,
        "root-device",
        "the hints for the root device can match",
        devices::root_device,
    ),
    of(
        Host,
        "raid",
        "the RAID volumes are consistent",
        devices::raid,
    ),
    of(
        Host,
        "network-interfaces",
        "each network interface is selected once",
        devices::network_interfaces,
    ),
    of(
        Host,
        "annotations",
        "no annotation stops or reboots the host by mistake",
        annotations::check,
    ),
    of(
        Host,
        "references",
        "secrets of the host are in its namespace",
        consumer::references,
    ),
    of(
        Host,
        "consumer",
        "the consumer exists, and consumes one host",
        consumer::check,
    ),
    of(
        Secret,
        "secret-data",
        "values are base64, and credentials are usable",
        secret::data,
    ),
    of(
        Secret,
        "secret-use",
        "credentials have the type Opaque, and a host that uses them",
        secret::usage,
    ),
    of(
        Machine,
        "machine-labels",
        "labels name cluster and role, and the finalizer is there",
        machine::labels,
    ),
    of(
        Machine,
        "machine-host",
        "the host of the machine exists, and its consumer is this machine",
        machine::host,
    ),
    of(
        Machine,
        "machine-provider",
        "the provider's part can deploy a host",
        machine::provider,
    ),
];
