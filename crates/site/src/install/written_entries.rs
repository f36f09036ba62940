//! Entries of `OS_IMAGES` and `RELEASE_IMAGES` that earlier versions wrote into the settings: they would win over the
//! registry, and are taken out.
//!
//! The one invariant: an entry that the site has added or changed stays.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use service::env_file;
use service::{Error, ResultExt as _};

use super::answers::Answers;
use crate::pod::SETTINGS;
use crate::pod::compose::ComposeProject;

const RELEASE_IMAGES: &str = "RELEASE_IMAGES";
const OS_IMAGES: &str = "OS_IMAGES";
/// A setting of earlier versions.
const OS_IMAGES_FILE: &str = "OS_IMAGES_FILE";
/// The folder of boot images in containers, and that of the pod.
const MOUNTED: &str = "/images/";
const FOLDER: &str = "images";
const DEFAULT: &str = "default";

/// Entries that installations have written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct WrittenEntries {
    /// Of `OS_IMAGES`.
    pub(super) boot_images: Vec<Value>,
    /// Of `RELEASE_IMAGES`.
    pub(super) releases: Vec<Value>,
}

impl WrittenEntries {
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Takes the entries out of the settings, and moves a list of boot images from its file there; whether anything
    /// changed. Lists of the answers stay.
    ///
    /// Errors: malformed settings, a file that cannot be read; no space.
    pub(super) fn remove(
        &self,
        project: &ComposeProject,
        dir: &Path,
        answers: &Answers,
    ) -> Result<bool, Error> {
        let listed = |name| entries(name, project.setting(name).unwrap_or_default());
        let (releases, in_setting) = (listed(RELEASE_IMAGES)?, listed(OS_IMAGES)?);
        let file = project.setting(OS_IMAGES_FILE);
        // The file was in place of the setting.
        let boot_images = match file {
            Some(path) if !answers.has(OS_IMAGES) => of_file(path, dir)?,
            _ => in_setting.clone(),
        };
        let lists = [
            (RELEASE_IMAGES, &releases, others(&releases, &self.releases)),
            (
                OS_IMAGES,
                &in_setting,
                others(&boot_images, &self.boot_images),
            ),
        ];
        let changed = lists
            .iter()
            .filter(|(name, before, after)| *before != after && !answers.has(name));
        let values: Vec<_> = changed
            .map(|(name, _, after)| ((*name).to_owned(), Value::from(after.clone()).to_string()))
            .collect();
        if values.is_empty() && file.is_none() {
            return Ok(false);
        }
        env_file::change(&dir.join(SETTINGS), &values, OS_IMAGES_FILE)?;
        Ok(true)
    }
}

/// The list in the file of `OS_IMAGES_FILE`.
fn of_file(path: &str, dir: &Path) -> Result<Vec<Value>, Error> {
    let Some(name) = path.strip_prefix(MOUNTED) else {
        let reason = format!("set OS_IMAGES to the content of {path}, and remove OS_IMAGES_FILE");
        return Err(Error::new(format!("reading {OS_IMAGES_FILE}"), reason));
    };
    let path = dir.join(FOLDER).join(name);
    match fs::read_to_string(&path) {
        Ok(text) => entries(&path.display().to_string(), &text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(Error::new(format!("reading {}", path.display()), error)),
    }
}

fn entries(place: &str, text: &str) -> Result<Vec<Value>, Error> {
    let text = if text.trim().is_empty() { "[]" } else { text };
    serde_json::from_str(text).doing(|| format!("reading {place}"))
}

/// The entries of a list that were not written. The default is no part of an entry: it changed with other releases.
fn others(list: &[Value], written: &[Value]) -> Vec<Value> {
    let written: Vec<Value> = written.iter().map(without_default).collect();
    let others = list
        .iter()
        .filter(|it| !written.contains(&without_default(it)));
    others.cloned().collect()
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

    fn image(version: &str) -> Value {
        let url = format!("file:///images/{version}.iso");
        json!({"openshift_version": version, "cpu_architecture": "x86_64", "url": url})
    }

    fn release(version: &str, default: bool) -> Value {
        let mut release = json!({"version": version, "cpu_architecture": "x86_64"});
        if default {
            release[DEFAULT] = json!(true);
        }
        release
    }

    fn list(entries: &[Value]) -> String {
        Value::from(entries.to_vec()).to_string()
    }

    /// The settings after the entries were removed twice.
    fn removed(settings: &str, file: Option<&str>) -> Result<String, Error> {
        removed_unless(settings, file, "")
    }

    /// As [`removed`], with answers that have a list.
    fn removed_unless(settings: &str, file: Option<&str>, answered: &str) -> Result<String, Error> {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join(FOLDER)).unwrap();
        let compose = "services: {db: {image: a, restart: always, healthcheck: {test: []}}}";
        fs::write(dir.path().join("compose.yaml"), compose).unwrap();
        fs::write(dir.path().join(SETTINGS), settings).unwrap();
        if let Some(list) = file {
            fs::write(dir.path().join("images/os-images.json"), list).unwrap();
        }
        let written = WrittenEntries {
            boot_images: vec![image("4.17"), image("4.18")],
            releases: vec![release("4.17.1", false), release("4.18.1", true)],
        };
        let answers = Answers {
            host: "h".to_owned(),
            settings: vec![(answered.to_owned(), "[]".to_owned())],
        };
        let remove = || {
            let project = ComposeProject::read(dir.path())?;
            written.remove(&project, dir.path(), &answers)
        };
        let changed = remove()?;
        let text = fs::read_to_string(dir.path().join(SETTINGS)).unwrap();
        assert_eq!(changed, text != settings);
        assert!(!remove()?);
        Ok(text)
    }

    #[test]
    fn written_entries_are_taken_out() {
        let settings = format!(
            "A=1\nRELEASE_IMAGES={}\nOS_IMAGES=[]\nOS_IMAGES_FILE=/images/os-images.json\nB=2\n",
            list(&[release("4.17.1", true), release("4.18.1", false)])
        );
        let expected = "A=1\nRELEASE_IMAGES=[]\nOS_IMAGES=[]\nB=2\n";
        let written = list(&[image("4.17"), image("4.18")]);
        assert_eq!(removed(&settings, Some(&written)).unwrap(), expected);
        assert_eq!(removed(&settings, None).unwrap(), expected);
        assert_eq!(removed(expected, None).unwrap(), expected);
        assert_eq!(removed("A=1\n", None).unwrap(), "A=1\n");
    }

    #[test]
    fn entries_of_the_site_stay() {
        let (own, mut changed) = (image("4.16"), image("4.18"));
        changed["url"] = json!("https://h.example/own.iso");
        let kept = list(&[own.clone(), changed.clone()]);
        let all = list(&[own.clone(), image("4.17"), changed]);
        let file = "OS_IMAGES_FILE=/images/os-images.json\n";
        let expected = format!("OS_IMAGES={kept}\n");
        assert_eq!(removed(file, Some(&all)).unwrap(), expected);
        let setting = format!("OS_IMAGES={all}\n");
        assert_eq!(removed(&setting, None).unwrap(), expected);
        let releases = |entries: &[Value]| format!("RELEASE_IMAGES={}\n", list(entries));
        let both = releases(&[release("4.16.1", true), release("4.18.1", true)]);
        let expected = releases(&[release("4.16.1", true)]);
        assert_eq!(removed(&both, None).unwrap(), expected);
        let answered = removed_unless(&both, None, RELEASE_IMAGES).unwrap();
        assert_eq!(answered, both);
        let both = format!("{setting}{file}");
        let answered = removed_unless(&both, None, OS_IMAGES).unwrap();
        assert_eq!(answered, setting);
    }

    #[test]
    fn other_files_and_malformed_lists_are_named() {
        let error = removed("OS_IMAGES_FILE=/data/mine.json\n", None).unwrap_err();
        assert!(error.to_string().contains("/data/mine.json"), "{error}");
        let error = removed("OS_IMAGES={\n", None).unwrap_err();
        assert!(error.to_string().contains(OS_IMAGES), "{error}");
        let file = "OS_IMAGES_FILE=/images/os-images.json\n";
        let error = removed(file, Some("{")).unwrap_err();
        assert!(error.to_string().contains("os-images.json"), "{error}");
    }
}
