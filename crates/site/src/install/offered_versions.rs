//! Entries of the lists of versions that installations have written.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Members that identify entries.
pub(super) const BOOT_IMAGE: [&str; 2] = ["openshift_version", "cpu_architecture"];
pub(super) const RELEASE: [&str; 2] = ["version", "cpu_architecture"];

/// Entries that installations have written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct OfferedVersions {
    /// Of `OS_IMAGES`.
    pub(super) boot_images: Vec<Value>,
    /// Of `RELEASE_IMAGES`.
    pub(super) releases: Vec<Value>,
}

impl OfferedVersions {
    /// With the entries of earlier installations: their boot images are still there.
    pub(super) fn after(mut self, previous: &Self) -> Self {
        let add = |own: &mut Vec<Value>, previous: &[Value], key: [&str; 2]| {
            let known: BTreeSet<_> = own.iter().map(|it| key_of(it, key)).collect();
            let others = previous
                .iter()
                .filter(|it| !known.contains(&key_of(it, key)));
            own.extend(others.cloned());
        };
        add(&mut self.boot_images, &previous.boot_images, BOOT_IMAGE);
        add(&mut self.releases, &previous.releases, RELEASE);
        self
    }
}

/// The values of `members`, which identify an entry.
pub(super) fn key_of(entry: &Value, members: [&str; 2]) -> [Option<String>; 2] {
    members.map(|member| entry[member].as_str().map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn image(version: &str, url: &str) -> Value {
        json!({"openshift_version": version, "cpu_architecture": "x86_64", "url": url})
    }

    #[test]
    fn entries_of_earlier_installations_are_remembered() {
        let of = |boot_images: &[&Value]| OfferedVersions {
            boot_images: boot_images.iter().map(|&it| it.clone()).collect(),
            releases: Vec::new(),
        };
        let [old, new] = ["old", "new"].map(|url| image("4.18", url));
        let other = image("4.19", "x");
        let found = of(&[&new]).after(&of(&[&old, &other]));
        assert_eq!(found, of(&[&new, &other]));
    }
}
