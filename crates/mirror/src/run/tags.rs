//! Tags in the target that several sources have: each keeps the image that has it first.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use model::Error;

use super::attach::AttachedImages;
use super::resolve::PastImages;
use crate::content::ResolvedImage;
use crate::{history, names};

/// Gives each tag to one source only: to the one whose image previous runs put there, or else to the first of this run.
/// Images of other sources get the tag of their digest, and a warning.
///
/// Errors: Invalid – a name does not fit into the target.
pub(super) fn keep(attached: &mut AttachedImages, past: PastImages<'_>) -> Result<(), Error> {
    let mut owners: BTreeMap<(String, String), String> = BTreeMap::new();
    let owned = past.previous.tag_owners();
    owners.extend(owned.map(|(place, tag, source)| ((place, tag), source)));
    let mut notes = Vec::new();
    for image in &mut attached.content.images {
        let place = history::place(&image.wanted.repository, past.target)?;
        let source = source_of(image);
        match owners.entry((place, image.wanted.tag.to_string())) {
            Entry::Vacant(free) => {
                free.insert(source);
            }
            Entry::Occupied(owner) if *owner.get() == source => {}
            Entry::Occupied(owner) => {
                let own = names::v2::tag_of_digest(&image.digest);
                notes.push(format!(
                    "{} and {} have the same name in the target, {}:{}: the first one keeps it, the other one is {own} there",
                    owner.get(), image.wanted.source, image.wanted.repository, image.wanted.tag
                ));
                image.wanted.tag = own;
            }
        }
    }
    attached.notes.extend(notes);
    Ok(())
}

/// The repository of an image at its source.
fn source_of(image: &ResolvedImage) -> String {
    image.wanted.source.without_version().to_string()
}
