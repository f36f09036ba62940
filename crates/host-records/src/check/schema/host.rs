//! BareMetalHost.

use super::FieldKind::{Name, Object};
use super::FieldSupport::{Ignored, Refused};
use super::{
    CUSTOM_DEPLOY, FieldKind, METADATA, ObjectSchema, SECRET_REFERENCE, any, choice, field, flag,
    list, object, of, text, whole,
};
use crate::{LABEL, SUBDOMAIN};

pub(crate) static HOST: ObjectSchema = ObjectSchema {
    elsewhere: &[
        ("name", "metadata.name"),
        ("namespace", "metadata.namespace"),
    ],
    ..of(&[
        text("apiVersion").required(),
        text("kind").required(),
        object("metadata", &METADATA).required(),
        object("spec", &SPEC).required(),
        any("status"),
    ])
};

static SPEC: ObjectSchema = ObjectSchema {
    elsewhere: &[
        ("address", "spec.bmc.address"),
        ("bmcAddress", "spec.bmc.address"),
        ("credentialsName", "spec.bmc.credentialsName"),
        ("bmcCredentialsName", "spec.bmc.credentialsName"),
        (
            "disableCertificateVerification",
            "spec.bmc.disableCertificateVerification",
        ),
        ("deviceName", "spec.rootDeviceHints.deviceName"),
        ("state", "status.provisioning.state"),
    ],
    ..of(&[
        text("architecture"),
        choice("automatedCleaningMode", &["metadata", "disabled"]),
        object("bmc", &BMC),
        text("bootMACAddress"),
        choice("bootMode", &["UEFI", "UEFISecureBoot", "legacy"]),
        object("consumerRef", &OBJECT_REFERENCE),
        object("customDeploy", &CUSTOM_DEPLOY),
        text("description"),
        flag("disablePowerOff"),
        flag("externallyProvisioned"),
        any("firmware").support(Refused("use a HostFirmwareSettings record")),
        text("hardwareProfile").support(Ignored(
            "use rootDeviceHints and architecture instead, and remove it",
        )),
        object("image", &IMAGE),
        choice("inspectionMode", &["disabled", "agent", "fast"]),
        object("metaData", &SECRET_REFERENCE),
        object("networkData", &SECRET_REFERENCE),
        list("networkInterfaces", &Object(&NETWORK_INTERFACE)),
        flag("online").required(),
        field("preprovisioningNetworkDataName", Name(SUBDOMAIN)),
        object("raid", &RAID),
        object("rootDeviceHints", &ROOT_DEVICE),
        any("taints").support(Ignored("set the taints of the Machine, and remove it")),
        object("userData", &SECRET_REFERENCE),
    ])
};

static BMC: ObjectSchema = ObjectSchema {
    elsewhere: &[
        ("username", "the secret that credentialsName names"),
        ("password", "the secret that credentialsName names"),
        ("bootMACAddress", "spec.bootMACAddress"),
    ],
    ..of(&[
        text("address").required(),
        field("credentialsName", Name(SUBDOMAIN)).required(),
        flag("disableCertificateVerification"),
    ])
};

static OBJECT_REFERENCE: ObjectSchema = of(&[
    text("apiVersion"),
    text("fieldPath"),
    text("kind"),
    field("name", Name(SUBDOMAIN)),
    field("namespace", Name(LABEL)),
    text("resourceVersion"),
    text("uid"),
]);

static IMAGE: ObjectSchema = of(&[
    text("checksum"),
    choice("checksumType", &["md5", "sha256", "sha512", "auto"]),
    choice("format", &["raw", "qcow2", "vdi", "vmdk", "live-iso"]),
    field("ociAuthSecretName", Name(SUBDOMAIN)),
    text("url").required(),
]);

pub(crate) static ROOT_DEVICE: ObjectSchema = of(&[
    text("deviceName"),
    text("hctl"),
    whole("minSizeGigabytes", 0),
    text("model"),
    flag("rotational"),
    text("serialNumber"),
    text("vendor"),
    text("wwn"),
    text("wwnVendorExtension"),
    text("wwnWithExtension"),
]);

static RAID: ObjectSchema = of(&[
    list("hardwareRAIDVolumes", &Object(&HARDWARE_VOLUME)),
    list("softwareRAIDVolumes", &Object(&SOFTWARE_VOLUME)),
]);

static HARDWARE_VOLUME: ObjectSchema = of(&[
    text("controller"),
    choice("level", &["0", "1", "2", "5", "6", "1+0", "5+0", "6+0"]).required(),
    text("name"),
    whole("numberOfPhysicalDisks", 1),
    list("physicalDisks", &FieldKind::Text),
    flag("rotational"),
    whole("sizeGibibytes", 0),
]);

static SOFTWARE_VOLUME: ObjectSchema = of(&[
    choice("level", &["0", "1", "1+0"]).required(),
    list("physicalDisks", &Object(&ROOT_DEVICE)),
    flag("rootVolume"),
    whole("sizeGibibytes", 0),
]);

static NETWORK_INTERFACE: ObjectSchema = of(&[
    any("hostNetworkAttachment"),
    text("macAddress"),
    text("name"),
    object("switchPort", &SWITCH_PORT),
]);

static SWITCH_PORT: ObjectSchema = of(&[text("portID").required(), text("switchID").required()]);
