//! The command `create`.

use std::io::Write;
use std::path::Path;

use serde_json::Value;

use super::files::{InstallerFailure, fail, write};
use super::state::InstallerState;
use super::{ignition_files, manifests};

/// Assets to create.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CreateTarget {
    /// `manifests/` and `openshift/`.
    Manifests,
    /// bootstrap.ign, master.ign, worker.ign, auth, metadata.json.
    IgnitionConfigs,
    /// bootstrap-in-place-for-live-iso.ign, auth, metadata.json.
    SingleNodeIgnitionConfig,
}

/// Creates `target` in `folder` for the release in `release_image`, with its progress on `log`.
pub fn create(
    target: CreateTarget,
    folder: &Path,
    release_image: &str,
    log: &mut dyn Write,
) -> Result<(), InstallerFailure> {
    if !release_image.contains("@sha256:") && !release_image.contains(':') {
        return fail("no release image: set OPENSHIFT_INSTALL_RELEASE_IMAGE_OVERRIDE");
    }
    match target {
        CreateTarget::Manifests => {
            say(log, "Consuming Install Config from target directory");
            let state = InstallerState::consume_install_config(folder)?;
            manifests::write_all(folder, &state)?;
            let text = format!(
                "Manifests created in: {0}/manifests and {0}/openshift",
                folder.display()
            );
            say(log, &text);
            Ok(())
        }
        CreateTarget::IgnitionConfigs => ignition_configs(folder, release_image, log),
        CreateTarget::SingleNodeIgnitionConfig => single_node(folder, release_image, log),
    }
}

fn ignition_configs(
    folder: &Path,
    release_image: &str,
    log: &mut dyn Write,
) -> Result<(), InstallerFailure> {
    let state = InstallerState::load(folder)?;
    let all = consume_manifests(folder, &state, log)?;
    let bootstrap = ignition_files::bootstrap(&state, &all, release_image)?;
    write_json(folder, "bootstrap.ign", &bootstrap)?;
    write_json(
        folder,
        "master.ign",
        &ignition_files::pointer(&state, "master"),
    )?;
    write_json(
        folder,
        "worker.ign",
        &ignition_files::pointer(&state, "worker"),
    )?;
    if state.install_config.arbiter.is_some() {
        write_json(
            folder,
            "arbiter.ign",
            &ignition_files::pointer(&state, "arbiter"),
        )?;
    }
    finish(folder, &state, log)
}

fn single_node(
    folder: &Path,
    release_image: &str,
    log: &mut dyn Write,
) -> Result<(), InstallerFailure> {
    let state = InstallerState::load(folder)?;
    if state.install_config.bootstrap_in_place.is_none() {
        return fail(
            "failed to fetch Single Node Ignition Config: bootstrapInPlace.installationDisk is required",
        );
    }
    let all = consume_manifests(folder, &state, log)?;
    let bootstrap = ignition_files::bootstrap(&state, &all, release_image)?;
    write_json(folder, "bootstrap-in-place-for-live-iso.ign", &bootstrap)?;
    finish(folder, &state, log)
}

fn consume_manifests(
    folder: &Path,
    state: &InstallerState,
    log: &mut dyn Write,
) -> Result<Vec<manifests::InstallManifest>, InstallerFailure> {
    if manifests::FOLDERS
        .iter()
        .all(|name| !folder.join(name).exists())
    {
        manifests::write_all(folder, state)?;
    }
    say(log, "Consuming Common Manifests from target directory");
    manifests::consume(folder)
}

fn finish(
    folder: &Path,
    state: &InstallerState,
    log: &mut dyn Write,
) -> Result<(), InstallerFailure> {
    let kubeconfig = state.identity.kubeconfig(&state.install_config)?;
    write(folder, "auth/kubeconfig", kubeconfig.as_bytes())?;
    write(
        folder,
        "auth/kubeadmin-password",
        state.identity.kubeadmin_password.as_bytes(),
    )?;
    write_json(folder, "metadata.json", &ignition_files::metadata(state))?;
    let text = format!(
        "Ignition-Configs created in: {0} and {0}/auth",
        folder.display()
    );
    say(log, &text);
    Ok(())
}

fn write_json(folder: &Path, name: &str, value: &Value) -> Result<(), InstallerFailure> {
    write(folder, name, value.to_string().as_bytes())
}

fn say(log: &mut dyn Write, text: &str) {
    // A log that cannot be written must not fail the run.
    let _ = writeln!(log, "level=info msg={text}");
}
