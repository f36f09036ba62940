//! State file between two commands, as the real installer writes it beside its outputs.

use std::fs;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::config::InstallConfig;
use super::files::{InstallerFailure, fail, file_failure, write};
use super::pki::Identity;

const STATE_FILE: &str = ".openshift_install_state.json";
const INSTALL_CONFIG: &str = "install-config.yaml";

/// A checked install-config and the identity made for it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct InstallerState {
    pub(super) install_config: InstallConfig,
    pub(super) identity: Identity,
}

impl InstallerState {
    /// Consumes install-config.yaml of `folder`.
    pub(super) fn consume_install_config(folder: &Path) -> Result<Self, InstallerFailure> {
        let path = folder.join(INSTALL_CONFIG);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return fail(format!(
                    "failed to load asset \"Install Config\": there is no {INSTALL_CONFIG} in {}",
                    folder.display()
                ));
            }
            Err(error) => return Err(file_failure("read", &path, &error)),
        };
        let install_config = parse(&text)?;
        let identity = Identity::generate(&install_config)?;
        let state = Self {
            install_config,
            identity,
        };
        state.save(folder)?;
        fs::remove_file(&path).map_err(|error| file_failure("remove", &path, &error))?;
        Ok(state)
    }

    /// Loads the state file of `folder`, or consumes install-config.yaml when there is none.
    pub(super) fn load(folder: &Path) -> Result<Self, InstallerFailure> {
        let path = folder.join(STATE_FILE);
        match fs::read(&path) {
            Ok(text) => serde_json::from_slice(&text).map_err(|error| {
                InstallerFailure(format!("failed to load the state file: {error}"))
            }),
            Err(_) => Self::consume_install_config(folder),
        }
    }

    fn save(&self, folder: &Path) -> Result<(), InstallerFailure> {
        let text = serde_json::to_vec_pretty(self)
            .map_err(|error| InstallerFailure(format!("failed to save the state file: {error}")))?;
        write(folder, STATE_FILE, &text)
    }
}

/// Parses and checks the text of an install-config.
pub(super) fn parse(text: &str) -> Result<InstallConfig, InstallerFailure> {
    let invalid = |why: String| {
        InstallerFailure(format!(
            "failed to load asset \"Install Config\": failed to create install config: invalid \
             \"{INSTALL_CONFIG}\" file: {why}"
        ))
    };
    let config: InstallConfig = serde_yaml::from_str(text)
        .map_err(|error| invalid(error.to_string().replace('\n', " ")))?;
    match super::check::problems(&config) {
        problems if problems.is_empty() => Ok(config),
        problems if problems.len() == 1 => Err(invalid(problems.concat())),
        problems => Err(invalid(format!("[{}]", problems.join(", ")))),
    }
}
