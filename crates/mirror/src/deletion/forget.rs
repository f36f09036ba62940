//! Metadata of a target without deleted images.

use std::collections::BTreeSet;

use model::Error;
use oci::{Digest, Repository};

use crate::history::{MetadataStore, stored, without};
use crate::publish::MirrorTarget;

/// Removes images from all metadata of the target, with the parts of indexes: the registry collects those with a deleted
/// index.
///
/// Errors: Invalid – metadata with a malformed path; those of the target.
pub(super) async fn forget(
    gone: &BTreeSet<(Repository, Digest)>,
    target: &MirrorTarget,
) -> Result<(), Error> {
    if gone.is_empty() {
        return Ok(());
    }
    for mut metadata in MetadataStore::all_in_target(target).await? {
        let past = metadata.past_associations.len();
        metadata.past_associations = without(metadata.past_associations, gone, target)?;
        if metadata.past_associations.len() < past {
            let store = MetadataStore::in_target(target, metadata.uid)?;
            store.write(stored(&metadata)?).await?;
        }
    }
    Ok(())
}
