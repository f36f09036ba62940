//! The order of a set's archives.

use model::Error;
use model::mirror_metadata::MirrorMetadata;

/// Message for an archive that was published before. Source: the peer.
pub const SAME_SEQUENCE: &str =
    "No diff from previous mirror (sequence is the same), nothing to do";

/// Action for an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SequenceStep {
    Publish,
    /// The target has it.
    Nothing,
}

/// The action for the archive of that metadata in a target with the metadata `there`.
///
/// Errors: Conflict – archives before it are missing in the target, or the target has a later one.
pub fn step(
    there: Option<&MirrorMetadata>,
    archive: &MirrorMetadata,
) -> Result<SequenceStep, Error> {
    if archive.single_use {
        return Ok(SequenceStep::Publish);
    }
    if let Some(there) = there.filter(|there| there.uid != archive.uid) {
        return Err(Error::conflict(format!(
            "the metadata of set {} in the target belongs to set {}",
            archive.uid, there.uid
        )));
    }
    let has = there.map_or(0, |there| there.past_mirror.sequence);
    let (next, own) = (has.saturating_add(1), archive.past_mirror.sequence);
    if there.is_some() && own == has {
        return Ok(SequenceStep::Nothing);
    }
    // A target without the set takes any archive that has all of its images.
    let own_images = &archive.past_mirror.associations;
    let is_complete = !own_images.is_empty() && archive.past_associations == *own_images;
    if own == next || (there.is_none() && is_complete) {
        return Ok(SequenceStep::Publish);
    }
    let remedy = match own.saturating_sub(1) {
        last if last > next => format!("publish the archives of sequences {next} to {last} first"),
        last if last == next => format!("publish the archive of sequence {next} first"),
        _ => format!("the target has sequence {has} already"),
    };
    Err(Error::conflict(format!(
        "expecting imageset with prefix mirror_seq{next}: invalid mirror sequence order, want {next}, got {own}: {remedy}"
    )))
}
