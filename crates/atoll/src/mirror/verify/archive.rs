//! Whether an archive set is what was packed.

use std::fs;
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use ::mirror::archive::{self, Report, Verifier};
use ::mirror::progress::Progress;
use serde_json::{Value, json};
use service::Error;

use super::MirrorVerifyArgs;
use crate::terminal;

/// How often the terminal tells how far it is.
const TICK: Duration = Duration::from_millis(250);

/// Reads every byte, and tells all faults.
///
/// Errors: there is a fault, or no set.
pub(super) fn run(arguments: &MirrorVerifyArgs, archive: &Path) -> Result<(), Error> {
    let MirrorVerifyArgs { key, json, .. } = arguments;
    let failed = |reason: String| Error::new(format!("verifying {}", archive.display()), reason);
    let key = key.as_deref().map(key_of).transpose()?;
    let verified = with_progress(|progress| archive::verify(archive, key.as_ref(), progress));
    let report = verified.map_err(|e| failed(e.chain()))?;
    if *json {
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

/// Tells how far `work` is while it runs.
fn with_progress<T: Send>(work: impl FnOnce(&Progress) -> T + Send) -> T {
    let progress = Progress::default();
    let seen = progress.clone();
    let (ended, end) = mpsc::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            while end.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                if let Some((phase, whole, done)) = seen.now() {
                    let (done, whole) = (terminal::mib(done.bytes), terminal::mib(whole.bytes));
                    terminal::progress(&format!("{}: {done} of {whole}", phase.as_str()));
                }
            }
            terminal::progress("");
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
