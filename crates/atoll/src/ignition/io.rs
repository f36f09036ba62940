//! Reading and writing of configurations.

use std::fs::File;
use std::io::{self, Read, Write as _};
use std::path::{Path, PathBuf};

use clap::Args;
use ignition::ConfigDocument;
use located_yaml::v1_2::MAX_BYTES;
use service::file::write_atomic;
use service::{Error, ResultExt as _};

/// Configurations have password hashes and keys.
const MODE: u32 = 0o600;

/// Destination of a configuration.
#[derive(Debug, Clone, Args)]
pub(super) struct ConfigOutput {
    /// Output file, readable by its owner only. Default: standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace the output file
    #[arg(long, short, requires = "output")]
    force: bool,
    /// Indent the JSON
    #[arg(long, short)]
    pretty: bool,
}

impl ConfigOutput {
    /// Writes the configuration with a line break at its end.
    ///
    /// Errors: the file exists, or cannot be written.
    pub(super) fn write(&self, document: &ConfigDocument) -> Result<(), Error> {
        let json = document.to_json();
        let text = if self.pretty {
            format!("{json:#}\n")
        } else {
            format!("{json}\n")
        };
        let Some(path) = &self.output else {
            return write_bytes(text.as_bytes());
        };
        if path.exists() && !self.force {
            let doing = format!("writing {}", path.display());
            return Err(Error::new(doing, "it exists; use --force to replace it"));
        }
        write_atomic(path, text.as_bytes(), MODE)
    }
}

/// Writes to standard output without any change.
///
/// Errors: it is closed.
pub(super) fn write_bytes(bytes: &[u8]) -> Result<(), Error> {
    let mut out = io::stdout().lock();
    let written = out.write_all(bytes).and_then(|()| out.flush());
    written.doing("writing to standard output")
}

/// Reads a file, or standard input for `-`.
///
/// Errors: it cannot be read, or is larger than a configuration may be.
pub(super) fn read_bounded(path: &Path) -> Result<Vec<u8>, Error> {
    let doing = || format!("reading {}", path.display());
    let mut source: Box<dyn Read> = if path.as_os_str() == "-" {
        Box::new(io::stdin())
    } else {
        Box::new(File::open(path).doing(doing)?)
    };
    let mut bytes = Vec::new();
    let mut bounded = source.by_ref().take(MAX_BYTES as u64 + 1);
    let read = bounded.read_to_end(&mut bytes);
    read.doing(doing)?;
    if bytes.len() > MAX_BYTES {
        return Err(Error::new(
            doing(),
            format!("it has more than {MAX_BYTES} bytes"),
        ));
    }
    Ok(bytes)
}
