//! The schema of configurations: members and their kinds.

use super::form::{self, TextForm};
use super::version::ConfigVersion;

/// Kind of a value.
#[derive(Debug)]
pub(super) enum ValueKind {
    Text(&'static TextForm),
    Flag,
    /// A number of GiB.
    Size,
    List(&'static ValueKind),
    Object(&'static RecordSchema),
}

/// An object.
#[derive(Debug)]
pub(super) struct RecordSchema {
    pub(super) fields: &'static [Field],
    /// The member that a plain text is short for.
    pub(super) alone: Option<&'static str>,
    /// Names that belong elsewhere, with the hint for the user.
    pub(super) elsewhere: &'static [(&'static str, &'static str)],
}

/// A member of an object.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) kind: ValueKind,
    /// The version that has it; none for both.
    pub(super) only: Option<ConfigVersion>,
    pub(super) is_required: bool,
}

const fn field(name: &'static str, kind: ValueKind) -> Field {
    Field {
        name,
        kind,
        only: None,
        is_required: false,
    }
}

const fn text(name: &'static str, form: &'static TextForm) -> Field {
    field(name, ValueKind::Text(form))
}

const fn flag(name: &'static str) -> Field {
    field(name, ValueKind::Flag)
}

const fn object(name: &'static str, record: &'static RecordSchema) -> Field {
    field(name, ValueKind::Object(record))
}

const fn list(name: &'static str, kind: &'static ValueKind) -> Field {
    field(name, ValueKind::List(kind))
}

const fn record(fields: &'static [Field]) -> RecordSchema {
    RecordSchema {
        fields,
        alone: None,
        elsewhere: &[],
    }
}

impl Field {
    const fn required(self) -> Self {
        let is_required = true;
        Self {
            is_required,
            ..self
        }
    }

    const fn only(self, version: ConfigVersion) -> Self {
        let only = Some(version);
        Self { only, ..self }
    }
}

use ConfigVersion::{V1Alpha2, V2Alpha1};

/// `kind: ImageSetConfiguration`.
pub(super) static IMAGE_SET: RecordSchema = RecordSchema {
    elsewhere: &[(
        "delete",
        "it goes with `kind: DeleteImageSetConfiguration`, and `mirror` with this one",
    )],
    ..record(&[
        text("apiVersion", &form::API_VERSION).required(),
        text("kind", &form::KIND).required(),
        field("archiveSize", ValueKind::Size),
        object("storageConfig", &STORAGE).only(V1Alpha2),
        object("mirror", &MIRROR).required(),
    ])
};

/// `kind: DeleteImageSetConfiguration`.
pub(super) static DELETION: RecordSchema = RecordSchema {
    elsewhere: &[(
        "mirror",
        "it goes with `kind: ImageSetConfiguration`, and `delete` with this one",
    )],
    ..record(&[
        text("apiVersion", &form::API_VERSION).required(),
        text("kind", &form::KIND).required(),
        object("delete", &DELETE).required(),
    ])
};

static STORAGE: RecordSchema = record(&[
    object("registry", &STORAGE_REGISTRY),
    object("local", &STORAGE_LOCAL),
]);

static STORAGE_REGISTRY: RecordSchema =
    record(&[text("imageURL", &form::IMAGE).required(), flag("skipTLS")]);

static STORAGE_LOCAL: RecordSchema = record(&[text("path", &form::PATH).required()]);

static MIRROR: RecordSchema = record(&[
    object("platform", &PLATFORM),
    list("operators", &ValueKind::Object(&OPERATOR)),
    list("additionalImages", &ValueKind::Object(&ADDITIONAL_IMAGE)),
    object("helm", &HELM),
    list("blockedImages", &ValueKind::Object(&BLOCKED_IMAGE)),
    list("samples", &ValueKind::Object(&SAMPLE)),
    object("bootImages", &BOOT_IMAGES),
]);

static BOOT_IMAGES: RecordSchema = record(&[list(
    "architectures",
    &ValueKind::Text(&form::BOOT_ARCHITECTURE),
)]);

static DELETE: RecordSchema = record(&[
    object("platform", &PLATFORM),
    list("operators", &ValueKind::Object(&OPERATOR)),
    list("additionalImages", &ValueKind::Object(&ADDITIONAL_IMAGE)),
    object("helm", &HELM),
    list("samples", &ValueKind::Object(&SAMPLE)),
]);

static PLATFORM: RecordSchema = record(&[
    flag("graph"),
    list("channels", &ValueKind::Object(&RELEASE_CHANNEL)),
    list("architectures", &ValueKind::Text(&form::ARCHITECTURE)),
    text("release", &form::SOURCE).only(V2Alpha1),
    flag("kubeVirtContainer").only(V2Alpha1),
    list("platforms", &ValueKind::Object(&INSTANCE)).only(V2Alpha1),
]);

static RELEASE_CHANNEL: RecordSchema = record(&[
    text("name", &form::NAME).required(),
    text("type", &form::RELEASE_KIND),
    text("minVersion", &form::RELEASE_VERSION),
    text("maxVersion", &form::RELEASE_VERSION),
    flag("shortestPath"),
    flag("full"),
]);

static INSTANCE: RecordSchema = record(&[
    text("os", &form::NAME).required(),
    text("architecture", &form::NAME).required(),
]);

static OPERATOR: RecordSchema = RecordSchema {
    alone: Some("catalog"),
    ..record(&[
        text("catalog", &form::SOURCE).required(),
        list("packages", &ValueKind::Object(&PACKAGE)),
        text("targetName", &form::REPOSITORY).only(V1Alpha2),
        text("targetCatalog", &form::REPOSITORY),
        text("targetTag", &form::TAG),
        flag("full"),
        flag("skipDependencies"),
        text("originalRef", &form::ANY).only(V1Alpha2),
        text("targetCatalogSourceTemplate", &form::PATH).only(V2Alpha1),
        list("platforms", &ValueKind::Object(&INSTANCE)).only(V2Alpha1),
    ])
};

static PACKAGE: RecordSchema = record(&[
    text("name", &form::NAME).required(),
    list("channels", &ValueKind::Object(&CHANNEL)),
    text("minVersion", &form::BUNDLE_VERSION),
    text("maxVersion", &form::BUNDLE_VERSION),
    text("minBundle", &form::NAME).only(V1Alpha2),
    text("defaultChannel", &form::NAME),
]);

static CHANNEL: RecordSchema = record(&[
    text("name", &form::NAME).required(),
    text("minVersion", &form::BUNDLE_VERSION),
    text("maxVersion", &form::BUNDLE_VERSION),
    text("minBundle", &form::NAME).only(V1Alpha2),
]);

static ADDITIONAL_IMAGE: RecordSchema = record(&[
    text("name", &form::ADDITIONAL_IMAGE).required(),
    text("targetRepo", &form::REPOSITORY).only(V2Alpha1),
    text("targetTag", &form::TAG).only(V2Alpha1),
    list("platforms", &ValueKind::Object(&INSTANCE)).only(V2Alpha1),
]);

static BLOCKED_IMAGE: RecordSchema = record(&[text("name", &form::EXPRESSION).required()]);

static SAMPLE: RecordSchema = record(&[text("name", &form::ANY).required()]);

static HELM: RecordSchema = record(&[
    list("repositories", &ValueKind::Object(&CHART_REPOSITORY)),
    list("local", &ValueKind::Object(&LOCAL_CHART)),
]);

static CHART_REPOSITORY: RecordSchema = record(&[
    text("name", &form::NAME).required(),
    text("url", &form::URL).required(),
    list("charts", &ValueKind::Object(&CHART)),
]);

static CHART: RecordSchema = record(&[
    text("name", &form::NAME).required(),
    text("version", &form::ANY),
    text("path", &form::PATH),
    list("imagePaths", &ValueKind::Text(&form::JSON_PATH)),
    list("valuesFiles", &ValueKind::Text(&form::PATH)),
    list("platforms", &ValueKind::Object(&INSTANCE)).only(V2Alpha1),
]);

static LOCAL_CHART: RecordSchema = record(&[
    text("name", &form::NAME),
    text("version", &form::ANY),
    text("path", &form::PATH).required(),
    list("imagePaths", &ValueKind::Text(&form::JSON_PATH)),
    list("valuesFiles", &ValueKind::Text(&form::PATH)),
    list("platforms", &ValueKind::Object(&INSTANCE)).only(V2Alpha1),
]);
