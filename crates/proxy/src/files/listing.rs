//! The listing of a folder, page part by page part.
//!
//! Entries are held as data up to a bound, and sorted. Larger folders are streamed in the order of the file system: a page
//! never is in memory whole, and no thread waits for a client.

use std::sync::Arc;

use bytes::Bytes;
use service::server::{ClientAddress, ClientQuota, Permit};

use super::archives::ArchiveSets;
use super::folder::{FolderEntries, FolderEntry, FolderReader};
use super::local_time::LocalTime;
use super::page::{self, ListingRow};
use super::path::RequestPath;
use super::sort::SortOrder;

/// Entries of a folder that is sorted at any time.
pub(super) const SMALL: usize = 1000;
/// Entries of a folder that is sorted while few others as large are.
pub(super) const LARGE: usize = 50_000;
/// Large folders that are held as data at a time.
pub(super) const LARGE_AT_ONCE: usize = 8;
/// The same of one client.
pub(super) const LARGE_OF_CLIENT: usize = 2;
/// A page up to this length is sent and kept whole. Units: bytes.
const WHOLE: usize = 256 * 1024;
/// A later part of a page is sent when it is this long. Units: bytes.
const PART: usize = 32 * 1024;

/// Permits of large folders.
pub(super) fn large() -> ClientQuota {
    ClientQuota::new(LARGE_AT_ONCE, LARGE_OF_CLIENT)
}

/// Description of a listing.
#[derive(Debug, Clone)]
pub(super) struct ListingRequest {
    pub(super) path: Arc<RequestPath>,
    pub(super) order: SortOrder,
    pub(super) time: Arc<LocalTime>,
    /// Units: seconds since 1970.
    pub(super) now: i64,
    /// Permits of large folders.
    pub(super) large: ClientQuota,
    pub(super) client: ClientAddress,
    /// Scheme and host of the page's URL, as far as it may be shown.
    pub(super) origin: Option<Arc<str>>,
}

/// The rest of a page.
#[derive(Debug)]
pub(super) struct Listing {
    request: ListingRequest,
    rows: Rows,
    counts: ListingCounts,
}

/// The entries that were rendered.
#[derive(Debug, Default)]
struct ListingCounts {
    folders: usize,
    files: usize,
    archives: ArchiveSets,
}

#[derive(Debug)]
enum Rows {
    /// All of them.
    Sorted {
        entries: FolderEntries,
        next: usize,
        _permit: Option<Permit>,
    },
    /// Read while they are sent.
    Streamed(FolderReader),
}

/// A part of a page, and the rest.
pub(super) type PagePart = (Bytes, Option<Listing>);

impl Listing {
    /// Reads a folder, and renders the first part of its page. It blocks.
    pub(super) fn begin(
        request: ListingRequest,
        mut reader: FolderReader,
    ) -> rustix::io::Result<PagePart> {
        let mut entries = FolderEntries::default();
        let mut permit = None;
        let is_whole = loop {
            if !reader.read(&mut entries)? {
                break true;
            }
            if entries.len() > SMALL && permit.is_none() {
                permit = request.large.acquire_for(request.client).ok();
            }
            let bound = if permit.is_some() { LARGE } else { SMALL };
            if entries.len() > bound {
                break false;
            }
        };
        let mut page = String::with_capacity(PART);
        let order = is_whole.then_some(request.order);
        page::listing_head(&request.path, order, &mut page);
        let rows = if is_whole {
            entries.sort(|one, other| request.order.compare(one, other));
            Rows::Sorted {
                entries,
                next: 0,
                _permit: permit,
            }
        } else {
            reader.rewind()?;
            Rows::Streamed(reader)
        };
        let listing = Self {
            request,
            rows,
            counts: ListingCounts::default(),
        };
        listing.render(page, WHOLE)
    }

    /// Renders the next part. It blocks.
    pub(super) fn next(self) -> rustix::io::Result<PagePart> {
        self.render(String::with_capacity(PART + PART / 2), PART)
    }

    fn render(mut self, mut page: String, bound: usize) -> rustix::io::Result<PagePart> {
        let has_more = match &mut self.rows {
            Rows::Sorted { entries, next, .. } => {
                while *next < entries.len() && page.len() < bound {
                    let entry = &entries.all()[*next..=*next];
                    self.request.rows(entries, entry, &mut page);
                    self.counts.add(entries, entry);
                    *next += 1;
                }
                *next < entries.len()
            }
            Rows::Streamed(reader) => loop {
                let mut entries = FolderEntries::default();
                let has_more = reader.read(&mut entries)?;
                self.request.rows(&entries, entries.all(), &mut page);
                self.counts.add(&entries, entries.all());
                if !has_more || page.len() >= bound {
                    break has_more;
                }
            },
        };
        if has_more {
            return Ok((page.into(), Some(self)));
        }
        page::listing_end(&self.notes(), self.archives().as_deref(), &mut page);
        Ok((page.into(), None))
    }

    /// The URL of archives in the folder.
    fn archives(&self) -> Option<String> {
        let origin = self.request.origin.as_deref()?;
        let folder = format!("{origin}{}", self.request.path.folder_url());
        self.counts.archives.url(&folder)
    }

    fn notes(&self) -> String {
        let count = |count: usize, noun: &str| match count {
            1 => format!("1 {noun}"),
            count => format!("{count} {noun}s"),
        };
        let ListingCounts { folders, files, .. } = self.counts;
        let (folders, files) = (count(folders, "folder"), count(files, "file"));
        let time = &self.request.time;
        let zone = match time.unknown() {
            Some(name) => {
                format!("Times are in UTC: this server has no data of the time zone {name}.")
            }
            None => format!("Times are in {}.", time.name(self.request.now)),
        };
        format!("{folders}, {files}. {zone}")
    }
}

impl ListingRequest {
    /// Appends the rows of entries.
    fn rows(&self, of: &FolderEntries, entries: &[FolderEntry], page: &mut String) {
        let mut modified = String::new();
        for entry in entries {
            modified.clear();
            match entry.modified {
                Some(seconds) => self.time.write(seconds, &mut modified),
                None => modified.push('-'),
            }
            let row = ListingRow {
                name: of.name(entry),
                is_folder: entry.is_folder,
                size: entry.size,
                modified: &modified,
            };
            row.write(page);
        }
    }
}

impl ListingCounts {
    fn add(&mut self, of: &FolderEntries, entries: &[FolderEntry]) {
        for entry in entries {
            if entry.is_folder {
                self.folders += 1;
                continue;
            }
            self.files += 1;
            if entry.size.is_some() {
                self.archives.note(of.name(entry));
            }
        }
    }
}
