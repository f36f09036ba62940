//! Names sorted by bytes, from listings sorted by keys.
//!
//! The orders differ, since a name in a key ends with a slash, and `-` and `.` sort before it: `a-b/` comes before
//! `a/`, but `a` before `a-b`. A name that follows `x` in the listing but sorts before it is a prefix of `x` that
//! ends before a `-` or `.`; so the shortest of these prefixes is the lower bound of all further names.

use std::collections::{BTreeMap, BTreeSet};

use model::time::Timestamp;

use super::layout::BucketLayout;
use crate::Result;
use bucket::{Bucket, ListingPage, ObjectEntry, Position};
use oci::{Repository, Tag};

/// The lower bound of the names that can follow `name` in a listing.
fn earliest_after(name: &str) -> &str {
    name.split(['-', '.']).next().unwrap_or(name)
}

/// Up to `limit` tags after `after`, with the time of their last push.
pub(super) async fn tags(
    bucket: &Bucket,
    layout: &BucketLayout,
    repository: &Repository,
    after: &str,
    limit: usize,
) -> Result<Vec<(Tag, Timestamp)>> {
    let prefix = layout.tags(repository);
    let mut found = BTreeMap::new();
    let mut from = (!after.is_empty()).then(|| Position::After(after.to_owned()));
    loop {
        let page = bucket.page(&prefix, from, false).await?;
        for ObjectEntry { below, meta } in &page.entries {
            // A killed distribution leaves tag folders without a current link.
            if let Some(name) = below.strip_suffix("/current/link")
                && name > after
                && let Ok(tag) = name.parse::<Tag>()
            {
                found.insert(tag, meta.modified);
            }
        }
        let last = match (&page.next, page.entries.last()) {
            (Some(_), Some(last)) => last.below.as_str(),
            _ => break,
        };
        let name = last.split('/').next().unwrap_or(last);
        let bound = earliest_after(name);
        if found
            .keys()
            .filter(|tag| tag.as_str() < bound)
            .take(limit)
            .count()
            >= limit
        {
            break;
        }
        // The history of a tag sorts after its current link and may be long: it is skipped.
        let is_history = last
            .strip_prefix(name)
            .is_some_and(|rest| rest.starts_with("/index/"));
        let last = if is_history {
            format!("{name}/index0")
        } else {
            last.to_owned()
        };
        from = Some(Position::After(last));
    }
    Ok(found.into_iter().take(limit).collect())
}

/// A walk through all repositories, sorted by name.
#[derive(Debug)]
pub(super) struct RepositoryWalk<'a> {
    bucket: &'a Bucket,
    root: String,
    after: String,
    open: BTreeSet<(String, PendingListing)>,
}

/// A pending step of the walk. The rest of a listing sorts first, since it may contain the name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum PendingListing {
    /// The next page of the listing below a prefix.
    Rest { prefix: String, token: String },
    /// The listing below the name.
    Name,
}

/// A repository, or a name above repositories.
#[derive(Debug)]
pub(super) struct FoundRepository {
    pub(super) repository: Repository,
    folders: Vec<String>,
}

impl FoundRepository {
    /// Whether it has a folder with this name.
    pub(super) fn has(&self, folder: &str) -> bool {
        self.folders.iter().any(|name| name == folder)
    }
}

impl<'a> RepositoryWalk<'a> {
    /// All names after `after`.
    pub(super) fn new(bucket: &'a Bucket, layout: &BucketLayout, after: &str) -> Self {
        Self {
            bucket,
            root: layout.repositories(),
            after: after.to_owned(),
            open: BTreeSet::from([(String::new(), PendingListing::Name)]),
        }
    }

    pub(super) async fn next(&mut self) -> Result<Option<FoundRepository>> {
        while let Some((name, open)) = self.open.pop_first() {
            let prefix = match open {
                PendingListing::Rest { prefix, token } => {
                    let from = Some(Position::Token(token));
                    let page = self.bucket.page(&self.below(&prefix), from, true).await?;
                    self.open_page(&prefix, page);
                    continue;
                }
                PendingListing::Name if name.is_empty() => String::new(),
                PendingListing::Name => format!("{name}/"),
            };
            let from = self.start(&prefix).map(Position::After);
            let page = self.bucket.page(&self.below(&prefix), from, true).await?;
            let is_whole = page.next.is_none();
            let own = |page: &ListingPage| -> Vec<String> {
                let folders = page.folders.iter();
                folders
                    .filter(|name| name.starts_with('_'))
                    .cloned()
                    .collect()
            };
            let mut folders = own(&page);
            self.open_page(&prefix, page);
            let Ok(repository) = name.parse::<Repository>() else {
                continue;
            };
            if name <= self.after {
                continue;
            }
            if !is_whole {
                folders = self.own_folders(&prefix).await?;
            }
            return Ok(Some(FoundRepository {
                repository,
                folders,
            }));
        }
        Ok(None)
    }

    async fn own_folders(&self, prefix: &str) -> Result<Vec<String>> {
        let (prefix, mut from) = (format!("{}_", self.below(prefix)), None);
        let mut folders = Vec::new();
        loop {
            let page = self.bucket.page(&prefix, from, true).await?;
            folders.extend(page.folders.iter().map(|rest| format!("_{rest}")));
            match page.next {
                Some(token) => from = Some(Position::Token(token)),
                None => return Ok(folders),
            }
        }
    }

    fn below(&self, prefix: &str) -> String {
        format!("{}{prefix}", self.root)
    }

    /// The first folder below `prefix` that can lead to a name after the start.
    fn start(&self, prefix: &str) -> Option<String> {
        let rest = self.after.strip_prefix(prefix)?;
        let first = rest.split('/').next().unwrap_or(rest);
        (!first.is_empty()).then(|| first.to_owned())
    }

    fn open_page(&mut self, prefix: &str, page: ListingPage) {
        if let (Some(token), Some(last)) = (page.next, page.folders.last()) {
            let rest = PendingListing::Rest {
                prefix: prefix.to_owned(),
                token,
            };
            let bound = format!("{prefix}{}", earliest_after(last));
            self.open.insert((bound, rest));
        }
        for folder in page.folders {
            let name = format!("{prefix}{folder}");
            let below = format!("{name}/");
            let is_wanted = below > self.after || self.after.starts_with(&below);
            // Names outside the grammar, and all below them, are no repositories.
            if is_wanted && name.parse::<Repository>().is_ok() {
                self.open.insert((name, PendingListing::Name));
            }
        }
    }
}
