//! `atoll secrets`: the key file that stored secrets are sealed with.

use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use clap::{Args, Subcommand};
use rand::RngExt as _;
use service::Error;
use service::file::rewrite_atomic;

use crate::terminal;

/// Units: bytes.
const KEY_BYTES: usize = 32;
const OWNER_ONLY: u32 = 0o600;

/// Subcommands for stored secrets.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum SecretsCommand {
    /// Add a new key to a key file, which is created if missing
    ///
    /// Set SECRETS_KEY_FILE of the api-server to the file. A running one that has it seals all stored secrets with the
    /// new key, and logs when the older keys are no longer needed: their lines may be removed then. Keep the file
    /// outside of the data directory: backups do not contain it then, and restoring one needs it. A container that
    /// mounts this single file sees the change after a restart.
    RotateKey(RotateKeyArgs),
}

/// Arguments of `atoll secrets rotate-key`.
#[derive(Debug, Clone, Args)]
pub(crate) struct RotateKeyArgs {
    /// Key file
    file: PathBuf,
}

/// Runs the subcommand.
///
/// Errors: an unreadable or unwritable file, or one that is no key file.
pub(crate) fn run(command: &SecretsCommand) -> Result<(), Error> {
    let SecretsCommand::RotateKey(RotateKeyArgs { file }) = command;
    let failed = |reason: String| Error::new(format!("rotating {}", file.display()), reason);
    let known = match fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        Err(error) => return Err(failed(error.to_string())),
    };
    let older = older_keys(&known).map_err(failed)?;
    let key: [u8; KEY_BYTES] = rand::rng().random();
    // The newest first: it seals.
    let text = format!("{}\n{known}", BASE64.encode(key));
    rewrite_atomic(file, text.as_bytes(), OWNER_ONLY)?;
    let shown = file.display();
    terminal::print(&match older {
        0 => format!("{shown}: created. Set SECRETS_KEY_FILE={shown} and restart the api-server."),
        _ => format!("{shown}: new key added before {older} older."),
    });
    Ok(())
}

/// Number of keys in the file.
fn older_keys(text: &str) -> Result<usize, String> {
    let mut count = 0;
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if BASE64.decode(line).is_ok_and(|key| key.len() == KEY_BYTES) {
            count += 1;
        } else {
            return Err(format!("line {} is no key: name a key file", index + 1));
        }
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn new_keys_are_first_and_older_ones_stay() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("keys");
        let command = SecretsCommand::RotateKey(RotateKeyArgs { file: file.clone() });
        run(&command).unwrap();
        let first = fs::read_to_string(&file).unwrap();
        assert_eq!(older_keys(&first), Ok(1));
        assert_eq!(
            fs::metadata(&file).unwrap().permissions().mode() & 0o777,
            OWNER_ONLY
        );
        run(&command).unwrap();
        let second = fs::read_to_string(&file).unwrap();
        assert_eq!(older_keys(&second), Ok(2));
        assert!(second.ends_with(&first) && second != first);

        fs::write(&file, "password\n").unwrap();
        let error = run(&command).unwrap_err().to_string();
        assert!(
            error.contains("line 1") && !error.contains("password"),
            "{error}"
        );
        assert_eq!(fs::read_to_string(&file).unwrap(), "password\n");
    }
}
