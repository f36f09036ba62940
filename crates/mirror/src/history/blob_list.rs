//! Lists of the blobs of previous archives, as the peer's v2 keeps them in a workspace: a run of it leaves these blobs out.
//!
//! Source: oc-mirror v2, `internal/pkg/history`.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use model::Error;
use model::time::Timestamp;
use oci::Digest;

use super::metadata_file::write_file;
use crate::archive::{Extra, v2_paths};

/// Start of the names of lists; the time of the run follows.
const START: &str = ".history-";

/// A list that is written when its run is complete.
#[derive(Debug, Clone)]
pub(crate) struct BlobList {
    path: PathBuf,
    content: Bytes,
}

impl BlobList {
    /// The list of a run, for the folder of the history. `time` is in seconds since 1970.
    pub(crate) fn new<'a>(
        folder: &Path,
        time: i64,
        blobs: impl Iterator<Item = &'a Digest>,
    ) -> Self {
        Self {
            path: folder.join(format!("{START}{}", time_of(time))),
            content: lines(&blobs.collect()),
        }
    }

    /// Writes the list.
    ///
    /// Blocking. Errors: Internal – it cannot be written.
    pub(crate) fn write(&self) -> Result<(), Error> {
        let Self { path, content } = self;
        let folder = path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder)
            .and_then(|()| write_file(path, content))
            .map_err(|e| Error::internal(format!("writing {}", path.display()), e))
    }
}

/// The last list in the folder, or the last one before a time, with its time. Units: seconds since 1970.
///
/// Blocking. Errors: Internal – it cannot be read.
pub(super) fn newest(
    folder: &Path,
    before: Option<i64>,
) -> Result<Option<(i64, BTreeSet<Digest>)>, Error> {
    let failed = |e| Error::internal(format!("reading {}", folder.display()), e);
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(failed(e)),
    };
    let mut newest: Option<(i64, PathBuf)> = None;
    for entry in entries {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        let time = name.and_then(|name| name.strip_prefix(START)?.parse::<Timestamp>().ok());
        let time = time.map(|time| time.timestamp());
        let Some(time) = time.filter(|time| before.is_none_or(|before| *time < before)) else {
            continue;
        };
        if newest.as_ref().is_none_or(|(last, _)| *last < time) {
            newest = Some((time, path));
        }
    }
    let Some((time, path)) = newest else {
        return Ok(None);
    };
    let content = fs::read_to_string(&path);
    let content = content.map_err(|e| Error::internal(format!("reading {}", path.display()), e))?;
    let blobs = content.lines().filter_map(|line| line.trim().parse().ok());
    Ok(Some((time, blobs.collect())))
}

/// The list of previous archives' blobs in an archive; none without such blobs. `time` is that of the last run, in seconds
/// since 1970.
pub(crate) fn carried_extra(time: i64, carried: &BTreeSet<Digest>) -> Option<Extra> {
    if carried.is_empty() {
        return None;
    }
    let path = format!("{}{}", v2_paths::HISTORY, time_of(time));
    Some(Extra::inline(path, lines(&carried.iter().collect())))
}

/// A time as the peer has it in names of files. Units: seconds since 1970.
pub(crate) fn time_of(seconds: i64) -> String {
    let time = Timestamp::from_timestamp(seconds, 0).unwrap_or_default();
    time.format("%Y-%m-%dT%H:%M:%SZ").to_string()
}

fn lines(blobs: &BTreeSet<&Digest>) -> Bytes {
    let lines = blobs.iter().map(|digest| format!("{digest}\n"));
    lines.collect::<String>().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_list_before_a_time_counts() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(newest(&dir.path().join("absent"), None).unwrap(), None);
        let [one, two] = ["1", "2"].map(|it| Digest::sha256(it.as_bytes()));
        for (time, blobs) in [(100, vec![&one]), (200, vec![&one, &two])] {
            let list = BlobList::new(dir.path(), time, blobs.into_iter());
            list.write().unwrap();
        }
        fs::write(dir.path().join("run-000001.json"), "{}").unwrap();
        let both: BTreeSet<_> = [one.clone(), two].into();
        for (before, expected) in [
            (None, Some((200, both.clone()))),
            (Some(201), Some((200, both))),
            (Some(200), Some((100, [one].into()))),
            (Some(100), None),
        ] {
            assert_eq!(newest(dir.path(), before).unwrap(), expected, "{before:?}");
        }
    }
}
