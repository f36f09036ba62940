//! The schema of configurations: members and their kinds.

use super::form::{self, Form};

/// Versions of the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    V1Alpha2,
    V2Alpha1,
}

/// Kind of a value.
#[derive(Debug)]
pub(super) enum Kind {
    Text(&'static Form),
    Flag,
    /// A number of GiB.
    Size,
    List(&'static Kind),
    Object(&'static Record),
}

/// An object.
#[derive(Debug)]
pub(super) struct Record {
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
    pub(super) kind: Kind,
    /// The version that has it; none for both.
    pub(super) only: Option<Version>,
    pub(super) is_required: bool,
}

impl Version {
    pub(super) const ALL: &'static [Self] = &[Self::V1Alpha2, Self::V2Alpha1];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::V1Alpha2 => "v1alpha2",
            Self::V2Alpha1 => "v2alpha1",
        }
    }

    /// The version of an `apiVersion` of any group.
    pub(super) fn of(api_version: &str) -> Option<Self> {
        let (_, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        let mut all = Self::ALL.iter().copied();
        all.find(|it| it.name() == version)
    }
}

const fn field(name: &'static str, kind: Kind) -> Field {
    Field {
        name,
        kind,
        only: None,
        is_required: false,
    }
}

const fn text(name: &'static str, form: &'static Form) -> Field {
    field(name, Kind::Text(form))
}

const fn flag(name: &'static str) -> Field {
    field(name, Kind::Flag)
}

const fn object(name: &'static str, record: &'static Record) -> Field {
    field(name, Kind::Object(record))
}

const fn list(name: &'static str, kind: &'static Kind) -> Field {
    field(name, Kind::List(kind))
}

const fn record(fields: &'static [Field]) -> Record {
    Record {
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

    const fn only(self, version: Version) -> Self {
        let only = Some(version);
        Self { only, ..self }
    }
}

use Version::{V1Alpha2, V2Alpha1};

/// `kind: ImageSetConfiguration`.
pub(super) static IMAGE_SET: Record = Record {
    elsewhere: &[(
        "delete",
        "it goes with `kind: DeleteImageSetConfiguration`, and `mirror` with this one",
    )],
    ..record(&[
        text("apiVersion", &form::API_VERSION).required(),
        text("kind", &form::KIND).required(),
        field("archiveSize", Kind::Size),
        object("storageConfig", &STORAGE).only(V1Alpha2),
        object("mirror", &MIRROR).required(),
    ])
};

/// `kind: DeleteImageSetConfiguration`.
pub(super) static DELETION: Record = Record {
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

static STORAGE: Record = record(&[
    object("registry", &STORAGE_REGISTRY),
    object("local", &STORAGE_LOCAL),
]);

static STORAGE_REGISTRY: Record =
    record(&[text("imageURL", &form::IMAGE).required(), flag("skipTLS")]);

static STORAGE_LOCAL: Record = record(&[text("path", &form::PATH).required()]);

static MIRROR: Record = record(&[
    object("platform", &PLATFORM),
    list("operators", &Kind::Object(&OPERATOR)),
    list("additionalImages", &Kind::Object(&ADDITIONAL_IMAGE)),
    object("helm", &HELM),
    list("blockedImages", &Kind::Object(&BLOCKED_IMAGE)),
    list("samples", &Kind::Object(&SAMPLE)),
]);

static DELETE: Record = record(&[
    object("platform", &PLATFORM),
    list("operators", &Kind::Object(&OPERATOR)),
    list("additionalImages", &Kind::Object(&ADDITIONAL_IMAGE)),
    object("helm", &HELM),
    list("samples", &Kind::Object(&SAMPLE)),
]);

static PLATFORM: Record = record(&[
    flag("graph"),
    list("channels", &Kind::Object(&RELEASE_CHANNEL)),
    list("architectures", &Kind::Text(&form::ARCHITECTURE)),
    text("release", &form::SOURCE).only(V2Alpha1),
    flag("kubeVirtContainer").only(V2Alpha1),
    list("platforms", &Kind::Object(&INSTANCE)).only(V2Alpha1),
]);

static RELEASE_CHANNEL: Record = record(&[
    text("name", &form::NAME).required(),
    text("type", &form::RELEASE_KIND),
    text("minVersion", &form::RELEASE_VERSION),
    text("maxVersion", &form::RELEASE_VERSION),
    flag("shortestPath"),
    flag("full"),
]);

static INSTANCE: Record = record(&[
    text("os", &form::NAME).required(),
    text("architecture", &form::NAME).required(),
]);

static OPERATOR: Record = Record {
    alone: Some("catalog"),
    ..record(&[
        text("catalog", &form::SOURCE).required(),
        list("packages", &Kind::Object(&PACKAGE)),
        text("targetName", &form::REPOSITORY).only(V1Alpha2),
        text("targetCatalog", &form::REPOSITORY),
        text("targetTag", &form::TAG),
        flag("full"),
        flag("skipDependencies"),
        text("originalRef", &form::ANY).only(V1Alpha2),
        text("targetCatalogSourceTemplate", &form::PATH).only(V2Alpha1),
        list("platforms", &Kind::Object(&INSTANCE)).only(V2Alpha1),
    ])
};

static PACKAGE: Record = record(&[
    text("name", &form::NAME).required(),
    list("channels", &Kind::Object(&CHANNEL)),
    text("minVersion", &form::BUNDLE_VERSION),
    text("maxVersion", &form::BUNDLE_VERSION),
    text("minBundle", &form::NAME).only(V1Alpha2),
    text("defaultChannel", &form::NAME),
]);

static CHANNEL: Record = record(&[
    text("name", &form::NAME).required(),
    text("minVersion", &form::BUNDLE_VERSION),
    text("maxVersion", &form::BUNDLE_VERSION),
    text("minBundle", &form::NAME).only(V1Alpha2),
]);

static ADDITIONAL_IMAGE: Record = record(&[
    text("name", &form::SOURCE).required(),
    text("targetRepo", &form::REPOSITORY).only(V2Alpha1),
    text("targetTag", &form::TAG).only(V2Alpha1),
    list("platforms", &Kind::Object(&INSTANCE)).only(V2Alpha1),
]);

static BLOCKED_IMAGE: Record = record(&[text("name", &form::EXPRESSION).required()]);

static SAMPLE: Record = record(&[text("name", &form::ANY).required()]);

static HELM: Record = record(&[
    list("repositories", &Kind::Object(&CHART_REPOSITORY)),
    list("local", &Kind::Object(&LOCAL_CHART)),
]);

static CHART_REPOSITORY: Record = record(&[
    text("name", &form::NAME).required(),
    text("url", &form::URL).required(),
    list("charts", &Kind::Object(&CHART)),
]);

static CHART: Record = record(&[
    text("name", &form::NAME).required(),
    text("version", &form::ANY),
    text("path", &form::PATH),
    list("imagePaths", &Kind::Text(&form::JSON_PATH)),
    list("platforms", &Kind::Object(&INSTANCE)).only(V2Alpha1),
]);

static LOCAL_CHART: Record = record(&[
    text("name", &form::NAME),
    text("version", &form::ANY),
    text("path", &form::PATH).required(),
    list("imagePaths", &Kind::Text(&form::JSON_PATH)),
    list("platforms", &Kind::Object(&INSTANCE)).only(V2Alpha1),
]);
