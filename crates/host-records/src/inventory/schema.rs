//! Members of an inventory.

use crate::check::schema::FieldKind::{FlagOrName, List, Name, Object, Text, TextOr};
use crate::check::schema::{
    ObjectSchema, ROOT_DEVICE, RecordField, choice, field, flag, list, object, of, text,
};
use crate::{LABEL, SUBDOMAIN};

/// The whole inventory.
pub(super) static INVENTORY: ObjectSchema = of(&[
    field("cluster", Name(LABEL)),
    field("namespace", Name(LABEL)),
    object("defaults", &DEFAULTS),
    field("hosts", List(&Object(&HOST))).required(),
]);

static DEFAULTS: ObjectSchema = of(&[
    ROLE,
    BOOT_MODE,
    flag("online"),
    flag("externallyProvisioned"),
    flag("machine"),
    object("bmc", &BMC),
    ROOT,
]);

static HOST: ObjectSchema = ObjectSchema {
    elsewhere: &[
        ("bootMACAddress", "mac"),
        ("rootDeviceHints", "rootDevice"),
        ("username", "bmc.username"),
        ("password", "bmc.password"),
        ("ip", "addresses"),
    ],
    ..of(&[
        field("name", Name(SUBDOMAIN)).required(),
        ROLE,
        text("mac"),
        field("bmc", TextOr(&BMC)),
        BOOT_MODE,
        flag("online"),
        flag("externallyProvisioned"),
        field("machine", FlagOrName(SUBDOMAIN)),
        list("addresses", &Text),
        ROOT,
    ])
};

const ROLE: RecordField = choice("role", &["master", "worker", "infra"]);
const BOOT_MODE: RecordField = choice("bootMode", &["UEFI", "UEFISecureBoot", "legacy"]);
const ROOT: RecordField = field("rootDevice", TextOr(&ROOT_DEVICE));

static BMC: ObjectSchema = of(&[
    text("address"),
    text("scheme"),
    text("system"),
    text("username"),
    text("password"),
    text("passwordFile"),
    flag("disableCertificateVerification"),
]);
