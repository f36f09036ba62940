//! The pod: files for `podman-compose up` and `podman play kube`, and the life of the containers, with podman alone.

pub(crate) mod compose;
mod configmap;
mod container;
pub(crate) mod init;
pub(crate) mod lifecycle;
pub(crate) mod proxy_settings;
pub(crate) mod quadlet;
#[cfg(test)]
mod secret_tests;

use std::path::Path;

use service::{Error, ResultExt as _};

use crate::terminal;
pub(crate) use configmap::SETTINGS;
pub(crate) use init::{PROXY, REGISTRY};
pub(crate) use quadlet::default_units;

/// Files of the pod with placeholders, by name: those of its version, and its settings.
pub(crate) fn templates() -> impl Iterator<Item = (&'static str, &'static str)> {
    let settings = [
        ("atoll.env", init::TEMPLATE_OF_SETTINGS),
        ("proxy.env", proxy_settings::TEMPLATE),
    ];
    init::OF_VERSION.into_iter().chain(settings)
}

/// Prints the settings as a ConfigMap.
///
/// Errors: they cannot be read, or have a malformed line.
pub(crate) fn print_configmap(dir: &Path) -> Result<(), Error> {
    let path = dir.join(SETTINGS);
    let doing = || format!("reading {}", path.display());
    let text = std::fs::read_to_string(&path).doing(doing)?;
    let text = configmap::render(&text)
        .map_err(|number| Error::new(doing(), service::settings::not_a_line(&path, number)))?;
    terminal::print(text.trim_end());
    Ok(())
}
