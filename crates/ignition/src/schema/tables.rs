//! The table. Rows are sorted by name within each object.

use super::ItemKey::{Member, None, Partition};
use super::ListMerging::{Append, ByKey, Headers, Shared};
use super::ValueKind::{Bool, Integer, Object, Objects, Text, Texts};
use super::{ItemKey, ListMerging, MemberSchema, ObjectSchema, ValueKind};
use crate::config::SpecVersion;
use crate::config::SpecVersion::{V3_0, V3_1, V3_2, V3_3, V3_4, V3_5};

const fn object(key: ItemKey, members: &'static [MemberSchema]) -> ObjectSchema {
    ObjectSchema { members, key }
}

const fn member(name: &'static str, since: SpecVersion, kind: ValueKind) -> MemberSchema {
    MemberSchema {
        name,
        since,
        kind,
        is_required: false,
        merging: ByKey,
    }
}

const fn required(name: &'static str, since: SpecVersion, kind: ValueKind) -> MemberSchema {
    MemberSchema {
        is_required: true,
        ..member(name, since, kind)
    }
}

const fn list(
    name: &'static str,
    since: SpecVersion,
    kind: ValueKind,
    merging: ListMerging,
) -> MemberSchema {
    MemberSchema {
        merging,
        ..member(name, since, kind)
    }
}

/// The whole configuration.
pub static CONFIG: ObjectSchema = object(
    None,
    &[
        required("ignition", V3_0, Object(&IGNITION)),
        member("kernelArguments", V3_3, Object(&KERNEL_ARGUMENTS)),
        member("passwd", V3_0, Object(&PASSWD)),
        member("storage", V3_0, Object(&STORAGE)),
        member("systemd", V3_0, Object(&SYSTEMD)),
    ],
);

/// `ignition`
pub static IGNITION: ObjectSchema = object(
    None,
    &[
        member("config", V3_0, Object(&REFERENCES)),
        member("proxy", V3_1, Object(&PROXY)),
        member("security", V3_0, Object(&SECURITY)),
        member("timeouts", V3_0, Object(&TIMEOUTS)),
        required("version", V3_0, Text),
    ],
);

/// `ignition.config`
pub static REFERENCES: ObjectSchema = object(
    None,
    &[
        member("merge", V3_0, Objects(&REFERENCE)),
        member("replace", V3_0, Object(&REFERENCE)),
    ],
);

/// A configuration or a certificate to fetch.
pub static REFERENCE: ObjectSchema = object(
    Member("source"),
    &[
        member("compression", V3_1, Text),
        list("httpHeaders", V3_1, Objects(&HTTP_HEADER), Headers),
        member("source", V3_0, Text),
        member("verification", V3_0, Object(&VERIFICATION)),
    ],
);

/// The bytes of a file or of a key.
pub static RESOURCE: ObjectSchema = object(
    Member("source"),
    &[
        member("compression", V3_0, Text),
        list("httpHeaders", V3_1, Objects(&HTTP_HEADER), Headers),
        member("source", V3_0, Text),
        member("verification", V3_0, Object(&VERIFICATION)),
    ],
);

/// `httpHeaders[]`
pub static HTTP_HEADER: ObjectSchema = object(
    Member("name"),
    &[required("name", V3_1, Text), member("value", V3_1, Text)],
);

/// `verification`
pub static VERIFICATION: ObjectSchema = object(None, &[member("hash", V3_0, Text)]);

/// `ignition.proxy`
pub static PROXY: ObjectSchema = object(
    None,
    &[
        member("httpProxy", V3_1, Text),
        member("httpsProxy", V3_1, Text),
        member("noProxy", V3_1, Texts),
    ],
);

/// `ignition.security`
static SECURITY: ObjectSchema = object(None, &[member("tls", V3_0, Object(&TLS))]);

/// `ignition.security.tls`
pub static TLS: ObjectSchema = object(
    None,
    &[member("certificateAuthorities", V3_0, Objects(&REFERENCE))],
);

/// `ignition.timeouts`
static TIMEOUTS: ObjectSchema = object(
    None,
    &[
        member("httpResponseHeaders", V3_0, Integer),
        member("httpTotal", V3_0, Integer),
    ],
);

/// `kernelArguments`
pub static KERNEL_ARGUMENTS: ObjectSchema = object(
    None,
    &[
        list("shouldExist", V3_3, Texts, Shared("argument")),
        list("shouldNotExist", V3_3, Texts, Shared("argument")),
    ],
);

/// `passwd`
pub static PASSWD: ObjectSchema = object(
    None,
    &[
        member("groups", V3_0, Objects(&PASSWD_GROUP)),
        member("users", V3_0, Objects(&PASSWD_USER)),
    ],
);

/// `passwd.groups[]`
pub static PASSWD_GROUP: ObjectSchema = object(
    Member("name"),
    &[
        member("gid", V3_0, Integer),
        required("name", V3_0, Text),
        member("passwordHash", V3_0, Text),
        member("shouldExist", V3_2, Bool),
        member("system", V3_0, Bool),
    ],
);

/// `passwd.users[]`
pub static PASSWD_USER: ObjectSchema = object(
    Member("name"),
    &[
        member("gecos", V3_0, Text),
        member("groups", V3_0, Texts),
        member("homeDir", V3_0, Text),
        required("name", V3_0, Text),
        member("noCreateHome", V3_0, Bool),
        member("noLogInit", V3_0, Bool),
        member("noUserGroup", V3_0, Bool),
        member("passwordHash", V3_0, Text),
        member("primaryGroup", V3_0, Text),
        member("shell", V3_0, Text),
        member("shouldExist", V3_2, Bool),
        member("sshAuthorizedKeys", V3_0, Texts),
        member("system", V3_0, Bool),
        member("uid", V3_0, Integer),
    ],
);

/// `storage`
pub static STORAGE: ObjectSchema = object(
    None,
    &[
        list("directories", V3_0, Objects(&DIRECTORY), Shared("path")),
        member("disks", V3_0, Objects(&DISK)),
        list("files", V3_0, Objects(&FILE), Shared("path")),
        member("filesystems", V3_0, Objects(&FILESYSTEM)),
        list("links", V3_0, Objects(&LINK), Shared("path")),
        member("luks", V3_2, Objects(&LUKS)),
        member("raid", V3_0, Objects(&RAID)),
    ],
);

/// `storage.directories[]`
pub static DIRECTORY: ObjectSchema = object(
    Member("path"),
    &[
        member("group", V3_0, Object(&OWNER)),
        member("mode", V3_0, Integer),
        member("overwrite", V3_0, Bool),
        required("path", V3_0, Text),
        member("user", V3_0, Object(&OWNER)),
    ],
);

/// `storage.files[]`
pub static FILE: ObjectSchema = object(
    Member("path"),
    &[
        list("append", V3_0, Objects(&RESOURCE), Append),
        member("contents", V3_0, Object(&RESOURCE)),
        member("group", V3_0, Object(&OWNER)),
        member("mode", V3_0, Integer),
        member("overwrite", V3_0, Bool),
        required("path", V3_0, Text),
        member("user", V3_0, Object(&OWNER)),
    ],
);

/// `storage.links[]`
pub static LINK: ObjectSchema = object(
    Member("path"),
    &[
        member("group", V3_0, Object(&OWNER)),
        member("hard", V3_0, Bool),
        member("overwrite", V3_0, Bool),
        required("path", V3_0, Text),
        required("target", V3_0, Text),
        member("user", V3_0, Object(&OWNER)),
    ],
);

/// `user` and `group` of files, directories and links.
pub static OWNER: ObjectSchema = object(
    None,
    &[member("id", V3_0, Integer), member("name", V3_0, Text)],
);

/// `storage.disks[]`
pub static DISK: ObjectSchema = object(
    Member("device"),
    &[
        required("device", V3_0, Text),
        member("partitions", V3_0, Objects(&PARTITION)),
        member("wipeTable", V3_0, Bool),
    ],
);

/// `storage.disks[].partitions[]`
pub static PARTITION: ObjectSchema = object(
    Partition,
    &[
        member("guid", V3_0, Text),
        member("label", V3_0, Text),
        member("number", V3_0, Integer),
        member("resize", V3_2, Bool),
        member("shouldExist", V3_0, Bool),
        member("sizeMiB", V3_0, Integer),
        member("startMiB", V3_0, Integer),
        member("typeGuid", V3_0, Text),
        member("wipePartitionEntry", V3_0, Bool),
    ],
);

/// `storage.filesystems[]`
pub static FILESYSTEM: ObjectSchema = object(
    Member("device"),
    &[
        required("device", V3_0, Text),
        member("format", V3_0, Text),
        member("label", V3_0, Text),
        list("mountOptions", V3_1, Texts, Append),
        list("options", V3_0, Texts, Append),
        member("path", V3_0, Text),
        member("uuid", V3_0, Text),
        member("wipeFilesystem", V3_0, Bool),
    ],
);

/// `storage.luks[]`
pub static LUKS: ObjectSchema = object(
    Member("name"),
    &[
        member("cex", V3_5, Object(&CEX)),
        member("clevis", V3_2, Object(&CLEVIS)),
        member("device", V3_2, Text),
        member("discard", V3_4, Bool),
        member("keyFile", V3_2, Object(&RESOURCE)),
        member("label", V3_2, Text),
        required("name", V3_2, Text),
        member("openOptions", V3_4, Texts),
        list("options", V3_2, Texts, Append),
        member("uuid", V3_2, Text),
        member("wipeVolume", V3_2, Bool),
    ],
);

/// `storage.luks[].cex`
static CEX: ObjectSchema = object(None, &[member("enabled", V3_5, Bool)]);

/// `storage.luks[].clevis`
pub static CLEVIS: ObjectSchema = object(
    None,
    &[
        member("custom", V3_2, Object(&CLEVIS_CUSTOM)),
        member("tang", V3_2, Objects(&TANG)),
        member("threshold", V3_2, Integer),
        member("tpm2", V3_2, Bool),
    ],
);

/// `storage.luks[].clevis.custom`
pub static CLEVIS_CUSTOM: ObjectSchema = object(
    None,
    &[
        member("config", V3_2, Text),
        member("needsNetwork", V3_2, Bool),
        member("pin", V3_2, Text),
    ],
);

/// `storage.luks[].clevis.tang[]`
pub static TANG: ObjectSchema = object(
    Member("url"),
    &[
        member("advertisement", V3_4, Text),
        member("thumbprint", V3_2, Text),
        member("url", V3_2, Text),
    ],
);

/// `storage.raid[]`
pub static RAID: ObjectSchema = object(
    Member("name"),
    &[
        required("devices", V3_0, Texts),
        required("level", V3_0, Text),
        required("name", V3_0, Text),
        list("options", V3_0, Texts, Append),
        member("spares", V3_0, Integer),
    ],
);

/// `systemd`
pub static SYSTEMD: ObjectSchema = object(None, &[member("units", V3_0, Objects(&UNIT))]);

/// `systemd.units[]`
pub static UNIT: ObjectSchema = object(
    Member("name"),
    &[
        member("contents", V3_0, Text),
        member("dropins", V3_0, Objects(&DROPIN)),
        member("enabled", V3_0, Bool),
        member("mask", V3_0, Bool),
        required("name", V3_0, Text),
    ],
);

/// `systemd.units[].dropins[]`
pub static DROPIN: ObjectSchema = object(
    Member("name"),
    &[member("contents", V3_0, Text), required("name", V3_0, Text)],
);
