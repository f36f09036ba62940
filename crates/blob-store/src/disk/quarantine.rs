//! Quarantine: damaged content is set aside with a note, and withheld until it is pushed again.
//!
//! Only the examined file is set aside: content that was pushed since is another file.

use std::fs;
use std::io;
use std::time::SystemTime;

use model::time::Timestamp;
use serde::Serialize;

use super::committer::SharedState;
use super::examine::{DamagedContent, FileStamp};
use super::layout::FolderLayout;
use super::staged::{self, Staged};
use crate::{Result, StoreError};
use oci::{Algorithm, Digest, Repository};

const DOING: &str = "quarantining damaged content";

/// The note beside quarantined bytes.
#[derive(Serialize)]
struct Note<'a> {
    digest: &'a Digest,
    why: &'a str,
    when: String,
    repositories: Vec<Repository>,
}

/// Sets content aside. Returns whether it was still damaged. Only for the committing thread.
pub(super) fn take(shared: &SharedState, condemned: &DamagedContent) -> Result<bool> {
    let failed = || StoreError::io(DOING);
    let DamagedContent {
        canonical,
        stamp,
        why,
    } = condemned;
    let layout = &shared.layout;
    let data = layout.data(canonical);
    if FileStamp::at(&data).map_err(failed())? != *stamp {
        return Ok(false);
    }
    let repositories = shared.index.snapshot()?.holders(canonical)?;
    // Files before index: after a crash in between, recovery finds the note and marks the links as dangling.
    let update = shared.index.update()?;
    let had = update.tables()?.mark_dangling(canonical)?;
    if !had && stamp.is_none() {
        return Ok(false);
    }
    let held = repositories.len();
    let note = Note {
        digest: canonical,
        why,
        when: Timestamp::from(SystemTime::now()).to_rfc3339(),
        repositories,
    };
    set_aside(layout, &note, stamp.is_some()).map_err(failed())?;
    shared.verified.forget(canonical);
    update.commit()?;
    tracing::error!(digest = %canonical, why, repositories = held, "content is damaged and in quarantine: push it again");
    Ok(true)
}

/// Note before bytes: after a crash in between, the next start finds the note of missing content.
fn set_aside(layout: &FolderLayout, note: &Note<'_>, has_bytes: bool) -> io::Result<()> {
    let (data, place) = (layout.data(note.digest), layout.quarantine(note.digest));
    let text = serde_json::to_vec_pretty(note)?;
    durable::create_parent(&place)?;
    Staged::write(layout.temporary(), &text)?.place(&layout.quarantine_note(note.digest))?;
    if has_bytes {
        staged::rename(&data, &place)?;
        data.parent().map(fs::remove_dir);
    }
    durable::sync_parent(&place)
}

/// Marks the content of all notes as dangling, which a crash may have prevented. Adoption finds content that was
/// restored since.
pub(super) fn apply_notes(shared: &SharedState) -> Result<()> {
    for canonical in noted(&shared.layout).map_err(StoreError::io("reading the quarantine"))? {
        if !shared.layout.data(&canonical).exists() {
            let update = shared.index.update()?;
            update.tables()?.mark_dangling(&canonical)?;
            update.commit()?;
        }
    }
    Ok(())
}

/// Content with a note.
fn noted(layout: &FolderLayout) -> io::Result<Vec<Digest>> {
    let folder = layout.quarantine_dir().join(Algorithm::Sha256.as_str());
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if staged::is_absent(&error) => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut found = Vec::new();
    for entry in entries {
        let name = entry?.file_name();
        let hex = name.to_str().and_then(|name| name.strip_suffix(".json"));
        found.extend(hex.and_then(|hex| format!("sha256:{hex}").parse::<Digest>().ok()));
    }
    Ok(found)
}
