//! Checks before anything is written: podman, the folder's name, ports.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::{Path, PathBuf};

use service::Error;
use service::settings::env_lines;

use super::answers::Answers;
use crate::{pod, podman};

/// Prefix of the settings of published ports.
const PUBLISH: &str = "PUBLISH_";

/// Folders of podman.
#[derive(Debug, Clone)]
pub(super) struct PodmanStorage {
    /// Of images and containers.
    pub(super) graph: PathBuf,
    /// Of volumes.
    pub(super) volumes: PathBuf,
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
