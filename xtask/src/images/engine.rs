//! Podman or buildah: packs, inspects and writes images.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};
use serde::Deserialize;

use crate::apt;
use crate::command::{output, run, shown};

/// Flags that make the digest depend on the content alone: no layer cache, no date, no version of the engine.
/// Without the history of its steps, engines could not build other images upon it.
pub(super) const FLAGS: [&str; 8] = [
    "build",
    "--quiet",
    "--format=oci",
    "--layers=false",
    "--no-cache",
    "--pull=never",
    "--timestamp=0",
    "--identity-label=false",
];

const VERSION_LABEL: &str = "org.opencontainers.image.version";

/// A program that packs and stores images.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ImageEngine {
    Podman,
    Buildah,
}

/// An image in an engine's storage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stored {
    pub(super) id: String,
    /// Digest of its manifest.
    pub(super) digest: String,
    pub(super) size_bytes: u64,
    /// Digests of its layers, the lowest first.
    pub(super) layers: Vec<String>,
    /// Its names; unknown with buildah.
    names: Option<Vec<String>>,
}

#[cfg(test)]
impl Stored {
    /// An image with this digest.
    pub(super) fn of_test(digest: &str) -> Self {
        Self {
            id: String::new(),
            digest: digest.to_owned(),
            size_bytes: 0,
            layers: Vec::new(),
            names: None,
        }
    }
}

/// An image to be packed.
#[derive(Debug, Clone, Copy)]
pub(super) struct ImageBuild<'a> {
    /// Its name in storage.
    pub(super) reference: &'a str,
    pub(super) version: &'a str,
    /// Name of the image below it; none: the one of the Containerfile.
    pub(super) base: Option<&'a str>,
    /// The instructions.
    pub(super) containerfile: &'a Path,
    /// The folder with the files.
    pub(super) context: &'a Path,
}

impl ImageEngine {
    const ALL: [Self; 2] = [Self::Podman, Self::Buildah];

    /// The installed and working one; podman before buildah, since it also runs images.
    pub(super) fn find() -> Option<Self> {
        let mut present = Self::ALL.into_iter().filter(|engine| engine.is_present());
        present.find(|engine| engine.try_out().is_ok())
    }

    /// The installed one; installs both when there is none.
    pub(super) fn ensure() -> Result<Self> {
        if !Self::ALL.iter().any(|engine| engine.is_present()) {
            let mut packages = vec!["podman", "buildah"];
            if !apt::is_root() {
                // Images have files of several users; rootless podman needs subordinate ids.
                packages.push("uidmap");
            }
            apt::install(&packages, "one of them packs images")?;
        }
        if let Some(engine) = Self::find() {
            return Ok(engine);
        }
        Self::Podman.try_out()?;
        bail!("the packages were installed, but neither podman nor buildah is found")
    }

    fn is_present(self) -> bool {
        apt::is_program(self.program())
    }

    /// Whether it can use its storage: an installed engine may lack permissions.
    fn try_out(self) -> Result<()> {
        output(&mut self.command(&["info"])).map(drop)
    }

    fn program(self) -> &'static str {
        match self {
            Self::Podman => "podman",
            Self::Buildah => "buildah",
        }
    }

    fn command(self, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.program());
        command.args(arguments).stdin(Stdio::null());
        command
    }

    /// Packs an image. An earlier one of that name is removed, unless a container or another image uses it.
    pub(super) fn pack(self, build: ImageBuild<'_>) -> Result<Stored> {
        let reference = build.reference;
        let before = self.inspect(reference)?;
        let mut command = self.command(&FLAGS);
        if let Some(base) = build.base {
            command.args(["--from", base]);
        }
        command
            .arg(format!("--label={VERSION_LABEL}={}", build.version))
            .args(["--tag", reference])
            .arg("--file")
            .arg(build.containerfile)
            .arg(build.context);
        output(&mut command)?;
        let packed = self
            .inspect(reference)?
            .with_context(|| format!("{reference} was packed, but is missing"))?;
        if let Some(before) = before
            && before.id != packed.id
        {
            self.remove_unnamed(&before.id)?;
        }
        Ok(packed)
    }

    /// The image of this name.
    pub(super) fn inspect(self, reference: &str) -> Result<Option<Stored>> {
        let arguments: &[&str] = match self {
            Self::Podman => {
                if !self.has(reference)? {
                    return Ok(None);
                }
                &["image", "inspect", reference]
            }
            Self::Buildah => &["inspect", "--type", "image", reference],
        };
        let answer = match output(&mut self.command(arguments)) {
            Ok(answer) => answer,
            // Buildah reports a missing image like any other failure; packing will show the difference.
            Err(_) if self == Self::Buildah => return Ok(None),
            Err(error) => return Err(error),
        };
        let stored = match self {
            Self::Podman => of_podman(&answer),
            Self::Buildah => of_buildah(&answer),
        };
        let program = self.program();
        let stored =
            stored.with_context(|| format!("reading what {program} knows of {reference}"))?;
        Ok(Some(stored))
    }

    fn has(self, reference: &str) -> Result<bool> {
        let mut command = self.command(&["image", "exists", reference]);
        let status = command.status().context("running podman")?;
        match status.code() {
            Some(0) => Ok(true),
            Some(1) => Ok(false),
            _ => bail!("{}: {status}", shown(&command)),
        }
    }

    /// An untagged image takes room and has no use; one that a container uses stays.
    fn remove_unnamed(self, id: &str) -> Result<()> {
        let is_unnamed = self
            .inspect(id)?
            .is_some_and(|stored| stored.names.is_some_and(|names| names.is_empty()));
        if is_unnamed {
            output(&mut self.command(&["rmi", id])).ok();
        }
        Ok(())
    }

    /// Removes a name, and the image with its last one.
    #[cfg(test)]
    pub(super) fn remove(self, reference: &str) -> Result<()> {
        output(&mut self.command(&["rmi", reference])).map(drop)
    }

    /// Writes an image to the new folder `layout`; its digest is unchanged.
    pub(super) fn write_layout(self, reference: &str, layout: &Path) -> Result<()> {
        if self == Self::Podman {
            let arguments = ["save", "--quiet", "--format=oci-dir", "--uncompressed"];
            let mut command = self.command(&arguments);
            command.arg("--output").arg(layout).arg(reference);
            return output(&mut command).map(drop);
        }
        // Buildah itself would compress the layers, which changes the digest.
        if !apt::is_program("skopeo") {
            apt::install(&["skopeo"], "it writes images to folders")?;
        }
        let mut command = Command::new("skopeo");
        command
            .args(["copy", "--quiet", "--preserve-digests"])
            .arg(format!("containers-storage:{reference}"))
            .arg(format!("oci:{}:{reference}", layout.display()));
        output(&mut command).map(drop)
    }

    /// Whether a file of this name is compressed.
    ///
    /// Errors: this engine cannot write it, or podman cannot load it.
    pub(super) fn can_save(self, path: &Path) -> Result<bool> {
        ensure!(
            self == Self::Podman,
            "one file with several images is written by podman: install it"
        );
        is_compressed(path)
    }

    /// Writes all images to one file for `podman load`; compressed when its name ends in `.zst`.
    pub(super) fn save(self, references: &[String], path: &Path) -> Result<()> {
        let is_compressed = self.can_save(path)?;
        let mut save = self.command(&["save", "--quiet", "--multi-image-archive"]);
        save.args(references);
        if !is_compressed {
            fs::remove_file(path).ok();
            return run(save.arg("--output").arg(path));
        }
        if !apt::is_program("zstd") {
            apt::install(&["zstd"], "it compresses the file")?;
        }
        compress(&mut save, path)
    }
}

/// Whether a file of this name is compressed.
///
/// Errors: neither. Podman loads these two kinds; gzip it reads only from a pipe.
fn is_compressed(path: &Path) -> Result<bool> {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("tar") => Ok(false),
        Some("zst") => Ok(true),
        _ => bail!(
            "{}: the name has to end in .tar or .tar.zst",
            path.display()
        ),
    }
}

/// Pipes the output of `save` through zstd to a file.
fn compress(save: &mut Command, path: &Path) -> Result<()> {
    let file = File::create(path).with_context(|| format!("making {}", path.display()))?;
    let mut saving = save
        .stdout(Stdio::piped())
        .spawn()
        .context("running podman save")?;
    let archive = saving.stdout.take().context("podman save has no output")?;
    let compressed = run(Command::new("zstd")
        .args(["--quiet", "-T0", "-12"])
        .stdin(archive)
        .stdout(file));
    let status = saving.wait()?;
    ensure!(status.success(), "{}: {status}", shown(save));
    compressed
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct PodmanImage {
    id: String,
    digest: String,
    size: u64,
    repo_tags: Option<Vec<String>>,
    #[serde(rename = "RootFS")]
    root_fs: PodmanRootFs,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct PodmanRootFs {
    layers: Vec<String>,
}

fn of_podman(answer: &[u8]) -> Result<Stored> {
    let mut images: Vec<PodmanImage> = serde_json::from_slice(answer)?;
    let image = images.pop().context("no image is described")?;
    Ok(Stored {
        id: image.id,
        digest: image.digest,
        size_bytes: image.size,
        layers: image.root_fs.layers,
        names: Some(image.repo_tags.unwrap_or_default()),
    })
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct BuildahImage {
    #[serde(rename = "FromImageID")]
    from_image_id: String,
    from_image_digest: String,
    /// The manifest's text.
    manifest: String,
}

#[derive(Debug, Deserialize)]
struct BuildahManifest {
    config: BuildahBlob,
    layers: Vec<BuildahBlob>,
}

#[derive(Debug, Deserialize)]
struct BuildahBlob {
    size: u64,
    digest: String,
}

fn of_buildah(answer: &[u8]) -> Result<Stored> {
    let image: BuildahImage = serde_json::from_slice(answer)?;
    let manifest: BuildahManifest = serde_json::from_str(&image.manifest)?;
    let sizes: u64 = manifest.layers.iter().map(|layer| layer.size).sum();
    let layers = manifest.layers.into_iter().map(|layer| layer.digest);
    Ok(Stored {
        id: image.from_image_id,
        digest: image.from_image_digest,
        size_bytes: sizes + manifest.config.size,
        layers: layers.collect(),
        names: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn podman_describes_an_image() {
        let answer =
            br#"[{"Id":"81","Digest":"sha256:b0","Size":8588657,"RepoTags":["localhost/atoll/a:1"],
            "RootFS":{"Type":"layers","Layers":["sha256:c1","sha256:c2"]}}]"#;
        let stored = of_podman(answer).unwrap();
        assert_eq!(stored.digest, "sha256:b0");
        assert_eq!(stored.size_bytes, 8_588_657);
        assert_eq!(stored.layers, ["sha256:c1", "sha256:c2"]);
        assert_eq!(stored.names.unwrap(), ["localhost/atoll/a:1"]);
        let unnamed = br#"[{"Id":"81","Digest":"sha256:b0","Size":1,"RootFS":{"Layers":[]}}]"#;
        let unnamed = of_podman(unnamed).unwrap();
        assert_eq!(unnamed.names.unwrap(), [""; 0]);
        assert!(of_podman(b"[]").is_err());
    }

    #[test]
    fn buildah_describes_an_image() {
        let manifest = r#"{"config":{"size":1500,"digest":"sha256:c0"},"layers":[
            {"size":8953344,"digest":"sha256:c1"},{"size":6,"digest":"sha256:c2"}]}"#;
        let answer = serde_json::json!({
            "FromImageID": "74", "FromImageDigest": "sha256:7a", "Manifest": manifest,
        });
        let stored = of_buildah(answer.to_string().as_bytes()).unwrap();
        assert_eq!(
            (stored.id.as_str(), stored.digest.as_str()),
            ("74", "sha256:7a")
        );
        assert_eq!(stored.size_bytes, 8_954_850);
        assert_eq!(stored.layers, ["sha256:c1", "sha256:c2"]);
        assert_eq!(stored.names, None);
    }

    #[test]
    fn only_files_that_podman_loads_are_written() {
        assert!(!is_compressed(Path::new("a.tar")).unwrap());
        assert!(is_compressed(Path::new("b/a.tar.zst")).unwrap());
        for name in ["a.tar.gz", "a", "tar"] {
            assert!(is_compressed(Path::new(name)).is_err(), "{name}");
        }
    }
}
