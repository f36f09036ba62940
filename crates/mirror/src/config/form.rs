//! Forms of the texts in a configuration.

use std::str::FromStr;

use catalog::version::BundleVersion;
use model::image_set::ReleaseKind;
use oci::{Reference, Repository, Tag};
use regex::Regex;

use super::version::ConfigVersion;
use crate::image_source::ImageSource;
use crate::json_path::JsonPath;
use crate::names;

/// Kind of a configuration that mirrors.
pub(super) const MIRROR_KIND: &str = "ImageSetConfiguration";
/// Kind of a configuration that deletes.
pub(super) const DELETE_KIND: &str = "DeleteImageSetConfiguration";
/// Architectures of releases, as Go names them, and the one of payloads for several.
const ARCHITECTURES: [&str; 5] = ["amd64", "arm64", "ppc64le", "s390x", "multi"];

/// Architectures of boot images, also as streams and the image service name them.
const BOOT_ARCHITECTURES: [&str; 6] = ["amd64", "x86_64", "arm64", "aarch64", "ppc64le", "s390x"];

/// The form of a text.
#[derive(Debug)]
pub(super) struct TextForm {
    /// In words, as in "expected …".
    pub(super) is: &'static str,
    /// Checks a text. The version is none where it is malformed itself. Errors: the expected form.
    pub(super) check: fn(&str, Option<ConfigVersion>) -> Result<(), String>,
}

pub(super) static ANY: TextForm = TextForm {
    is: "a text",
    check: |_, _| Ok(()),
};

pub(super) static NAME: TextForm = TextForm {
    is: "a name",
    check: |text, _| {
        let why = || format!("{text:?} begins or ends with a blank");
        (text.trim() == text).then_some(()).ok_or_else(why)
    },
};

pub(super) static PATH: TextForm = TextForm {
    is: "a path",
    check: |_, _| Ok(()),
};

pub(super) static API_VERSION: TextForm = TextForm {
    is: "mirror.openshift.io/v1alpha2 or mirror.openshift.io/v2alpha1",
    check: |text, _| {
        let (_, version) = text.rsplit_once('/').unwrap_or(("", text));
        one_of(version, ConfigVersion::ALL.iter().map(|it| it.name()))
    },
};

pub(super) static KIND: TextForm = TextForm {
    is: MIRROR_KIND,
    check: |text, _| one_of(text, [MIRROR_KIND, DELETE_KIND]),
};

pub(super) static IMAGE: TextForm = TextForm {
    is: "an image, as in registry.example.org/tools/tool:1.0",
    check: |text, _| is::<Reference>(text),
};

pub(super) static SOURCE: TextForm = TextForm {
    is: "an image, as in registry.example.org/catalogs/community:v4.20, or oci:// and a folder",
    check: |text, _| is::<ImageSource>(text),
};

pub(super) static ADDITIONAL_IMAGE: TextForm = TextForm {
    is: "an image, as in registry.example.org/tools/tool:1.0, or oci:// and a folder",
    check: |text, _| {
        if ImageSource::is_layout(text) {
            return is::<ImageSource>(text);
        }
        names::reference(text).map(drop).map_err(|e| e.to_string())
    },
};

pub(super) static REPOSITORY: TextForm = TextForm {
    is: "a repository, as in catalogs/community",
    check: |text, _| is::<Repository>(text),
};

pub(super) static TAG: TextForm = TextForm {
    is: "a tag",
    check: |text, _| is::<Tag>(text),
};

pub(super) static ARCHITECTURE: TextForm = TextForm {
    is: "an architecture, as in amd64",
    check: |text, _| one_of(text, ARCHITECTURES),
};

pub(super) static BOOT_ARCHITECTURE: TextForm = TextForm {
    is: "an architecture, as in amd64 or x86_64",
    check: |text, _| one_of(text, BOOT_ARCHITECTURES),
};

pub(super) static RELEASE_KIND: TextForm = TextForm {
    is: "ocp or okd",
    check: |text, _| one_of(text, ReleaseKind::ALL.iter().map(|it| it.as_str())),
};

pub(super) static RELEASE_VERSION: TextForm = TextForm {
    is: "a version, as in 4.20.1",
    check: |text, _| {
        if let Some(plain) = text.strip_prefix('v') {
            return Err(format!(
                "{text:?} is no version of a release: write {plain:?}"
            ));
        }
        match text.parse::<BundleVersion>() {
            Ok(_) => Ok(()),
            Err(error) => Err(no_version(text, &error.to_string())),
        }
    },
};

pub(super) static BUNDLE_VERSION: TextForm = TextForm {
    is: "a version, as in 1.2.3",
    check: |text, version| {
        let read = match version {
            Some(ConfigVersion::V1Alpha2) => plain(text).parse().map_err(|e| format!("{e}")),
            Some(ConfigVersion::V2Alpha1) | None => bundle_version(text),
        };
        let read: Result<BundleVersion, _> = read;
        read.map(drop).map_err(|error| no_version(text, &error))
    },
};

pub(super) static EXPRESSION: TextForm = TextForm {
    is: "a regular expression, as in example\\.org/debug/",
    check: |text, _| expression(text).map(drop),
};

pub(super) static URL: TextForm = TextForm {
    is: "an address, as in https://charts.example.org",
    check: |text, _| {
        let is_web = |url: &url::Url| ["http", "https"].contains(&url.scheme());
        match url::Url::parse(text) {
            Ok(url) if is_web(&url) => Ok(()),
            Ok(_) => Err(format!("{text:?} begins neither with http:// nor https://")),
            Err(error) => Err(format!("{text:?} is no address: {error}")),
        }
    },
};

pub(super) static JSON_PATH: TextForm = TextForm {
    is: "a JSONPath, as in {.spec.image}",
    check: |text, _| text.parse::<JsonPath>().map(drop),
};

/// The version of a bundle in a configuration: with or without a leading `v`; missing numbers are 0.
///
/// Errors: the message for the user.
pub fn bundle_version(text: &str) -> Result<BundleVersion, String> {
    let text = plain(text);
    let end = text.find(['-', '+']).unwrap_or(text.len());
    let (numbers, rest) = text.split_at(end);
    let missing = 2_usize.saturating_sub(numbers.matches('.').count());
    let whole = format!("{numbers}{}{rest}", ".0".repeat(missing));
    whole.parse().map_err(|error| format!("{error}"))
}

/// A regular expression that is searched in whole references.
///
/// Errors: the message for the user.
pub fn expression(text: &str) -> Result<Regex, String> {
    Regex::new(text).map_err(|error| {
        // The lines before the last one draw where it is.
        let error = error.to_string();
        let why = error.lines().last().unwrap_or_default();
        let why = why.strip_prefix("error: ").unwrap_or(why);
        format!("{text:?} is no regular expression: {why}")
    })
}

fn plain(version: &str) -> &str {
    version.strip_prefix('v').unwrap_or(version)
}

fn no_version(text: &str, why: &str) -> String {
    format!("{text:?} is no version: {why}; expected three numbers, as in 1.2.3")
}

fn is<T: FromStr<Err = model::Error>>(text: &str) -> Result<(), String> {
    text.parse::<T>()
        .map(drop)
        .map_err(|error| error.to_string())
}

fn one_of(
    text: &str,
    values: impl IntoIterator<Item = &'static str> + Clone,
) -> Result<(), String> {
    let all: Vec<_> = values.into_iter().collect();
    if all.contains(&text) {
        return Ok(());
    }
    let meant = match nearest(text, all.iter().copied()) {
        Some(meant) => format!("; {meant} may be meant"),
        None => String::new(),
    };
    Err(format!("{text:?} is none of {}{meant}", all.join(", ")))
}

/// The most similar known name, if at most a third of the letters differ.
pub(super) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    model::nearest(name, known, (name.len() / 3).max(1))
}
