//! Keys of Butane: those of Ignition in snake case, and the short forms that Butane adds.

use super::spec::ButaneSpec;
use crate::config::SpecVersion::{self, V3_0, V3_4, V3_5, V3_6};
use crate::schema::{
    CLEVIS, CONFIG, DROPIN, FILESYSTEM, IGNITION, ItemKey, LUKS, ListMerging, MemberSchema, OWNER,
    ObjectSchema, PASSWD_USER, REFERENCE, RESOURCE, STORAGE, TANG, UNIT, ValueKind, butane_name,
};

/// Values of a key.
#[derive(Debug, Clone, Copy)]
pub(super) enum KeyKind {
    /// As in Ignition.
    Value(ValueKind),
    /// Texts by names of the user's choice.
    Labels,
}

/// A key of an object.
#[derive(Debug, Clone, Copy)]
pub(super) struct ButaneKey {
    /// The name of the member in Ignition; none of a short form.
    pub(super) ignition: Option<&'static str>,
    /// Values.
    pub(super) kind: KeyKind,
}

/// The specs that have a short form.
#[derive(Debug, Clone, Copy)]
enum KeyScope {
    /// Since this minor version of `fcos`.
    Since(u8),
    /// All of `openshift`.
    OpenShift,
}

struct ShortForm {
    name: &'static str,
    scope: KeyScope,
    kind: KeyKind,
}

const fn short(name: &'static str, since: u8, kind: ValueKind) -> ShortForm {
    ShortForm {
        name,
        scope: KeyScope::Since(since),
        kind: KeyKind::Value(kind),
    }
}

const fn openshift(name: &'static str, object: &'static ObjectSchema) -> ShortForm {
    ShortForm {
        name,
        scope: KeyScope::OpenShift,
        kind: KeyKind::Value(ValueKind::Object(object)),
    }
}

const fn row(name: &'static str, since: SpecVersion, kind: ValueKind) -> MemberSchema {
    MemberSchema {
        name,
        since,
        kind,
        is_required: false,
        merging: ListMerging::ByKey,
    }
}

const fn object(members: &'static [MemberSchema]) -> ObjectSchema {
    let key = ItemKey::None;
    ObjectSchema { members, key }
}

/// `storage.trees[]`
pub(super) static TREE: ObjectSchema = object(&[
    row("dirMode", V3_6, ValueKind::Integer),
    row("fileMode", V3_6, ValueKind::Integer),
    row("group", V3_6, ValueKind::Object(&OWNER)),
    row("local", V3_0, ValueKind::Text),
    row("path", V3_0, ValueKind::Text),
    row("user", V3_6, ValueKind::Object(&OWNER)),
]);

/// `boot_device`
pub(super) static BOOT_DEVICE: ObjectSchema = object(&[
    row("layout", V3_0, ValueKind::Text),
    row("luks", V3_0, ValueKind::Object(&BOOT_LUKS)),
    row("mirror", V3_0, ValueKind::Object(&BOOT_MIRROR)),
]);

/// `boot_device.luks`
static BOOT_LUKS: ObjectSchema = object(&[
    row("cex", V3_5, ValueKind::Object(&BOOT_CEX)),
    row("device", V3_5, ValueKind::Text),
    row("discard", V3_4, ValueKind::Bool),
    row("tang", V3_0, ValueKind::Objects(&TANG)),
    row("threshold", V3_0, ValueKind::Integer),
    row("tpm2", V3_0, ValueKind::Bool),
]);

/// `boot_device.luks.cex`
static BOOT_CEX: ObjectSchema = object(&[row("enabled", V3_5, ValueKind::Bool)]);

/// `boot_device.mirror`
static BOOT_MIRROR: ObjectSchema = object(&[row("devices", V3_0, ValueKind::Texts)]);

/// `grub`
static GRUB: ObjectSchema = object(&[row("users", V3_0, ValueKind::Objects(&GRUB_USER))]);

/// `grub.users[]`
pub(super) static GRUB_USER: ObjectSchema = object(&[
    row("name", V3_0, ValueKind::Text),
    row("passwordHash", V3_0, ValueKind::Text),
]);

/// `metadata`
static METADATA: ObjectSchema = object(&[row("name", V3_0, ValueKind::Text)]);

/// `openshift`
pub(super) static OPENSHIFT: ObjectSchema = object(&[
    row("extensions", V3_0, ValueKind::Texts),
    row("fips", V3_0, ValueKind::Bool),
    row("kernelArguments", V3_0, ValueKind::Texts),
    row("kernelType", V3_0, ValueKind::Text),
]);

/// Source: coreos/butane, schema.go of base/v0_1 to base/v0_7, config/fcos and config/openshift.
static SHORT_FORMS: &[(&ObjectSchema, &[ShortForm])] = &[
    (
        &CONFIG,
        &[
            short("variant", 0, ValueKind::Text),
            short("version", 0, ValueKind::Text),
            short("boot_device", 3, ValueKind::Object(&BOOT_DEVICE)),
            short("grub", 5, ValueKind::Object(&GRUB)),
            openshift("metadata", &METADATA),
            openshift("openshift", &OPENSHIFT),
        ],
    ),
    (
        &METADATA,
        &[ShortForm {
            name: "labels",
            scope: KeyScope::OpenShift,
            kind: KeyKind::Labels,
        }],
    ),
    (&STORAGE, &[short("trees", 1, ValueKind::Objects(&TREE))]),
    (&FILESYSTEM, &[short("with_mount_unit", 1, ValueKind::Bool)]),
    (
        &RESOURCE,
        &[
            short("inline", 0, ValueKind::Text),
            short("local", 1, ValueKind::Text),
        ],
    ),
    (
        &REFERENCE,
        &[
            short("inline", 1, ValueKind::Text),
            short("local", 1, ValueKind::Text),
        ],
    ),
    (
        &PASSWD_USER,
        &[short("ssh_authorized_keys_local", 5, ValueKind::Texts)],
    ),
    (&UNIT, &[short("contents_local", 5, ValueKind::Text)]),
    (&DROPIN, &[short("contents_local", 5, ValueKind::Text)]),
];

/// The key of this name, if the spec has it.
pub(super) fn key(
    object: &'static ObjectSchema,
    name: &str,
    spec: &ButaneSpec,
) -> Option<ButaneKey> {
    let is_own =
        |row: &&MemberSchema| row.since <= spec.ignition() && !is_set_by_butane(object, row);
    let mut rows = object.members.iter().filter(is_own);
    if let Some(row) = rows.find(|row| is_butane_name(row.name, name)) {
        return Some(ButaneKey {
            ignition: Some(row.name),
            kind: KeyKind::Value(row.kind),
        });
    }
    let is_in_scope = |form: &&ShortForm| match form.scope {
        KeyScope::Since(minor) => minor <= spec.fcos,
        KeyScope::OpenShift => spec.openshift.is_some(),
    };
    let mut forms = short_forms(object).iter().filter(is_in_scope);
    forms.find(|form| form.name == name).map(|form| ButaneKey {
        ignition: None,
        kind: form.kind,
    })
}

/// A remark about a name that [`key`] does not find, for messages.
pub(super) fn unknown(object: &'static ObjectSchema, name: &str, spec: &ButaneSpec) -> String {
    let is_newer = object
        .members
        .iter()
        .any(|row| row.since > spec.ignition() && is_butane_name(row.name, name))
        || short_forms(object).iter().any(|form| form.name == name);
    if is_newer && !(name == "version" && is_same(object, &IGNITION)) {
        return format!(
            "the key does not exist in {} {}, and is ignored",
            spec.variant, spec.version
        );
    }
    let folded = |text: &str| text.replace(['_', '-'], "").to_ascii_lowercase();
    let close = object
        .members
        .iter()
        .map(|row| butane_name(row.name))
        .find(|known| folded(known) == folded(name));
    match close {
        Some(known) => format!("unknown key, and is ignored; its name is {known:?}"),
        None => "unknown key, and is ignored".to_owned(),
    }
}

fn short_forms(object: &'static ObjectSchema) -> &'static [ShortForm] {
    let found = SHORT_FORMS.iter().find(|(owner, _)| is_same(owner, object));
    found.map_or(&[], |(_, forms)| forms)
}

/// Whether these are the same row of the table of objects.
pub(super) fn is_same(one: &ObjectSchema, other: &ObjectSchema) -> bool {
    std::ptr::eq(one, other)
}

/// Whether the object is an optional record, which null leaves out and `{}` does not: two were in version 3.2, all
/// others are always there.
pub(super) fn is_optional_record(object: &ObjectSchema, name: &str, spec: &ButaneSpec) -> bool {
    let is_in = |other| is_same(object, other);
    spec.ignition() == SpecVersion::V3_2
        && (is_in(&LUKS) && name == "clevis" || is_in(&CLEVIS) && name == "custom")
}

fn is_set_by_butane(object: &'static ObjectSchema, row: &MemberSchema) -> bool {
    is_same(object, &IGNITION) && row.name == "version"
}

/// As `butane_name(name) == snake`, without an allocation.
fn is_butane_name(name: &str, snake: &str) -> bool {
    // `MiB` is one word.
    let (head, tail) = match name.strip_suffix("MiB") {
        Some(head) => (head, "_mib"),
        None => (name, ""),
    };
    let letters = head.chars().flat_map(|letter| {
        let underscore = letter.is_ascii_uppercase().then_some('_');
        underscore
            .into_iter()
            .chain(std::iter::once(letter.to_ascii_lowercase()))
    });
    letters.chain(tail.chars()).eq(snake.chars())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(variant: &str, version: &str) -> &'static ButaneSpec {
        ButaneSpec::find(variant, version).unwrap()
    }

    #[test]
    fn names_compare_as_they_convert() {
        for object in [&CONFIG, &RESOURCE, &PASSWD_USER, &crate::schema::PARTITION] {
            for row in object.members {
                assert!(
                    is_butane_name(row.name, &butane_name(row.name)),
                    "{}",
                    row.name
                );
                assert!(!is_butane_name(row.name, "size_mi"));
            }
        }
        assert!(!is_butane_name("sizeMiB", "size_mi_b"));
    }

    #[test]
    fn keys_come_with_their_version() {
        let has = |object, name: &str, version| key(object, name, spec("fcos", version)).is_some();
        assert!(has(&STORAGE, "luks", "1.2.0") && !has(&STORAGE, "luks", "1.1.0"));
        assert!(has(&STORAGE, "trees", "1.1.0") && !has(&STORAGE, "trees", "1.0.0"));
        assert!(has(&CONFIG, "boot_device", "1.3.0") && !has(&CONFIG, "boot_device", "1.2.0"));
        assert!(has(&REFERENCE, "inline", "1.1.0") && !has(&REFERENCE, "inline", "1.0.0"));
        assert!(!has(&CONFIG, "openshift", "1.6.0") && !has(&IGNITION, "version", "1.6.0"));
        assert!(key(&CONFIG, "openshift", spec("openshift", "4.8.0")).is_some());
    }

    #[test]
    fn unknown_keys_have_a_remark() {
        let remark = |object, name| unknown(object, name, spec("fcos", "1.4.0"));
        let newer = "the key does not exist in fcos 1.4.0, and is ignored";
        assert_eq!(remark(&UNIT, "contents_local"), newer);
        assert_eq!(remark(&crate::schema::LUKS, "cex"), newer);
        assert_eq!(
            remark(&PASSWD_USER, "sshAuthorizedKeys"),
            "unknown key, and is ignored; its name is \"ssh_authorized_keys\""
        );
        assert_eq!(
            remark(&IGNITION, "version"),
            "unknown key, and is ignored; its name is \"version\""
        );
        assert_eq!(remark(&UNIT, "content"), "unknown key, and is ignored");
    }
}
