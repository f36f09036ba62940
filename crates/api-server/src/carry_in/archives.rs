//! The list of archive sets: their content, and their place in the order of sequences.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use mirror::archive::{FoundSet, Set, sets_below};
use mirror::history::{MetadataStore, SequenceStep, step};
use model::Error;
use model::jobs::{ArchiveList, ArchiveSet, ArchiveStep, JobFile};
use model::mirror_metadata::{ImageType, MirrorMetadata, PastMirror};
use uuid::Uuid;

use super::{CarryIn, blocking};

/// Sets in a list; a medium has a few.
const LISTED_SETS: usize = 200;

/// Content of sets by their first files, as long as these do not change: metadata has megabytes.
#[derive(Debug, Default)]
pub(super) struct Summaries(Mutex<HashMap<PathBuf, (FileVersions, Arc<Summary>)>>);

/// Sizes and times of a set's files.
type FileVersions = Vec<(u64, Option<SystemTime>)>;

/// Content of a set without its associations, or the reason why it cannot be opened.
type Summary = Result<SetContent, String>;

#[derive(Debug)]
struct SetContent {
    set: ArchiveSet,
    /// Its metadata, without associations: for the comparison of sequences.
    metadata: MirrorMetadata,
}

impl CarryIn {
    /// The sets of the folder.
    ///
    /// Errors: Internal – the folder cannot be read.
    pub(crate) async fn list(&self) -> Result<ArchiveList, Error> {
        let mut list = ArchiveList {
            registry: self
                .target
                .as_ref()
                .map(super::PublicationTarget::name)
                .unwrap_or_default(),
            ..ArchiveList::default()
        };
        let Some(folder) = &self.folder else {
            return Ok(list);
        };
        list.folder = folder.display().to_string();
        let searched = folder.clone();
        let mut found = blocking(move || sets_below(&searched)).await?;
        list.omitted_sets = found.len().saturating_sub(LISTED_SETS) as u64;
        found.truncate(LISTED_SETS);
        let mut contents = Vec::with_capacity(found.len());
        for set in &found {
            contents.push(self.summary(folder, set).await?);
        }
        let published = match self.published(&contents).await {
            Ok(published) => published,
            Err(error) => {
                list.registry_reason = error.chain();
                BTreeMap::new()
            }
        };
        let has_answer = self.target.is_some() && list.registry_reason.is_empty();
        let sets = found.iter().zip(&contents);
        list.sets = sets
            .map(|(found, summary)| described(found, summary, has_answer.then_some(&published)))
            .collect();
        Ok(list)
    }

    /// The path of the set that a list calls `name`.
    ///
    /// Errors: Conflict – no folder is set; NotFound.
    pub(super) async fn find(&self, name: &str) -> Result<PathBuf, Error> {
        let folder = self.folder()?.clone();
        let searched = folder.clone();
        let found = blocking(move || sets_below(&searched)).await?;
        if found.iter().any(|set| set.name == name) {
            return Ok(folder.join(name));
        }
        Err(Error::not_found("archive set", name))
    }

    /// Checks that a job for the set can be created.
    ///
    /// Errors: as [`Self::find`]; Conflict – no registry is set, with `is_publication`.
    pub(crate) async fn check(&self, name: &str, is_publication: bool) -> Result<(), Error> {
        if is_publication {
            self.target()?;
        }
        self.find(name).await.map(drop)
    }

    async fn summary(&self, folder: &Path, found: &FoundSet) -> Result<Arc<Summary>, Error> {
        let path = folder.join(&found.name);
        let place = path.parent().unwrap_or(folder).to_owned();
        let names: Vec<_> = found
            .files
            .iter()
            .map(|(name, _)| place.join(name))
            .collect();
        let set = path.clone();
        let known = self.summaries.get(&path);
        let (versions, read) = blocking(move || {
            let versions = versions(&names);
            match known {
                Some((before, summary)) if before == versions => Ok((versions, summary)),
                _ => Ok((versions, Arc::new(content(&set)))),
            }
        })
        .await?;
        self.summaries.put(path, versions, &read);
        Ok(read)
    }

    /// Metadata in the registry, by the ids of the sets.
    ///
    /// Errors: those of the registry.
    async fn published(
        &self,
        contents: &[Arc<Summary>],
    ) -> Result<BTreeMap<Uuid, MirrorMetadata>, Error> {
        let Some(target) = &self.target else {
            return Ok(BTreeMap::new());
        };
        let target = target.open()?;
        let opened = contents.iter().filter_map(|it| it.as_ref().as_ref().ok());
        let mut published = BTreeMap::new();
        for content in opened.filter(|it| !it.set.single_use) {
            let uid = content.set.uid;
            if published.contains_key(&uid) {
                continue;
            }
            let metadata = MetadataStore::in_target(&target, uid)?.read().await?;
            published.extend(metadata.map(|it| (uid, without_associations(it))));
        }
        Ok(published)
    }
}

impl Summaries {
    fn get(&self, path: &Path) -> Option<(FileVersions, Arc<Summary>)> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(path).cloned()
    }

    fn put(&self, path: PathBuf, versions: FileVersions, summary: &Arc<Summary>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= LISTED_SETS && !known.contains_key(&path) {
            known.clear();
        }
        known.insert(path, (versions, Arc::clone(summary)));
    }
}

fn without_associations(mut metadata: MirrorMetadata) -> MirrorMetadata {
    metadata.past_associations = Vec::new();
    metadata.past_mirror.associations = Vec::new();
    metadata
}

fn versions(files: &[PathBuf]) -> FileVersions {
    let version = |path: &PathBuf| match path.metadata() {
        Ok(metadata) => (metadata.len(), metadata.modified().ok()),
        Err(_) => (0, None),
    };
    files.iter().map(version).collect()
}

/// Blocking.
fn content(path: &Path) -> Summary {
    let set = Set::open(path).map_err(|error| error.chain())?;
    let metadata = set.metadata();
    let run = &metadata.past_mirror;
    let images = run.associations.iter().filter(|it| it.name != it.id);
    let set = ArchiveSet {
        uid: metadata.uid,
        sequence: run.sequence,
        single_use: metadata.single_use,
        created_at: chrono::DateTime::from_timestamp(run.timestamp, 0).into(),
        releases: releases(run),
        release_images: release_images(run),
        catalogs: run.operators.iter().map(|it| it.catalog.clone()).collect(),
        images: images.count() as u64,
        ..ArchiveSet::default()
    };
    let metadata = without_associations(metadata.clone());
    Ok(SetContent { set, metadata })
}

/// Channels with their first version; without channels, the tags of release images.
fn releases(run: &PastMirror) -> Vec<String> {
    let channels = run.platforms.iter();
    let channels: Vec<_> = channels
        .map(|it| format!("{} {}", it.channel, it.min_version))
        .collect();
    if channels.is_empty() {
        return release_images(run);
    }
    channels
}

/// Their tags.
fn release_images(run: &PastMirror) -> Vec<String> {
    let images = run.associations.iter();
    let releases = images.filter(|it| it.kind == ImageType::OcpRelease);
    let tags = releases.map(|it| it.tag_symlink.clone());
    // Those of an index have none.
    tags.filter(|tag| !tag.is_empty()).collect()
}

/// `published`: metadata in the registry, if it could be asked.
fn described(
    found: &FoundSet,
    summary: &Summary,
    published: Option<&BTreeMap<Uuid, MirrorMetadata>>,
) -> ArchiveSet {
    let files = found.files.iter();
    let files: Vec<_> = files
        .map(|(name, size)| JobFile {
            name: name.clone(),
            size: *size,
        })
        .collect();
    let bytes = files.iter().map(|it| it.size).sum();
    let (set, step, published_sequence, reason) = match summary {
        Err(reason) => {
            let set = ArchiveSet {
                sequence: found.sequence,
                ..ArchiveSet::default()
            };
            (set, ArchiveStep::Damaged, 0, reason.clone())
        }
        Ok(content) => {
            let there = published.and_then(|it| it.get(&content.set.uid));
            let has = there.map_or(0, |it| it.past_mirror.sequence);
            let (step, reason) = match published.map(|_| step(there, &content.metadata)) {
                None => (ArchiveStep::Unknown, String::new()),
                Some(Ok(SequenceStep::Publish)) => (ArchiveStep::Next, String::new()),
                Some(Ok(SequenceStep::Nothing)) => (ArchiveStep::Published, String::new()),
                Some(Err(error)) => (ArchiveStep::OutOfOrder, error.chain()),
            };
            (content.set.clone(), step, has, reason)
        }
    };
    ArchiveSet {
        name: found.name.clone(),
        files,
        bytes,
        step,
        published_sequence,
        reason,
        ..set
    }
}

#[cfg(test)]
mod tests {
    use model::mirror_metadata::{Association, ChannelStart};

    use super::*;

    #[test]
    fn releases_without_a_channel_are_named_by_their_images() {
        let image = |kind, tag: &str| Association {
            kind,
            tag_symlink: tag.to_owned(),
            ..Association::default()
        };
        let mut run = PastMirror {
            associations: vec![
                image(ImageType::OcpRelease, "4.18.30-x86_64"),
                image(ImageType::OcpRelease, ""),
                image(ImageType::OcpReleaseContent, "4.18.30-x86_64-cli"),
            ],
            ..PastMirror::default()
        };
        assert_eq!(releases(&run), ["4.18.30-x86_64"]);
        run.platforms.push(ChannelStart {
            channel: "stable-4.18".to_owned(),
            min_version: "4.18.1".to_owned(),
        });
        assert_eq!(releases(&run), ["stable-4.18 4.18.1"]);
        assert_eq!(release_images(&run), ["4.18.30-x86_64"]);
    }
}
