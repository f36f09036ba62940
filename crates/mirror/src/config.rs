//! Image-set configurations.
//!
//! They are read strictly: unknown members and wrong values are reported with their place, all at once. Nothing is looked
//! up: registries are contacted only when images are mirrored.

mod check;
mod decode;
mod form;
mod problem;
mod schema;
mod start;
#[cfg(test)]
mod tests;
mod version;

use std::collections::HashSet;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use located_yaml::Position;
use located_yaml::v1_1::{self, Located, Value};
use model::image_set::{ImageSet, MirrorSelection, OperatorSelection, Storage};
use serde::Deserialize as _;
use serde_json::Value as Json;

use self::decode::Decoder;
pub use self::form::{bundle_version, expression};
pub use self::problem::{ConfigProblem, ConfigProblems};
pub use self::start::starting_file;
use self::version::ConfigVersion;
pub use crate::image_source::ImageSource;

/// Longer files are no configurations. Units: bytes.
const MAX_BYTES: u64 = 4 << 20;

/// Content of a configuration file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Configuration {
    /// Mirrors an image set.
    Mirror(ImageSet),
    /// Deletes these images from a registry.
    Delete(MirrorSelection),
}

/// Why a file is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("{path} cannot be read")]
    Unreadable {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("{0} is longer than {MAX_BYTES} bytes: no configuration is")]
    TooLong(PathBuf),
    /// Printed one a line: `file:line:column: path: text`.
    #[error("{}", in_file(.path, .problems))]
    Wrong {
        path: PathBuf,
        problems: ConfigProblems,
    },
}

/// Reads the configuration in a file.
///
/// Errors: it cannot be read, or everything that is wrong with it.
pub fn load(path: &Path) -> Result<Configuration, LoadError> {
    load_with_text(path).map(|(configuration, _)| configuration)
}

/// The configuration in a file, and its text.
///
/// Errors: as [`load`].
pub fn load_with_text(path: &Path) -> Result<(Configuration, String), LoadError> {
    let unreadable = |source| LoadError::Unreadable {
        path: path.to_owned(),
        source,
    };
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(MAX_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(LoadError::TooLong(path.to_owned()));
    }
    let configuration = parse(&bytes).map_err(|problems| LoadError::Wrong {
        path: path.to_owned(),
        problems,
    })?;
    Ok((configuration, String::from_utf8_lossy(&bytes).into_owned()))
}

/// Reads a configuration of `v1alpha2` or `v2alpha1`, in YAML or JSON.
///
/// Errors: everything that is wrong with it.
pub fn parse(bytes: &[u8]) -> Result<Configuration, ConfigProblems> {
    let text = str::from_utf8(bytes).map_err(|error| {
        let line = bytes[..error.valid_up_to()]
            .split(|it| *it == b'\n')
            .count();
        ConfigProblems::one(Position { line, column: 1 }, "not UTF-8")
    })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let text = &without_empty_documents(text);
    let root = v1_1::read(text).map_err(|wrong| ConfigProblems::one(wrong.at, wrong.reason))?;
    let is_deletion = match said(&root, "kind") {
        Some(form::DELETE_KIND) => true,
        Some(form::MIRROR_KIND) => false,
        _ => member(&root, "delete").is_some() && member(&root, "mirror").is_none(),
    };
    // Source: the peer, which deletes by the later version only, whatever the file has.
    let version = if is_deletion {
        Some(ConfigVersion::V2Alpha1)
    } else {
        said(&root, "apiVersion").and_then(ConfigVersion::of)
    };
    let mut decoder = Decoder::new(text, version);
    let configuration = if is_deletion {
        let read = decoder.whole(&root, &schema::DELETION);
        let delete = mirror(&read["delete"]);
        check::mirror(&mut decoder, "delete", &delete, version);
        Configuration::Delete(delete)
    } else {
        let read = decoder.whole(&root, &schema::IMAGE_SET);
        let mut set = image_set(&read, &mut decoder);
        let is_first = version == Some(ConfigVersion::V1Alpha2);
        for operator in &mut set.mirror.operators {
            operator.from_exact = is_first;
        }
        check::mirror(&mut decoder, "mirror", &set.mirror, version);
        if is_first {
            drop_repeated(&mut set.mirror.operators);
        }
        Configuration::Mirror(set)
    };
    decoder.problems.into_result()?;
    Ok(configuration)
}

/// Drops packages and channels that repeat an earlier one.
fn drop_repeated(operators: &mut [OperatorSelection]) {
    for package in operators.iter_mut().flat_map(|it| &mut it.packages) {
        let mut names = HashSet::new();
        let channels = &mut package.channels;
        channels.retain(|channel| names.insert(channel.name.clone()));
    }
    for operator in operators {
        let mut names = HashSet::new();
        let packages = &mut operator.packages;
        packages.retain(|package| names.insert(package.name.clone()));
    }
}

/// Removes documents without content before and after the others, whose positions stay.
fn without_empty_documents(text: &str) -> String {
    let is_marker = |line: &str| {
        let rest = line.strip_prefix("---").map(str::trim);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('#'))
    };
    let is_empty = |line: &str| {
        let text = line.trim();
        text.is_empty() || text.starts_with('#') || line.trim_end() == "..." || is_marker(line)
    };
    let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
    let content = lines.iter().rposition(|line| !is_empty(line));
    let behind = content.map_or(0, |last| last + 1);
    if let Some(marker) = lines[behind..].iter().position(|line| is_marker(line)) {
        lines.truncate(behind + marker);
    }
    let before = lines.iter().take_while(|line| is_empty(line)).count();
    for line in &mut lines[..before] {
        if is_marker(line) {
            *line = "\n";
        }
    }
    lines.concat()
}

fn in_file(path: &Path, problems: &ConfigProblems) -> String {
    let lines: Vec<_> = problems
        .to_string()
        .lines()
        .map(|line| format!("{}:{line}", path.display()))
        .collect();
    lines.join("\n")
}

fn image_set(read: &Json, decoder: &mut Decoder<'_>) -> ImageSet {
    let storage = &read["storageConfig"];
    let text = |value: &Json| value.as_str().unwrap_or_default().to_owned();
    let local = storage.get("local").map(|local| Storage::Local {
        path: text(&local["path"]),
    });
    let registry = storage.get("registry").map(|registry| Storage::Registry {
        image: text(&registry["imageURL"]),
        skip_tls: registry["skipTLS"].as_bool().unwrap_or_default(),
    });
    if local.is_some() && registry.is_some() {
        let why = "excludes storageConfig.local: leave one of them out";
        decoder.problem("storageConfig.registry", why);
    }
    ImageSet {
        archive_size: read["archiveSize"].as_u64().filter(|size| *size > 0),
        storage: local.or(registry),
        mirror: mirror(&read["mirror"]),
    }
}

fn mirror(read: &Json) -> MirrorSelection {
    if read.is_null() {
        return MirrorSelection::default();
    }
    MirrorSelection::deserialize(read).expect("the tables have the records' names and types")
}

/// The text of a member of the root.
fn said<'a>(root: &'a Located, name: &str) -> Option<&'a str> {
    match &member(root, name)?.value {
        Value::Text(text) => Some(text),
        _ => None,
    }
}

fn member<'a>(root: &'a Located, name: &str) -> Option<&'a Located> {
    let Value::Object(members) = &root.value else {
        return None;
    };
    let mut members = members.iter();
    let found = members.find(|member| member.name.eq_ignore_ascii_case(name))?;
    Some(&found.value)
}
