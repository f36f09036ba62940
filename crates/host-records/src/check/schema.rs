//! Fields of the records: names, types, and which are required.
//!
//! Source: metal3-io/baremetal-operator, apis/metal3.io/v1alpha1/baremetalhost_types.go; openshift/api,
//! machine/v1beta1; openshift/cluster-api-provider-baremetal, pkg/apis/baremetal/v1alpha1.

mod host;
mod machine;

pub(crate) use host::{HOST, ROOT_DEVICE};
pub(crate) use machine::MACHINE;

use crate::{LABEL, NameForm, SUBDOMAIN};

/// Type of a field.
pub(crate) enum FieldKind {
    Text,
    /// Name of an object.
    Name(NameForm),
    /// One of these texts.
    Choice(&'static [&'static str]),
    Flag,
    /// An integer from this on.
    Whole(i128),
    List(&'static FieldKind),
    Object(&'static ObjectSchema),
    /// A text, or an object with more.
    TextOr(&'static ObjectSchema),
    /// A flag, or a name.
    FlagOrName(NameForm),
    /// An object of texts.
    Texts,
    /// Not checked.
    Any,
}

/// An object.
pub(crate) struct ObjectSchema {
    pub(crate) fields: &'static [RecordField],
    /// Names that belong elsewhere, with their place.
    pub(crate) elsewhere: &'static [(&'static str, &'static str)],
}

/// A field of an object.
pub(crate) struct RecordField {
    pub(crate) name: &'static str,
    pub(crate) kind: FieldKind,
    pub(crate) is_required: bool,
    pub(crate) support: FieldSupport,
}

/// Support of a field by the operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldSupport {
    Full,
    /// It has no effect; the remedy.
    Ignored(&'static str),
    /// The record is refused; the remedy.
    Refused(&'static str),
}

pub(crate) const fn field(name: &'static str, kind: FieldKind) -> RecordField {
    RecordField {
        name,
        kind,
        is_required: false,
        support: FieldSupport::Full,
    }
}

pub(crate) const fn text(name: &'static str) -> RecordField {
    field(name, FieldKind::Text)
}

pub(crate) const fn flag(name: &'static str) -> RecordField {
    field(name, FieldKind::Flag)
}

pub(crate) const fn choice(name: &'static str, choices: &'static [&'static str]) -> RecordField {
    field(name, FieldKind::Choice(choices))
}

pub(crate) const fn whole(name: &'static str, least: i128) -> RecordField {
    field(name, FieldKind::Whole(least))
}

pub(crate) const fn object(name: &'static str, schema: &'static ObjectSchema) -> RecordField {
    field(name, FieldKind::Object(schema))
}

pub(crate) const fn list(name: &'static str, kind: &'static FieldKind) -> RecordField {
    field(name, FieldKind::List(kind))
}

pub(crate) const fn any(name: &'static str) -> RecordField {
    field(name, FieldKind::Any)
}

pub(crate) const fn of(fields: &'static [RecordField]) -> ObjectSchema {
    ObjectSchema {
        fields,
        elsewhere: &[],
    }
}

impl RecordField {
    pub(crate) const fn required(self) -> Self {
        Self {
            is_required: true,
            ..self
        }
    }

    const fn support(self, support: FieldSupport) -> Self {
        Self { support, ..self }
    }
}

/// Secret.
pub(crate) static SECRET: ObjectSchema = of(&[
    text("apiVersion").required(),
    text("kind").required(),
    object("metadata", &METADATA).required(),
    text("type"),
    field("data", FieldKind::Texts),
    field("stringData", FieldKind::Texts),
    flag("immutable"),
]);

static METADATA: ObjectSchema = of(&[
    field("name", FieldKind::Name(SUBDOMAIN)),
    text("generateName"),
    field("namespace", FieldKind::Name(LABEL)),
    field("labels", FieldKind::Texts),
    field("annotations", FieldKind::Texts),
    list("finalizers", &FieldKind::Text),
    any("ownerReferences"),
    any("uid"),
    any("resourceVersion"),
    any("generation"),
    any("creationTimestamp"),
    any("deletionTimestamp"),
    any("deletionGracePeriodSeconds"),
    any("managedFields"),
    any("selfLink"),
]);

static SECRET_REFERENCE: ObjectSchema = of(&[
    field("name", FieldKind::Name(SUBDOMAIN)),
    field("namespace", FieldKind::Name(LABEL)),
]);

static CUSTOM_DEPLOY: ObjectSchema = of(&[text("method").required()]);
