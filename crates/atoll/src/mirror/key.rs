//! Signing keys of archives.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use ::mirror::archive::Signer;
use clap::Args;
use secrecy::ExposeSecret as _;
use service::{Error, ResultExt as _};

use crate::terminal;

/// Mode of the private key.
const PRIVATE_MODE: u32 = 0o600;
const PUBLIC_MODE: u32 = 0o644;

/// Arguments of `atoll mirror key`.
#[derive(Debug, Clone, Args)]
pub(crate) struct KeyArgs {
    /// File for the private key (--sign); the public key is written to FILE.pub (verify --key)
    #[arg(value_name = "FILE")]
    key: PathBuf,
}

/// Generates a key pair.
///
/// Errors: a file exists or cannot be written.
pub(crate) fn run(arguments: &KeyArgs) -> Result<(), Error> {
    let private = &arguments.key;
    let mut public = private.clone().into_os_string();
    public.push(".pub");
    let public = PathBuf::from(public);
    let (signer, pem) = Signer::generate()
        .map_err(|e| e.chain())
        .doing("generating a key")?;
    write(private, PRIVATE_MODE, pem.expose_secret().as_bytes())?;
    write(&public, PUBLIC_MODE, signer.verifier().to_pem().as_bytes())?;
    terminal::print(&format!(
        "private key for --sign: {}; public key for verify --key: {}",
        private.display(),
        public.display()
    ));
    Ok(())
}

fn write(path: &Path, mode: u32, content: &[u8]) -> Result<(), Error> {
    let mut options = OpenOptions::new();
    let options = options.write(true).create_new(true).mode(mode);
    let written = options.open(path).and_then(|mut file| {
        file.write_all(content)?;
        file.sync_all()
    });
    written.doing(|| format!("writing {}", path.display()))
}
