//! Checks before anything is written: podman, space, ports.

use std::collections::BTreeMap;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use ::bundle::assemble::{ARCHIVES, BOOT_IMAGES, PROGRAM};
use ::bundle::{BundleFile, ImageUse};
use service::Error;
use service::settings::env_lines;

use super::answers::Answers;
use super::images;
use crate::{pod, podman, terminal};

/// Units: bytes. For settings, certificates, logs, and the metadata of file systems.
const RESERVE_BYTES: u64 = 256 << 20;
/// Prefix of the settings of published ports.
const PUBLISH: &str = "PUBLISH_";

/// Folders of podman.
#[derive(Debug, Clone)]
pub(super) struct PodmanStorage {
    /// Of images and containers.
    graph: PathBuf,
    /// Of volumes.
    volumes: PathBuf,
}

impl PodmanStorage {
    /// Errors: podman is missing or does not work.
    pub(super) fn find() -> Result<Self, Error> {
        let format = "{{.Store.GraphRoot}}\n{{.Store.VolumePath}}";
        let text = podman::run(&["info", "--format", format]).map_err(|e| {
            let reason = format!("{}; podman 4.3 or newer is needed on this host", e.source);
            Error::new(e.doing, reason)
        })?;
        let mut lines = text.lines().map(PathBuf::from);
        match (lines.next(), lines.next()) {
            (Some(graph), Some(volumes)) => Ok(Self { graph, volumes }),
            _ => Err(Error::new("running podman info", "it names no storage")),
        }
    }
}

/// Whether podman can mount files of the folder.
///
/// Errors: it cannot.
pub(super) fn folder_name(dir: &Path) -> Result<(), Error> {
    match dir.to_str() {
        Some(text) if !text.contains([',', '"', '\n']) => Ok(()),
        _ => Err(Error::new(
            format!("choosing the folder {}", dir.display()),
            "podman cannot mount paths with commas, quotation marks or bytes that are not UTF-8: choose another --dir",
        )),
    }
}

/// Compares the needed bytes of each file system with its free ones. Without `dir`, images are loaded only.
///
/// Errors: too little space, with all file systems concerned.
pub(super) fn space(
    bundle: &BundleFile,
    storage: &PodmanStorage,
    dir: Option<&Path>,
) -> Result<(), Error> {
    let manifest = bundle.manifest();
    let size_of = |digest: &oci::Digest| {
        let path = ::bundle::blob_path(digest);
        bundle.member(&path).map_or(0, |member| member.content_size)
    };
    let missing = images::missing(bundle);
    let size_of_image =
        |image: &&::bundle::BundledImage| image.content.iter().map(size_of).sum::<u64>();
    let loaded: u64 = missing.iter().map(size_of_image).sum();
    // The layout is temporary, and has one image at a time.
    let layout = missing.iter().map(size_of_image).max().unwrap_or_default();
    let below = |folder: &str| bundle.below(folder).map(|it| it.content_size).sum::<u64>();
    let mut needs = vec![(storage.graph.as_path(), loaded)];
    match dir {
        None => needs.push((Path::new("."), layout)),
        Some(dir) => {
            let pushed = manifest
                .images
                .iter()
                .filter(|it| it.used == ImageUse::Registry);
            let pushed: u64 = pushed.flat_map(|it| &it.content).map(size_of).sum();
            let program = bundle.member(PROGRAM).map_or(0, |it| it.content_size);
            let archives = below(ARCHIVES);
            // The layout is removed before archives are extracted.
            let files = program + below(BOOT_IMAGES) + layout.max(archives);
            needs.push((dir, files));
            needs.push((storage.volumes.as_path(), pushed + archives));
        }
    }
    let mut by_device: BTreeMap<u64, (PathBuf, u64)> = BTreeMap::new();
    for (path, bytes) in needs {
        let path = existing(path);
        let doing = || format!("reading {}", path.display());
        let device = fs::metadata(&path)
            .map_err(|e| Error::new(doing(), e))?
            .dev();
        by_device
            .entry(device)
            .or_insert_with(|| (path, RESERVE_BYTES))
            .1 += bytes;
    }
    let mut problems = Vec::new();
    for (path, needed) in by_device.into_values() {
        let doing = || format!("reading the free space of {}", path.display());
        let found = rustix::fs::statvfs(&path).map_err(|e| Error::new(doing(), e))?;
        let free = found.f_bavail * found.f_frsize;
        if free < needed {
            let (needed, free) = (terminal::mib(needed), terminal::mib(free));
            problems.push(format!(
                "the file system of {} needs {needed} and has {free} free",
                path.display()
            ));
        }
    }
    if problems.is_empty() {
        return Ok(());
    }
    Err(Error::new("checking the free space", problems.join("; ")))
}

/// The path, or the closest folder above it that exists.
fn existing(path: &Path) -> PathBuf {
    let mut ancestors = path.ancestors();
    let found = ancestors.find(|path| path.exists());
    match found {
        Some(path) if !path.as_os_str().is_empty() => path.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// Whether the published ports of a new installation are free.
///
/// Errors: a port in use, with its setting.
pub(super) fn ports(dir: &Path, answers: &Answers) -> Result<(), Error> {
    // Of a repeated installation: its own containers use them.
    if dir.join(pod::compose::COMPOSE).exists() {
        return Ok(());
    }
    let template = pod::templates().find(|(name, _)| *name == "atoll.env");
    let lines = env_lines(template.map_or("", |(_, text)| text)).unwrap_or_default();
    let mut settings: BTreeMap<&str, &str> = lines.into_iter().collect();
    settings.extend(
        answers
            .settings
            .iter()
            .map(|(name, value)| (&**name, &**value)),
    );
    for (name, published) in settings
        .iter()
        .filter(|(name, _)| name.starts_with(PUBLISH))
    {
        let address = if published.contains(':') {
            (*published).to_owned()
        } else {
            format!("0.0.0.0:{published}")
        };
        if let Err(error) = TcpListener::bind(&address) {
            let reason =
                format!("{error}: choose another one for {name} in `settings` of --answers");
            return Err(Error::new(format!("checking the port {published}"), reason));
        }
    }
    Ok(())
}
