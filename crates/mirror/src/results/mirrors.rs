//! Mirrors of policies: names of the target for names of sources.
//!
//! A group, which is a host and the first component, has one entry for everything below it that kept its path. The longest
//! matching name wins, so that other repositories get entries of their own.

use std::collections::{BTreeMap, BTreeSet};

use oci::Reference;
use serde::Serialize;

use super::outcome::{MirrorResults, MirroredImage};
use crate::section::Section;

/// A name of a source, and where its content is found instead. Members are in the order in which the peer prints them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct MirrorEntry {
    pub(super) mirrors: Vec<String>,
    pub(super) source: String,
}

/// Images with an entry by group, and by repository.
pub(super) struct Scopes<'a> {
    outcome: &'a MirrorResults,
    /// Repositories of sources that have another path in the target.
    moved: BTreeSet<String>,
}

impl<'a> Scopes<'a> {
    pub(super) fn new(outcome: &'a MirrorResults) -> Self {
        let moved = outcome.all_images().filter(|image| group(image).is_none());
        Self {
            outcome,
            moved: moved.map(|image| repository(&image.source)).collect(),
        }
    }

    /// The names of those images that are chosen, by their sources.
    pub(super) fn of(
        &self,
        is_chosen: impl Fn(Section, &MirroredImage) -> bool,
    ) -> Vec<MirrorEntry> {
        let mut names: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for image in self.outcome.all_images() {
            let Some(section) = Section::of(image.kind) else {
                continue;
            };
            if is_chosen(section, image) {
                let (source, mirror) = self.names(section, image);
                names.entry(source).or_default().insert(mirror);
            }
        }
        let mirrors = names.into_iter().map(|(source, mirrors)| MirrorEntry {
            mirrors: mirrors.into_iter().collect(),
            source,
        });
        mirrors.collect()
    }

    fn names(&self, section: Section, image: &MirroredImage) -> (String, String) {
        let is_single = match section {
            Section::Generic => false,
            Section::Operator => self.outcome.is_flattened,
            Section::Release => true,
        };
        let source = repository(&image.source);
        match group(image) {
            Some(group) if !is_single && !self.is_below_moved(&source) => group,
            _ => (source, repository(&image.destination)),
        }
    }

    /// An entry for a moved repository also matches repositories below it, which were not moved with it.
    fn is_below_moved(&self, source: &str) -> bool {
        let ends = source.match_indices('/').map(|(end, _)| end);
        let mut above = ends.map(|end| &source[..end]).chain([source]);
        above.any(|name| self.moved.contains(name))
    }
}

/// The group of the source and that of the target; none where the path of the image was changed, or has no group.
fn group(image: &MirroredImage) -> Option<(String, String)> {
    let source = image.source.canonical();
    let (group, rest) = source.repository.as_str().split_once('/')?;
    let target = repository(&image.destination);
    let above = target.strip_suffix(rest)?.strip_suffix('/')?;
    let whole = above.strip_suffix(group)?;
    whole.ends_with('/').then(|| {
        let source = format!("{}/{group}", source.registry);
        (source, above.to_owned())
    })
}

/// The name by which clusters match it.
fn repository(reference: &Reference) -> String {
    let reference = reference.canonical();
    format!("{}/{}", reference.registry, reference.repository)
}
