//! Another port of the registry than the usual one: settings that name the registry follow it.

use std::fs;
use std::path::Path;

use credentials::host_name::in_url;
use service::env_file;
use service::settings::env_lines;
use service::{Error, ResultExt as _};

use super::answers::Answers;
use crate::pod::SETTINGS;
use crate::pod::folder::REGISTRY_PORT;

const PUBLISHED: &str = "PUBLISH_REGISTRY";

/// Corrects the settings that name the registry of the pod by its usual port, if the answers have another one. Settings of
/// the answers stay.
///
/// Errors: the settings cannot be read or written.
pub(super) fn follow(dir: &Path, answers: &Answers) -> Result<(), Error> {
    let answered = |name: &str| answers.settings.iter().find(|(it, _)| it == name);
    let published = answered(PUBLISHED).and_then(|(_, value)| value.rsplit(':').next());
    let Some(port) = published else {
        return Ok(());
    };
    let path = dir.join(SETTINGS);
    let text = fs::read_to_string(&path).doing(|| format!("reading {}", path.display()))?;
    let lines = env_lines(&text).unwrap_or_default();
    let host = in_url(&answers.host);
    let (usual, own) = (format!("{host}:{REGISTRY_PORT}"), format!("{host}:{port}"));
    let corrected = lines.into_iter().filter_map(|(name, value)| {
        let value = with_address(value, &usual, &own)?;
        answered(name).is_none().then(|| (name.to_string(), value))
    });
    let corrected: Vec<_> = corrected.collect();
    if corrected.is_empty() {
        return Ok(());
    }
    env_file::set(&path, &corrected)
}

/// The value with another address; none if it does not have this one.
fn with_address(value: &str, address: &str, new: &str) -> Option<String> {
    let is_part_of_name = |c: char| c.is_ascii_alphanumeric() || "-.:".contains(c);
    let mut changed = String::new();
    let mut rest = value;
    while let Some(start) = rest.find(address) {
        let (before, after) = (&rest[..start], &rest[start + address.len()..]);
        let is_whole =
            !before.ends_with(is_part_of_name) && !after.starts_with(|c: char| c.is_ascii_digit());
        changed.push_str(before);
        changed.push_str(if is_whole { new } else { address });
        rest = after;
    }
    changed.push_str(rest);
    (changed != value).then_some(changed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_addresses_are_replaced() {
        let changed = |value: &str| with_address(value, "h:5000", "h:5443");
        assert_eq!(changed("h:5000").unwrap(), "h:5443");
        assert_eq!(changed("https://h:5000/ui/").unwrap(), "https://h:5443/ui/");
        let list = changed("quay.io,h:5000,oh:5000,h:50001");
        assert_eq!(list.unwrap(), "quay.io,h:5443,oh:5000,h:50001");
        assert_eq!(changed("5000"), None);
    }

    #[test]
    fn settings_of_the_registry_follow_its_port() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(SETTINGS);
        let text =
            "PUBLIC_CONTAINER_REGISTRIES=quay.io,h:5000\nARCHIVES_REGISTRY=h:5000\n# X=h:5000\n";
        let after = |settings: &[(&str, &str)]| {
            fs::write(&path, text).unwrap();
            let settings = settings
                .iter()
                .map(|&(name, value)| (name.into(), value.into()));
            let answers = Answers {
                host: "h".to_owned(),
                settings: settings.collect(),
            };
            follow(dir.path(), &answers).unwrap();
            fs::read_to_string(&path).unwrap()
        };
        assert_eq!(after(&[]), text);
        assert_eq!(
            after(&[("PUBLISH_REGISTRY", "[::]:5443")]),
            "PUBLIC_CONTAINER_REGISTRIES=quay.io,h:5443\nARCHIVES_REGISTRY=h:5443\n# X=h:5000\n"
        );
        let answered = [
            ("PUBLISH_REGISTRY", "5443"),
            ("ARCHIVES_REGISTRY", "h:5000"),
        ];
        assert!(after(&answered).contains("ARCHIVES_REGISTRY=h:5000\n"));
    }
}
