//! Locates the files of a set: in folders, or as members of a bundle, which are read at their place in it.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use model::Error;
use net::web::{self, WebFile};

use crate::archive::file::{ArchiveFile, LocalArchive, RecentRead, WebArchive, unreadable};
use crate::archive::listing::{self, END, FILES_LIMIT, LISTING_LIMIT_BYTES};
use crate::archive::name::NamedSet;
use crate::archive::source::{ArchiveSource, WebArchives};
use crate::archive::walk::walk;

/// Levels of folders that are searched.
const DEPTH: usize = 16;
/// First member of a bundle, and the folder of its archives.
const BUNDLE: &str = "manifest.json";
const ARCHIVES: &str = "archives";
/// Requests for files of a web server at a time.
const REQUESTS: usize = 8;

/// The files of one set; where none is called as those of a set are, all tar files.
#[derive(Debug)]
pub(in crate::archive) struct Located {
    /// By number, or by name.
    files: Vec<ArchiveFile>,
    set: Option<NamedSet>,
}

impl Located {
    /// In a folder and those below, next to a file, or in a bundle, also by the path of a member or its folder; on a web
    /// server, in a folder only.
    ///
    /// Errors: NotFound; Invalid – several sequences, or a file twice; those of the web server.
    pub(in crate::archive) fn find(source: &ArchiveSource) -> Result<Self, Error> {
        match source {
            ArchiveSource::Local(path) => Self::find_local(path),
            ArchiveSource::Web(place) => place.runtime.block_on(Self::find_on_web(place)),
        }
    }

    fn find_local(path: &Path) -> Result<Self, Error> {
        let unreadable = |path: &Path, e| unreadable(path.display(), e);
        let metadata = match path.metadata() {
            Ok(metadata) => metadata,
            Err(error) => match bundle_of(path) {
                Some((bundle, below)) => return Self::of_files(path, members(bundle, below)?),
                None => return Err(unreadable(path, error)),
            },
        };
        if metadata.is_dir() {
            let found = search(path, DEPTH).map_err(|e| unreadable(path, e))?;
            return Self::of_files(path, whole_files(&found)?);
        }
        let Some((set, _)) = named(path) else {
            let members = members(path, Path::new(ARCHIVES))?;
            if !members.is_empty() {
                return Self::of_files(path, members);
            }
            return Self::of_files(path, vec![LocalArchive::whole(path)?]);
        };
        let folder = match path.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        let mut beside = search(folder, 0).map_err(|e| unreadable(folder, e))?;
        beside.retain(|other| named(other).is_some_and(|(other, _)| other == set));
        Self::of_files(path, whole_files(&beside)?)
    }

    fn of_files(path: &Path, files: Vec<LocalArchive>) -> Result<Self, Error> {
        if files.is_empty() {
            return Err(Error::invalid(
                path.display().to_string(),
                format!("no archives found in directory {}", path.display()),
            ));
        }
        let numbered = |it: LocalArchive| (named(&it.path), it);
        let files = files.into_iter().map(numbered).collect();
        let order = |it: &LocalArchive| it.path.to_path_buf();
        let (files, set) = one_set(&path.display().to_string(), files, order)?;
        let mut pairs = files.windows(2);
        let is_twice =
            |two: &&[LocalArchive]| set.is_some() && named(&two[0].path) == named(&two[1].path);
        if let Some([one, other]) = pairs.find(is_twice) {
            let reason = format!("the same file is {} as well", other.path.display());
            return Err(Error::invalid(one.path.display().to_string(), reason));
        }
        let files = files.into_iter().map(ArchiveFile::Local);
        Ok(Self {
            files: files.collect(),
            set,
        })
    }

    async fn find_on_web(place: &WebArchives) -> Result<Self, Error> {
        let last = place.url.path_segments().and_then(Iterator::last);
        let named = last.filter(|name| name.ends_with(END));
        let (files, set) = match (named, named.and_then(NamedSet::parse)) {
            (_, Some((set, number))) => (numbered(place, set, number).await?, Some(set)),
            (Some(name), None) => {
                let file = place.server.file(&place.url).await?;
                (vec![(name.to_owned(), file)], None)
            }
            (None, None) => listed(place).await?,
        };
        let (runtime, recent) = (&place.runtime, RecentRead::default());
        let files = files
            .into_iter()
            .map(|(name, file)| ArchiveFile::Web(WebArchive::new(file, &name, runtime, &recent)));
        Ok(Self {
            files: files.collect(),
            set,
        })
    }

    pub(in crate::archive) fn files(&self) -> impl Iterator<Item = &ArchiveFile> {
        self.files.iter()
    }

    /// Errors: Invalid – a number is left out.
    pub(in crate::archive) fn check_numbers(&self) -> Result<(), Error> {
        let Some(set) = self.set else {
            return Ok(());
        };
        for (number, file) in self.files.iter().enumerate() {
            let name = set.file_name(number);
            if file.name() != Some(&name) {
                return Err(missing(&name));
            }
        }
        Ok(())
    }

    /// Errors: Invalid – the names have another one.
    pub(in crate::archive) fn check_sequence(&self, sequence: u64) -> Result<(), Error> {
        match (self.set, self.files.first()) {
            (Some(NamedSet::Sequence(named)), Some(file)) if named != sequence => {
                let reason =
                    format!("it is called as sequence {named}, its metadata says {sequence}");
                Err(Error::invalid(file.to_string(), reason))
            }
            _ => Ok(()),
        }
    }

    /// Errors: Invalid – it is not there.
    pub(in crate::archive) fn named(&self, name: &str) -> Result<&ArchiveFile, Error> {
        let has_name = |file: &&ArchiveFile| file.name() == Some(name);
        match (self.files.iter().find(has_name), &self.files[..]) {
            (Some(file), _) => Ok(file),
            // One that was given another name.
            (None, [only]) if self.set.is_none() => Ok(only),
            (None, _) => Err(missing(name)),
        }
    }
}

/// The file that a path leads through, and the rest of the path: a folder of members.
fn bundle_of(path: &Path) -> Option<(&Path, &Path)> {
    let bundle = path.ancestors().skip(1).find(|it| it.is_file())?;
    let below = path.strip_prefix(bundle).ok()?;
    let folder = named(below).and_then(|_| below.parent());
    Some((bundle, folder.unwrap_or(below)))
}

/// The archives below a folder of a bundle; none in other files.
fn members(bundle: &Path, below: &Path) -> Result<Vec<LocalArchive>, Error> {
    let whole = LocalArchive::whole(bundle)?;
    let mut files = Vec::new();
    let mut is_first = true;
    walk(&ArchiveFile::Local(whole.clone()), |found| {
        if std::mem::take(&mut is_first) && found.path != BUNDLE {
            return Ok(false);
        }
        let path = Path::new(&found.path);
        if path.starts_with(below) && path.extension().is_some_and(|it| it == "tar") {
            files.push(whole.member(&found.path, found.offset, found.size));
        }
        Ok(true)
    })?;
    Ok(files)
}

/// Errors: NotFound; Internal – one cannot be read.
fn whole_files(paths: &[PathBuf]) -> Result<Vec<LocalArchive>, Error> {
    paths.iter().map(|path| LocalArchive::whole(path)).collect()
}

fn missing(name: &str) -> Error {
    Error::invalid(name, "this file of the set is missing")
}

fn named(path: &Path) -> Option<(NamedSet, usize)> {
    NamedSet::parse(path.file_name()?.to_str()?)
}

/// Files of a set, each with the version that its web server has.
type WebFiles = Vec<(String, WebFile)>;

/// The set of a file on a web server, whose listing may be off: the numbers up to the first one that is missing, and at
/// least up to `number`.
async fn numbered(place: &WebArchives, set: NamedSet, number: usize) -> Result<WebFiles, Error> {
    let mut files = Vec::new();
    for next in 0..FILES_LIMIT {
        let name = set.file_name(next);
        let url = place.url.join(&name);
        let url = url.map_err(|e| Error::invalid("URL of archives", e.to_string()))?;
        match place.server.file(&url).await {
            Ok(file) => files.push((name, file)),
            Err(Error::NotFound { .. }) if next > number => break,
            Err(error) => return Err(error),
        }
    }
    Ok(files)
}

/// The set in a folder of a web server.
async fn listed(place: &WebArchives) -> Result<(WebFiles, Option<NamedSet>), Error> {
    let page = place.server.page(&place.url, LISTING_LIMIT_BYTES).await;
    let page = page.map_err(|error| match error {
        Error::Forbidden { reason } => Error::Forbidden {
            reason: format!("{reason}: where listings are off, name the first file of the set"),
        },
        error => error,
    })?;
    let found = listing::archives(&page)?.into_iter();
    let found = found.map(|(name, url)| (NamedSet::parse(&name), (name, url)));
    let (found, set) = one_set(&web::shown(&page.url), found.collect(), Clone::clone)?;
    let files = stream::iter(found).map(|(name, url)| async move {
        let file = place.server.file(&url).await?;
        Ok::<_, Error>((name, file))
    });
    let files = files.buffered(REQUESTS).try_collect().await?;
    Ok((files, set))
}

/// Set and number of a file, by its name.
type FileNumber = Option<(NamedSet, usize)>;

/// The files of the only set, by number and `order`; where none is called as those of a set are, all.
///
/// Errors: Invalid – several sets.
fn one_set<T, K: Ord>(
    place: &str,
    mut files: Vec<(FileNumber, T)>,
    order: impl Fn(&T) -> K,
) -> Result<(Vec<T>, Option<NamedSet>), Error> {
    let sets: BTreeSet<NamedSet> = files.iter().filter_map(|it| Some(it.0?.0)).collect();
    if sets.len() > 1 {
        let sequence = |set: &NamedSet| match set {
            NamedSet::Sequence(sequence) => Some(sequence.to_string()),
            NamedSet::V2 => None,
        };
        let all: Vec<_> = sets.iter().filter_map(sequence).collect();
        let others = if sets.contains(&NamedSet::V2) {
            " and of oc-mirror v2"
        } else {
            ""
        };
        let reason = format!(
            "it has archives of the sequences {}{others}: name a file of one of them",
            all.join(", ")
        );
        return Err(Error::invalid(place, reason));
    }
    let set = sets.into_iter().next();
    if set.is_some() {
        files.retain(|(number, _)| number.is_some());
    }
    files.sort_by_key(|(number, file)| (*number, order(file)));
    Ok((files.into_iter().map(|(_, file)| file).collect(), set))
}

/// Tar files below a folder. Links to folders are not followed, as the peer does not.
pub(in crate::archive) fn search(folder: &Path, depth: usize) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let kind = fs::symlink_metadata(&path)?.file_type();
        if kind.is_dir() && depth > 0 {
            found.extend(search(&path, depth - 1)?);
        } else if !kind.is_dir() && path.extension().is_some_and(|it| it == "tar") && path.is_file()
        {
            found.push(path);
        }
    }
    Ok(found)
}
