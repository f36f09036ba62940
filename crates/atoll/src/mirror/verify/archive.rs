//! Verification of an archive set.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use ::mirror::archive::{self, SetReport, Verifier};
use ::mirror::progress::RunProgress;
use model::size::mib;
use serde_json::{Value, json};
use service::{Error, ResultExt as _};

use super::arguments::MirrorVerifyArgs;
use crate::terminal;

/// Interval of progress updates.
const TICK: Duration = Duration::from_millis(250);

/// Reads every byte and prints all faults.
///
/// Errors: faults, or no archive set.
pub(super) fn run(arguments: &MirrorVerifyArgs, archive: &OsStr) -> Result<(), Error> {
    let MirrorVerifyArgs { key, format, .. } = arguments;
    let key = key.as_deref().map(key_of).transpose()?;
    let opened = arguments.registries.with_archives(archive, |source| {
        let key = key.as_ref();
        with_progress(|progress| archive::verify(source, key, progress))
    });
    // A URL that is refused may hold a password.
    let verified = opened.map_err(|e| e.chain()).doing("verifying archives")?;
    let failed = |reason: String| Error::new(format!("verifying {}", archive.display()), reason);
    let report = verified.map_err(|e| failed(e.chain()))?;
    if format.is_json() {
        terminal::print(&document(&report).to_string());
    } else {
        for line in lines(&report, key.is_some()) {
            terminal::print(&line);
        }
    }
    match report.faults.len() {
        0 => Ok(()),
        count => Err(failed(format!("{count} faults were found"))),
    }
}

/// Runs `work` and shows its progress.
fn with_progress<T: Send>(work: impl FnOnce(&RunProgress) -> T + Send) -> T {
    let progress = RunProgress::default();
    let seen = progress.clone();
    let (ended, end) = mpsc::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            while end.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                if let Some((phase, whole, done)) = seen.now() {
                    let (done, whole) = (mib(done.bytes), mib(whole.bytes));
                    terminal::progress(&format!("{}: {done} of {whole}", phase.as_str()));
                }
            }
            terminal::clear_progress();
        });
        let made = work(&progress);
        drop(ended);
        made
    })
}

fn key_of(path: &Path) -> Result<Verifier, Error> {
    let failed = |reason: String| Error::new(format!("reading {}", path.display()), reason);
    let pem = fs::read(path).map_err(|e| failed(e.to_string()))?;
    Verifier::from_pem(&pem).map_err(|e| failed(e.to_string()))
}

fn lines(report: &SetReport, is_compared: bool) -> Vec<String> {
    let mut lines: Vec<_> = report.faults.iter().map(model::Error::chain).collect();
    if !lines.is_empty() {
        return lines;
    }
    let SetReport {
        files,
        members,
        hashed_bytes,
        ..
    } = report;
    let amount = mib(*hashed_bytes);
    lines.push(format!(
        "verified: {files} files, {members} members, {amount} match their digests"
    ));
    lines.push(match (report.has_index, report.is_signed, is_compared) {
        (false, ..) => {
            "no index: members that are not named by digest could not be verified".to_owned()
        }
        (_, false, _) => "not signed".to_owned(),
        (_, true, false) => "signed; verify the signature with --key".to_owned(),
        (_, true, true) => "signature verified".to_owned(),
    });
    lines
}

fn document(report: &SetReport) -> Value {
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
