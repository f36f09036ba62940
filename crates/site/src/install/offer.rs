//! Versions on offer: the boot images of the bundle, and the releases in the local registry, fill in `.env`.
//!
//! The one invariant: an entry that the site has changed or removed stays as it is, until a bundle offers another one.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use ::bundle::BundleFile;
use ::bundle::assemble::{ARCHIVES, BOOT_IMAGE_LIST};
use ::mirror::run::archived_results;
use serde_json::Value;
use service::env_file;
use service::{Error, ResultExt as _};

use super::answers::Answers;
use super::bundled_set::{self, BundledSet};
use super::local_registry::LocalRegistry;
use super::offered_versions::{BOOT_IMAGE, OfferedVersions, RELEASE, key_of};
use super::registry_content::registry_images;
use crate::mirrored_releases;
use crate::pod::SETTINGS;
use crate::pod::compose::ComposeProject;

/// Units: bytes. The entry of one boot image takes 200.
const LIST_LIMIT_BYTES: u64 = 1 << 20;
pub(super) const RELEASE_IMAGES: &str = "RELEASE_IMAGES";
const OS_IMAGES: &str = "OS_IMAGES";
const OS_IMAGES_FILE: &str = "OS_IMAGES_FILE";
const VERSIONS: &str = "PLATFORM_VERSIONS";
/// The folder of boot images in containers, and that of the pod.
const MOUNTED: &str = "/images/";
const FOLDER: &str = "images";
const FILE: &str = "os-images.json";
/// Transport of boot images in the registry.
const OCI: &str = "oci://";
const READABLE: u32 = 0o644;
const DEFAULT: &str = "default";

/// A list of settings, and its entries that installations have written.
struct OfferedList<'a> {
    before: Vec<Value>,
    previous: &'a [Value],
    key: [&'static str; 2],
    /// Whether an entry that is no longer offered has no image any more.
    is_gone: fn(&Value) -> bool,
}

/// Whether the bundle has something for the registry, or boot images.
pub(super) fn has_any(bundle: &BundleFile) -> bool {
    let has_images = registry_images(bundle).next().is_some();
    let has_archives = bundle.below(ARCHIVES).next().is_some();
    has_images || has_archives || bundle.member(BOOT_IMAGE_LIST).is_some()
}

/// Where the list of boot images is.
enum BootImageList {
    File(PathBuf),
    Setting,
}

/// The boot images of the bundle and of its archives.
///
/// Errors: those of the archives; a malformed list.
pub(super) fn boot_images(
    bundle: &BundleFile,
    sets: &[BundledSet],
    registry: &LocalRegistry,
) -> Result<Vec<Value>, Error> {
    let doing = "listing boot images";
    let mut all: Vec<Value> = match bundle.member(BOOT_IMAGE_LIST) {
        Some(_) => {
            let text = bundle.bytes(BOOT_IMAGE_LIST, LIST_LIMIT_BYTES);
            let text = text.map_err(|e| e.chain()).doing(doing)?;
            serde_json::from_slice(&text).doing(doing)?
        }
        None => Vec::new(),
    };
    let target = registry.target(&registry.inside);
    let target = target.map_err(|e| e.chain()).doing(doing)?;
    for set in sets {
        let results = archived_results(&bundled_set::open(set)?, &target);
        for offer in results.map_err(|e| e.chain()).doing(doing)?.boot_images {
            all.push(serde_json::to_value(offer).doing(doing)?);
        }
    }
    Ok(all)
}

/// The releases in the registry.
///
/// Errors: the registry's.
pub(super) fn releases(registry: &LocalRegistry) -> Result<Vec<Value>, Error> {
    let doing = "listing the releases in the registry";
    let found = mirrored_releases::offered(&registry.client, &registry.address);
    let images = match registry.run(found) {
        Ok(images) => images,
        Err(model::Error::NotFound { .. }) => Vec::new(),
        Err(error) => return Err(Error::new(doing, error.chain())),
    };
    let entry = |mut image: model::versions::ReleaseImage| {
        // As hosts reach it.
        if let Some(path) = image.url.strip_prefix(&registry.address) {
            image.url = format!("{}{path}", registry.public);
        }
        serde_json::to_value(image).doing(doing)
    };
    images.into_iter().map(entry).collect()
}

/// Adds entries to the settings of the pod, unless the answers have these settings.
///
/// Errors: malformed settings; no space.
pub(super) fn write(
    offered: &OfferedVersions,
    previous: &OfferedVersions,
    answers: &Answers,
    project: &ComposeProject,
    dir: &Path,
) -> Result<(), Error> {
    let is_answered = |names: &[&str]| {
        answers
            .settings
            .iter()
            .any(|(name, _)| names.contains(&&**name))
    };
    if !is_answered(&[OS_IMAGES, OS_IMAGES_FILE]) {
        write_boot_images(&offered.boot_images, &previous.boot_images, project, dir)?;
    }
    if !is_answered(&[RELEASE_IMAGES, VERSIONS]) {
        let list = OfferedList {
            before: entries(
                RELEASE_IMAGES,
                project.setting(RELEASE_IMAGES).unwrap_or("[]"),
            )?,
            previous: &previous.releases,
            key: RELEASE,
            is_gone: |_| true,
        };
        if let Some(list) = list.merged(&offered.releases) {
            set(dir, &[(RELEASE_IMAGES, list)])?;
        }
    }
    Ok(())
}

fn write_boot_images(
    offered: &[Value],
    previous: &[Value],
    project: &ComposeProject,
    dir: &Path,
) -> Result<(), Error> {
    let listed = project.setting(OS_IMAGES).unwrap_or("[]");
    let own = dir.join(FOLDER).join(FILE);
    let named = project.setting(OS_IMAGES_FILE);
    let list = match named.map(|path| path.strip_prefix(MOUNTED)) {
        Some(Some(name)) => BootImageList::File(dir.join(FOLDER).join(name)),
        // A file of the site elsewhere in the containers.
        Some(None) => return Ok(()),
        None if entries(OS_IMAGES, listed)?.is_empty() => BootImageList::File(own),
        None => BootImageList::Setting,
    };
    let before = match &list {
        BootImageList::File(path) => match fs::read_to_string(path) {
            Ok(text) => entries(&path.display().to_string(), &text)?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(Error::new(format!("reading {}", path.display()), error)),
        },
        BootImageList::Setting => entries(OS_IMAGES, listed)?,
    };
    let list_of_entries = OfferedList {
        before,
        previous,
        key: BOOT_IMAGE,
        // Those in the registry have been pruned with their releases.
        is_gone: |it| it["url"].as_str().is_some_and(|url| url.starts_with(OCI)),
    };
    let Some(text) = list_of_entries.merged(offered) else {
        return Ok(());
    };
    match list {
        BootImageList::Setting => set(dir, &[(OS_IMAGES, text)]),
        BootImageList::File(path) => {
            // The file first: services that read the setting need it.
            service::file::write_atomic(&path, format!("{text}\n").as_bytes(), READABLE)?;
            if named.is_some() {
                return Ok(());
            }
            set(dir, &[(OS_IMAGES_FILE, format!("{MOUNTED}{FILE}"))])
        }
    }
}

fn set(dir: &Path, values: &[(&str, String)]) -> Result<(), Error> {
    let values: Vec<_> = values
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.clone()))
        .collect();
    env_file::set(&dir.join(SETTINGS), &values)
}

fn entries(place: &str, text: &str) -> Result<Vec<Value>, Error> {
    let text = if text.trim().is_empty() { "[]" } else { text };
    serde_json::from_str(text).doing(|| format!("reading {place}"))
}

impl OfferedList<'_> {
    /// The list with new entries, as one line; none if it is the same.
    fn merged(&self, offered: &[Value]) -> Option<String> {
        let key = |entry: &Value| key_of(entry, self.key);
        let by_key = |entries| -> BTreeMap<_, _> {
            let entries: &[Value] = entries;
            entries.iter().map(|it| (key(it), it)).collect()
        };
        let (previous, offered) = (by_key(self.previous), by_key(offered));
        // The default changes with other releases.
        let is_written = |entry: &Value| {
            let written = previous.get(&key(entry));
            written.is_some_and(|it| without_default(it) == without_default(entry))
        };
        let mut list = Vec::new();
        for entry in &self.before {
            match (is_written(entry), offered.get(&key(entry))) {
                (true, Some(new)) => list.push((*new).clone()),
                (true, None) if (self.is_gone)(entry) => {}
                _ => list.push(entry.clone()),
            }
        }
        let known: BTreeSet<_> = self.before.iter().map(key).collect();
        for (key, entry) in &offered {
            if !known.contains(key) && previous.get(key) != Some(entry) {
                list.push((*entry).clone());
            }
        }
        let is_of_site = |it: &Value| is_default(it) && self.before.contains(it) && !is_written(it);
        let has_own = list.iter().any(is_of_site);
        let is_offered = |it: &Value| offered.values().any(|other| *other == it);
        let has_new = list.iter().any(|it| is_default(it) && is_offered(it));
        for entry in &mut list {
            // One default: that of the site before that of the newest release.
            let keeps = if has_own {
                is_of_site(entry)
            } else {
                !has_new || is_offered(entry)
            };
            if is_default(entry) && !keeps {
                *entry = without_default(entry);
            }
        }
        (list != self.before).then(|| Value::from(list).to_string())
    }
}

fn is_default(entry: &Value) -> bool {
    entry[DEFAULT].as_bool() == Some(true)
}

fn without_default(entry: &Value) -> Value {
    let mut entry = entry.clone();
    if let Some(members) = entry.as_object_mut() {
        members.remove(DEFAULT);
    }
    entry
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn image(version: &str, url: &str) -> Value {
        json!({"openshift_version": version, "cpu_architecture": "x86_64", "url": url})
    }

    fn owned(entries: &[&Value]) -> Vec<Value> {
        entries.iter().map(|&it| it.clone()).collect()
    }

    fn merged(before: &[&Value], previous: &[&Value], offered: &[&Value]) -> Option<Vec<Value>> {
        let list = OfferedList {
            before: owned(before),
            previous: &owned(previous),
            key: BOOT_IMAGE,
            is_gone: |it| it["url"] == "gone",
        };
        let text = list.merged(&owned(offered))?;
        Some(serde_json::from_str(&text).unwrap())
    }

    #[test]
    fn entries_of_the_site_stay() {
        let [old, new, own] = ["old", "new", "own"].map(|url| image("4.18", url));
        let other = image("4.19", "x");
        assert_eq!(merged(&[], &[], &[]), None);
        assert_eq!(merged(&[], &[], &[&old]), Some(vec![old.clone()]));
        // Again, and of a newer bundle.
        assert_eq!(merged(&[&old], &[&old], &[&old]), None);
        let found = merged(&[&old], &[&old], &[&new, &other]);
        assert_eq!(found, Some(vec![new.clone(), other.clone()]));
        // Those of older bundles are kept.
        let found = merged(&[&old], &[&old], &[&other]);
        assert_eq!(found, Some(vec![old.clone(), other.clone()]));
        // Changed, added or removed by the site.
        assert_eq!(merged(&[&own], &[&old], &[&new]), None);
        assert_eq!(merged(&[&own], &[], &[&new]), None);
        assert_eq!(merged(&[], &[&old], &[&old]), None);
        assert_eq!(merged(&[], &[&old], &[&new]), Some(vec![new]));
        let gone = image("4.16", "gone");
        assert_eq!(merged(&[&gone], &[&gone], &[]), Some(Vec::new()));
        assert_eq!(merged(&[&gone], &[], &[]), None);
    }

    #[test]
    fn one_release_is_the_default() {
        let release = |version: &str, default: bool| {
            let mut release = json!({"version": version, "cpu_architecture": "x86_64"});
            if default {
                release["default"] = json!(true);
            }
            release
        };
        let merged = |before: &[&Value], previous: &[&Value], offered: &[&Value]| {
            let list = OfferedList {
                before: owned(before),
                previous: &owned(previous),
                key: RELEASE,
                is_gone: |_| true,
            };
            list.merged(&owned(offered)).unwrap()
        };
        let expected = |list: &[&Value]| Value::from(owned(list)).to_string();
        let (first, second) = (release("4.18.1", true), release("4.18.2", true));
        let older = release("4.18.1", false);
        let found = merged(&[&first], &[&first], &[&older, &second]);
        assert_eq!(found, expected(&[&older, &second]));
        // The first one is pruned.
        let found = merged(&[&older, &second], &[&older, &second], &[&second]);
        assert_eq!(found, expected(&[&second]));
        let own = release("4.17.9", true);
        let found = merged(&[&own], &[], &[&second]);
        assert_eq!(found, expected(&[&own, &release("4.18.2", false)]));
    }

    #[test]
    fn boot_images_are_listed_in_a_file_unless_the_site_has_a_list() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join(FOLDER)).unwrap();
        let compose = "services: {db: {image: a, restart: always, healthcheck: {test: []}}}";
        fs::write(dir.path().join("compose.yaml"), compose).unwrap();
        let write = |settings: &str| {
            fs::write(dir.path().join(SETTINGS), settings).unwrap();
            let project = ComposeProject::read(dir.path()).unwrap();
            let offered = [image("4.18", "file:///images/a.iso")];
            write_boot_images(&offered, &[], &project, dir.path()).unwrap();
            fs::read_to_string(dir.path().join(SETTINGS)).unwrap()
        };
        let list = format!("[{}]", image("4.18", "file:///images/a.iso"));
        assert_eq!(
            write("OS_IMAGES=[]\n"),
            "OS_IMAGES=[]\nOS_IMAGES_FILE=/images/os-images.json\n"
        );
        let file = dir.path().join("images/os-images.json");
        assert_eq!(fs::read_to_string(&file).unwrap(), format!("{list}\n"));
        let mine = "OS_IMAGES_FILE=/images/mine.json\n";
        assert_eq!(write(mine), mine);
        let file = dir.path().join("images/mine.json");
        assert_eq!(fs::read_to_string(&file).unwrap(), format!("{list}\n"));
        let elsewhere = "OS_IMAGES_FILE=/data/mine.json\n";
        assert_eq!(write(elsewhere), elsewhere);
        let own = image("4.17", "x");
        let expected = format!(
            "OS_IMAGES=[{own},{}]\n",
            image("4.18", "file:///images/a.iso")
        );
        assert_eq!(write(&format!("OS_IMAGES=[{own}]\n")), expected);
        fs::write(dir.path().join(SETTINGS), "OS_IMAGES={\n").unwrap();
        let project = ComposeProject::read(dir.path()).unwrap();
        let error = write_boot_images(&[], &[], &project, dir.path()).unwrap_err();
        assert!(error.to_string().contains(OS_IMAGES), "{error}");
    }
}
