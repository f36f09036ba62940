//! The file with the OS images on offer, which may change while the service runs.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::settings::{OsImage, os_image_problems};

/// Longest file. Units: bytes. An entry has some hundreds.
const MAX_FILE: u64 = 1 << 20;
/// How often the file is read. Polling works on every kind of mount, inotify does not.
const INTERVAL: Duration = Duration::from_secs(5);

/// The file as it was last read.
#[derive(Debug)]
pub(crate) struct OsImagesFile {
    path: PathBuf,
    text: Result<String, String>,
    images: Vec<OsImage>,
}

impl OsImagesFile {
    /// Errors: it cannot be read, or is no valid list.
    pub(crate) fn open(path: &Path) -> Result<Self, String> {
        let text = read(path)?;
        Ok(Self {
            path: path.to_owned(),
            images: parse(path, &text)?,
            text: Ok(text),
        })
    }

    /// Its images.
    pub(crate) fn images(&self) -> &[OsImage] {
        &self.images
    }

    /// Waits until it has another valid list.
    pub(crate) async fn changed(&mut self) -> Vec<OsImage> {
        loop {
            tokio::time::sleep(INTERVAL).await;
            if let Some(images) = self.changes().await {
                return images;
            }
        }
    }

    /// The list, if it is another one. One that cannot be used is reported once.
    async fn changes(&mut self) -> Option<Vec<OsImage>> {
        let path = self.path.clone();
        let read = tokio::task::spawn_blocking(move || read(&path)).await;
        let text = read.unwrap_or_else(|error| Err(error.to_string()));
        if text == self.text {
            return None;
        }
        let parsed = text.clone().and_then(|text| parse(&self.path, &text));
        self.text = text;
        match parsed {
            Ok(images) => {
                tracing::info!(images = images.len(), "OS_IMAGES_FILE has changed");
                Some(images)
            }
            Err(reason) => {
                tracing::error!(
                    reason,
                    "OS_IMAGES_FILE cannot be used, the images on offer stay"
                );
                None
            }
        }
    }
}

fn read(path: &Path) -> Result<String, String> {
    let file = std::fs::File::open(path);
    let mut text = String::new();
    let read = file.and_then(|file| file.take(MAX_FILE + 1).read_to_string(&mut text));
    let length = read.map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
    if length as u64 > MAX_FILE {
        let path = path.display();
        return Err(format!("{path} has more than {MAX_FILE} bytes"));
    }
    Ok(text)
}

fn parse(path: &Path, text: &str) -> Result<Vec<OsImage>, String> {
    let path = path.display();
    let images: Vec<OsImage> = serde_json::from_str(text)
        .map_err(|error| format!("{path} is no JSON list of OS images: {error}"))?;
    match os_image_problems(&images).as_slice() {
        [] => Ok(images),
        problems => Err(format!("{path}: {}", problems.join("; "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str =
        r#"[{"openshift_version":"4.18","cpu_architecture":"x86_64","version":"418","url":""}]"#;

    #[test]
    fn files_are_bounded_and_checked() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("list.json");
        let open = |text: &str| {
            std::fs::write(&path, text).unwrap();
            OsImagesFile::open(&path)
        };
        let longest = LIST.to_owned() + &" ".repeat((1 << 20) - LIST.len());
        assert_eq!(open(&longest).unwrap().images().len(), 1);
        let refused = |text: &str| open(text).unwrap_err();
        assert!(refused(&(longest + " ")).contains("more than 1048576 bytes"));
        assert!(refused("[").contains("no JSON list"));
        let bad = refused(&LIST.replace("4.18", "4 18"));
        assert!(bad.contains("[0].openshift_version"), "{bad}");
        let unreadable = OsImagesFile::open(folder.path()).unwrap_err();
        assert!(unreadable.contains("cannot be read"), "{unreadable}");
    }

    #[tokio::test]
    async fn changes_are_noticed_and_faults_change_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("list.json");
        std::fs::write(&path, LIST).unwrap();
        let mut file = OsImagesFile::open(&path).unwrap();
        assert_eq!(file.changes().await, None);
        std::fs::write(&path, "[").unwrap();
        assert_eq!(file.changes().await, None);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(file.changes().await, None);
        std::fs::write(&path, LIST.replace("418", "419")).unwrap();
        assert_eq!(file.changes().await.unwrap()[0].version, "419");
        assert_eq!(file.changes().await, None);
    }
}
