//! Verification of a registry's content.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use blob_store::disk::{Audited, Fault, FaultKind};
use blob_store::{ContentStore as _, DiskStore};
use clap::Args;
use model::size::mib;
use oci::Digest;
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};
use service::runtime;
use service::{Error, ResultExt as _};

use super::remote::{self, RemoteAccess};
use crate::output_format::FormatArgs;
use crate::terminal;

/// Interval of progress requests to a running registry.
const POLL: Duration = Duration::from_secs(1);

/// Arguments of `atoll registry verify`.
#[derive(Debug, Clone, Args)]
pub(crate) struct VerifyArgs {
    /// Running registry, as in https://registry.example.org:5000, or folder of a stopped one
    #[arg(value_name = "URL|DIRECTORY")]
    target: String,
    #[command(flatten)]
    access: RemoteAccess,
    #[command(flatten)]
    format: FormatArgs,
    /// Quarantine damaged content of a folder, as a running registry always does: clients then push it again
    #[arg(long)]
    quarantine: bool,
}

/// Scrub report of a running registry.
#[derive(Debug, Deserialize)]
struct ScrubReport {
    is_running: bool,
    percent: u8,
    contents: u64,
    bytes: u64,
    damaged: u64,
    missing: u64,
    unread: u64,
    findings: Vec<ScrubFinding>,
}

#[derive(Debug, Deserialize)]
struct ScrubFinding {
    digest: String,
    what: String,
    repositories: Vec<String>,
}

/// Verifies and prints all faults.
///
/// Errors: faults, or content that cannot be read.
pub(crate) fn run(arguments: &VerifyArgs) -> Result<(), Error> {
    let target = &arguments.target;
    if remote::is_url(target) {
        return scrub(arguments);
    }
    verify_folder(arguments, remote::folder("verifying", target)?)
}

/// Makes a running registry scrub, and waits for the end.
fn scrub(arguments: &VerifyArgs) -> Result<(), Error> {
    let remote = arguments.access.open(&arguments.target)?;
    let mut text: Value = remote.ask(Method::POST, "scrub")?;
    let mut shown = None;
    let report = loop {
        let report: ScrubReport =
            serde_json::from_value(text.clone()).doing("reading the report")?;
        if !report.is_running {
            break report;
        }
        if !arguments.format.is_json() && shown != Some(report.percent) {
            shown = Some(report.percent);
            terminal::progress(&format!("{} % verified", report.percent));
        }
        std::thread::sleep(POLL);
        text = remote.ask(Method::GET, "scrub")?;
    };
    if arguments.format.is_json() {
        terminal::print(&text.to_string());
    } else {
        for ScrubFinding {
            digest,
            what,
            repositories,
        } in &report.findings
        {
            terminal::print(&format!("{what:8} {digest} {}", repositories.join(" ")));
        }
        let (contents, size) = (report.contents, mib(report.bytes));
        terminal::print(&format!("{contents} contents verified ({size})."));
    }
    let ScrubReport {
        damaged,
        missing,
        unread,
        ..
    } = report;
    if damaged + missing + unread == 0 {
        return Ok(());
    }
    let reason = format!(
        "{damaged} contents are damaged, {missing} missing, {unread} unreadable; damaged content is in \
         quarantine: push it again"
    );
    Err(Error::new(
        format!("verifying {}", arguments.target),
        reason,
    ))
}

/// Verifies the folder of a stopped registry.
fn verify_folder(arguments: &VerifyArgs, folder: &Path) -> Result<(), Error> {
    let doing = || format!("verifying {}", folder.display());
    let audit = audit(folder, arguments.quarantine);
    let (audited, faults) = runtime::block_on(audit)?.doing(doing)?;
    if arguments.format.is_json() {
        terminal::print(&json!({ "audited": audited, "faults": faults }).to_string());
    } else {
        for fault in &faults {
            terminal::print(&line(fault));
        }
        terminal::print(&format!(
            "{} contents ({}), {} repositories and {} links verified.",
            audited.contents,
            mib(audited.bytes),
            audited.repositories,
            audited.links
        ));
    }
    let mut counts = BTreeMap::new();
    for fault in &faults {
        *counts.entry(fault.kind).or_insert(0) += 1;
    }
    // Garbage and a stale index are not damage.
    counts.remove(&FaultKind::Orphaned);
    counts.remove(&FaultKind::Unindexed);
    if counts.is_empty() {
        return Ok(());
    }
    let counts: Vec<_> = counts
        .into_iter()
        .map(|(kind, count)| format!("{count} {}", name(kind)))
        .collect();
    Err(Error::new(doing(), format!("found {}", counts.join(", "))))
}

async fn audit(folder: &Path, quarantine: bool) -> blob_store::Result<(Audited, Vec<Fault>)> {
    let store = DiskStore::open_as_is(folder).await?;
    let faults = Arc::new(Mutex::new(Vec::new()));
    let found = Arc::clone(&faults);
    let note = move |fault| {
        let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
        found.push(fault);
    };
    let audited = store.audit(note).await?;
    let faults = std::mem::take(&mut *faults.lock().unwrap_or_else(PoisonError::into_inner));
    let damaged = faults
        .iter()
        .filter(|fault| fault.kind == FaultKind::Damaged);
    for digest in damaged.filter_map(|fault| fault.what.parse::<Digest>().ok()) {
        if quarantine {
            store.quarantine(&digest).await?;
        }
    }
    Ok((audited, faults))
}

fn line(fault: &Fault) -> String {
    let repository = fault.repository.as_ref();
    let place = repository
        .map(|name| format!("{name} "))
        .unwrap_or_default();
    format!(
        "{:9} {place}{}: {}",
        name(fault.kind),
        fault.what,
        fault.why
    )
}

fn name(kind: FaultKind) -> &'static str {
    match kind {
        FaultKind::Damaged => "damaged",
        FaultKind::Link => "link",
        FaultKind::Dangling => "dangling",
        FaultKind::Missing => "missing",
        FaultKind::Unindexed => "unindexed",
        FaultKind::Orphaned => "orphaned",
    }
}
