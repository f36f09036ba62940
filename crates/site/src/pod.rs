//! The pod: files for `podman-compose up` and `podman play kube`, and the life of the containers, with podman alone.

pub(crate) mod compose;
mod configmap;
mod container;
pub mod folder;
pub mod lifecycle;
pub(crate) mod proxy_settings;
pub mod quadlet;
#[cfg(test)]
mod secret_tests;
pub(crate) mod settings_files;

use std::path::Path;

use service::{Error, ResultExt as _};

pub use configmap::SETTINGS;
pub use folder::PROXY;
pub(crate) use folder::REGISTRY;

/// Files of the pod with placeholders, by name: those of its version, and its settings.
pub fn templates() -> impl Iterator<Item = (&'static str, &'static str)> {
    let settings = [
        ("atoll.env", folder::TEMPLATE_OF_SETTINGS),
        ("proxy.env", proxy_settings::TEMPLATE),
    ];
    folder::OF_VERSION.into_iter().chain(settings)
}

/// The settings of the pod in `dir` as a ConfigMap.
///
/// Errors: they cannot be read, or have a malformed line.
pub fn configmap(dir: &Path) -> Result<String, Error> {
    let path = dir.join(SETTINGS);
    let doing = || format!("reading {}", path.display());
    let text = std::fs::read_to_string(&path).doing(doing)?;
    configmap::render(&text)
        .map_err(|number| Error::new(doing(), service::settings::not_a_line(&path, number)))
}
