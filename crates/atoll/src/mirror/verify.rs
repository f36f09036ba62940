//! Whether an archive set is what was packed.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use ::mirror::archive::{self, Report, Verifier};
use clap::Args;
use serde_json::{Value, json};
use service::Error;

use crate::terminal;

/// How much is read between two looks at the terminal. Units: bytes.
const PROGRESS_BYTES: u64 = 64 << 20;

/// What is verified.
#[derive(Debug, Clone, Args)]
pub(crate) struct Arguments {
    /// The folder of an archive set, or one of its files
    #[arg(value_name = "DIR")]
    archive: PathBuf,
    /// Whether the set was signed with this key: the public half of an ed25519 key in PEM
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// Reads every byte, and tells all faults.
///
/// Errors: there is a fault, or no set.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Error> {
    let Arguments { archive, key, json } = arguments;
    let failed = |reason: String| Error::new(format!("verifying {}", archive.display()), reason);
    let key = key.as_deref().map(key_of).transpose()?;
    let read = AtomicU64::new(0);
    let progress = |bytes: u64| {
        let before = read.fetch_add(bytes, Ordering::Relaxed);
        if before / PROGRESS_BYTES < (before + bytes) / PROGRESS_BYTES {
            terminal::progress(&format!("read: {}", terminal::mib(before + bytes)));
        }
    };
    let report =
        archive::verify(archive, key.as_ref(), &progress).map_err(|e| failed(e.chain()))?;
    terminal::progress("");
    if *json {
        terminal::say(&document(&report).to_string());
    } else {
        for line in lines(&report, key.is_some()) {
            terminal::say(&line);
        }
    }
    match report.faults.len() {
        0 => Ok(()),
        count => Err(failed(format!("{count} faults were found"))),
    }
}

fn key_of(path: &Path) -> Result<Verifier, Error> {
    let failed = |reason: String| Error::new(format!("reading {}", path.display()), reason);
    let pem = fs::read(path).map_err(|e| failed(e.to_string()))?;
    Verifier::from_pem(&pem).map_err(|e| failed(e.to_string()))
}

fn lines(report: &Report, is_compared: bool) -> Vec<String> {
    let mut lines: Vec<_> = report.faults.iter().map(model::Error::chain).collect();
    if !lines.is_empty() {
        return lines;
    }
    let Report {
        files,
        members,
        hashed_bytes,
        ..
    } = report;
    let amount = terminal::mib(*hashed_bytes);
    lines.push(format!(
        "whole: {files} files, {members} members, {amount} have their digests"
    ));
    lines.push(match (report.has_index, report.is_signed, is_compared) {
        (false, ..) => {
            "it has no index: what is not named by its digest could not be compared".to_owned()
        }
        (_, false, _) => "it is not signed".to_owned(),
        (_, true, false) => "it is signed; whose signature that is, --key tells".to_owned(),
        (_, true, true) => "it is signed with that key".to_owned(),
    });
    lines
}

fn document(report: &Report) -> Value {
    let faults: Vec<_> = report.faults.iter().map(model::Error::chain).collect();
    json!({
        "files": report.files,
        "members": report.members,
        "hashedBytes": report.hashed_bytes,
        "indexed": report.has_index,
        "signed": report.is_signed,
        "faults": faults,
    })
}
