//! Reader of a backup file: verification, then extraction.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, BufReader, Read, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _, fchown};
use std::path::{Path, PathBuf};

use service::{Error, ResultExt as _};
use sha2::{Digest as _, Sha256};

use super::index::{
    BackupIndex, BackupMember, FORMAT, HEADING, Heading, INDEX, INDEX_SUM, is_safe,
};
use super::writer::HashingReader;

/// Units: bytes. An index has some 200 bytes per member, and members have at least 512 bytes.
const INDEX_LIMIT: u64 = 1 << 30;
/// Units: bytes. Of the heading, of the checksum of the index, and of other members that are read into memory.
const SMALL_LIMIT: u64 = 1 << 20;
const BUFFER: usize = 1 << 20;

/// A verified backup.
#[derive(Debug)]
pub(super) struct Verified {
    file: PathBuf,
    /// Index of its members.
    pub(super) index: BackupIndex,
}

impl Verified {
    /// Verifies `file` against its checksums.
    ///
    /// Errors: no backup, another format version, or damaged, with the member concerned.
    pub(super) fn new(file: &Path) -> Result<Self, Error> {
        let doing = || format!("verifying {}", file.display());
        let damaged = |text: String| Error::new(doing(), text);
        let mut found: Vec<(String, u64, String)> = Vec::new();
        let mut heading = None;
        let mut index = None;
        let mut sum = None;
        each(file, |path, size, content| {
            match path {
                HEADING if found.is_empty() && heading.is_none() => {
                    heading = Some(text(size, SMALL_LIMIT, content)?);
                }
                INDEX if index.is_none() => index = Some(text(size, INDEX_LIMIT, content)?),
                INDEX_SUM if sum.is_none() => sum = Some(text(size, SMALL_LIMIT, content)?),
                _ if index.is_none() => found.push((path.to_owned(), size, hash(content)?)),
                _ => return Err(io::Error::other(format!("{path:?} comes after the index"))),
            }
            Ok(())
        })
        .map_err(|e| {
            // Words of the tar reader name no file.
            let is_foreign = heading.is_none() && e.raw_os_error().is_none();
            if is_foreign {
                let reason =
                    format!("not a file of `atoll backup`, or damaged at its beginning ({e})");
                return Error::new(doing(), reason);
            }
            Error::new(doing(), e)
        })?;
        let heading = heading.ok_or_else(|| damaged("not a file of `atoll backup`".into()))?;
        let heading: Heading = serde_json::from_slice(&heading).doing(doing)?;
        // Both are printed.
        if [&heading.program, &heading.created_at]
            .iter()
            .any(|text| text.contains(char::is_control))
        {
            return Err(damaged("its heading is no heading of a backup".into()));
        }
        if heading.format != FORMAT {
            return Err(damaged(format!(
                "unsupported format {}, expected {FORMAT}: use version {} of atoll",
                heading.format, heading.program
            )));
        }
        let truncated = || damaged("the file is truncated: it has no index".into());
        let (index, sum) = index.zip(sum).ok_or_else(truncated)?;
        let own = format!("{}  {INDEX}\n", hex::encode(Sha256::digest(&index)));
        if sum != own.as_bytes() {
            return Err(damaged("checksum mismatch of the index".into()));
        }
        let index: BackupIndex = serde_json::from_slice(&index).doing(doing)?;
        if index.heading != heading {
            return Err(damaged("heading and index do not match".into()));
        }
        compare(&index.members, &found).map_err(damaged)?;
        Ok(Self {
            file: file.to_owned(),
            index,
        })
    }

    /// Content of one small member.
    ///
    /// Errors: missing, or changed after verification.
    pub(super) fn member(&self, name: &str) -> Result<Vec<u8>, Error> {
        let find = || -> io::Result<Vec<u8>> {
            let mut archive = tar::Archive::new(File::open(&self.file)?);
            for entry in archive.entries_with_seek()? {
                let mut entry = entry?;
                if entry.path()?.to_str() == Some(name) {
                    return text(entry.size(), SMALL_LIMIT, &mut entry);
                }
            }
            Err(io::ErrorKind::NotFound.into())
        };
        let doing = || format!("reading {name} of {}", self.file.display());
        let content = find().doing(doing)?;
        let sum = hex::encode(Sha256::digest(&content));
        let mut members = self.index.members.iter();
        if members.any(|member| member.path == name && member.sha256 == sum) {
            return Ok(content);
        }
        Err(Error::new(doing(), "it changed after verification"))
    }

    /// Extracts every member to the path that `to` returns, or skips it on none. Owners are kept if `is_owned`.
    ///
    /// Errors: no space; a member that changed after verification.
    pub(super) fn extract(
        &self,
        is_owned: bool,
        to: impl Fn(&str) -> Option<PathBuf>,
    ) -> Result<(), Error> {
        let mut members = self.index.members.iter();
        each(&self.file, |path, _, content| {
            if path == HEADING || path == INDEX || path == INDEX_SUM {
                return Ok(());
            }
            let changed = || io::Error::other(format!("{path:?} changed after verification"));
            let member = members.next().filter(|member| member.path == path);
            let member = member.ok_or_else(changed)?;
            let target = to(path).filter(|_| !member.is_dangling);
            let found = match target {
                None => hash(content)?,
                Some(target) => write(&target, member, is_owned, content)?,
            };
            if found == member.sha256 {
                Ok(())
            } else {
                Err(changed())
            }
        })
        .doing(|| format!("extracting {}", self.file.display()))
    }
}

fn compare(members: &[BackupMember], found: &[(String, u64, String)]) -> Result<(), String> {
    for (member, (path, size, sha256)) in members.iter().zip(found) {
        if member.path != *path || member.size != *size || member.sha256 != *sha256 {
            return Err(format!("{path:?} is damaged"));
        }
    }
    if members.len() == found.len() {
        Ok(())
    } else {
        Err(format!(
            "the index has {} members, the file {}",
            members.len(),
            found.len()
        ))
    }
}

/// Calls `visit` with path, size and content of each member.
fn each(
    file: &Path,
    mut visit: impl FnMut(&str, u64, &mut dyn Read) -> io::Result<()>,
) -> io::Result<()> {
    let file = BufReader::with_capacity(BUFFER, File::open(file)?);
    let mut archive = tar::Archive::new(file);
    for entry in archive.entries()? {
        let mut entry = entry?;
        let path = entry.path()?.to_str().unwrap_or_default().to_owned();
        if !is_safe(&path) || !entry.header().entry_type().is_file() {
            return Err(io::Error::other(format!("unexpected member {path:?}")));
        }
        let size = entry.size();
        visit(&path, size, &mut entry)?;
    }
    Ok(())
}

fn text(size: u64, limit: u64, content: &mut dyn Read) -> io::Result<Vec<u8>> {
    if size > limit {
        let reason = format!("a member has {size} bytes, more than {limit}");
        return Err(io::Error::other(reason));
    }
    let mut text = Vec::new();
    content.take(limit).read_to_end(&mut text)?;
    Ok(text)
}

fn hash(content: &mut dyn Read) -> io::Result<String> {
    let mut hashed = hashing(content);
    io::copy(&mut hashed, &mut io::sink())?;
    Ok(hex::encode(hashed.sha256.finalize()))
}

fn hashing(content: &mut dyn Read) -> HashingReader<&mut dyn Read> {
    HashingReader {
        inner: content,
        sha256: Sha256::new(),
        size: 0,
    }
}

/// Writes a new file and returns the checksum of its content.
fn write(
    target: &Path,
    member: &BackupMember,
    is_owned: bool,
    content: &mut dyn Read,
) -> io::Result<String> {
    let folder = target.parent().unwrap_or(Path::new("/"));
    create_folders(folder, member, is_owned)?;
    let mut file = OpenOptions::new()
        .create_new(true)
        .write(true)
        .mode(0o600)
        .open(target)?;
    let mut hashed = hashing(content);
    io::copy(&mut hashed, &mut file)?;
    file.flush()?;
    if is_owned {
        fchown(&file, Some(member.uid), Some(member.gid))?;
    }
    file.set_permissions(Permissions::from_mode(member.mode & 0o777))?;
    Ok(hex::encode(hashed.sha256.finalize()))
}

/// Creates missing folders, with the owner of their first member.
fn create_folders(folder: &Path, member: &BackupMember, is_owned: bool) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    if let Some(parent) = folder.parent() {
        create_folders(parent, member, is_owned)?;
    }
    fs::create_dir(folder)?;
    fs::set_permissions(folder, Permissions::from_mode(0o700))?;
    if is_owned {
        std::os::unix::fs::chown(folder, Some(member.uid), Some(member.gid))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::index::InstallationKind;
    use super::super::writer::{BackupWriter, Owner};
    use super::*;

    const MEMBERS: [(&str, &str); 3] = [
        ("database", "a dump"),
        ("folder/.env", "NAME=value\n"),
        ("registry/docker/link", "sha256:0"),
    ];

    /// Bytes of a small backup.
    fn whole(folder: &Path) -> Vec<u8> {
        let file = folder.join("whole");
        let mut writer = BackupWriter::create(&file, Heading::new(InstallationKind::Pod)).unwrap();
        for (path, content) in MEMBERS {
            let (size, content) = (content.len() as u64, content.as_bytes());
            writer.add(path, Owner::PRIVATE, size, content).unwrap();
        }
        writer.finish(&BTreeSet::new()).unwrap();
        fs::read(file).unwrap()
    }

    /// Extracts these bytes and compares all members; false if verification refuses them.
    fn is_restored(folder: &Path, bytes: &[u8]) -> bool {
        let (file, target) = (folder.join("file"), folder.join("target"));
        fs::write(&file, bytes).unwrap();
        let backup = match Verified::new(&file) {
            Ok(backup) => backup,
            Err(error) => {
                let text = error.to_string();
                assert!(text.starts_with("verifying "), "{text}");
                return false;
            }
        };
        backup
            .extract(false, |path| Some(target.join(path)))
            .unwrap();
        for (path, content) in MEMBERS {
            assert_eq!(fs::read_to_string(target.join(path)).unwrap(), content);
            assert_eq!(backup.member(path).unwrap(), content.as_bytes());
        }
        fs::remove_dir_all(target).unwrap();
        true
    }

    #[test]
    fn damaged_backups_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let whole = whole(folder.path());
        assert!(is_restored(folder.path(), &whole));
        let mut refused = 0;
        for place in (0..whole.len()).step_by(29) {
            let mut flipped = whole.clone();
            flipped[place] ^= 1 << (place % 8);
            refused += usize::from(!is_restored(folder.path(), &flipped));
        }
        // The rest is padding.
        assert!(refused > 50, "{refused}");
        // Truncated before its index.
        let index = whole.len() - 1024 * 3;
        for length in (0..index).step_by(61) {
            assert!(!is_restored(folder.path(), &whole[..length]), "{length}");
        }
    }

    /// A tar of one entry besides those of a backup, in front of them.
    fn with_entry(whole: &[u8], kind: tar::EntryType, path: &[u8], size: u64) -> Vec<u8> {
        let mut header = tar::Header::new_gnu();
        header.as_old_mut().name[..path.len()].copy_from_slice(path);
        header.set_entry_type(kind);
        header.set_mode(0o6777);
        header.set_size(size);
        header.set_link_name("/etc/passwd").unwrap();
        header.set_cksum();
        // The heading, with its block of content, stays in front.
        let (heading, rest) = whole.split_at(1024);
        [heading, header.as_bytes(), rest].concat()
    }

    #[test]
    fn hostile_entries_are_refused_before_anything_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let whole = whole(folder.path());
        for kind in [
            tar::EntryType::Symlink,
            tar::EntryType::Link,
            tar::EntryType::Char,
            tar::EntryType::Block,
            tar::EntryType::Fifo,
            tar::EntryType::Directory,
            tar::EntryType::GNUSparse,
        ] {
            let bytes = with_entry(&whole, kind, b"registry/docker/x", 0);
            assert!(!is_restored(folder.path(), &bytes), "{kind:?}");
        }
        for path in [
            &b"/etc/cron.d/x"[..],
            b"../x",
            b"registry/../../x",
            b"registry/./x",
            b"a\\b",
            b"\xff",
        ] {
            let bytes = with_entry(&whole, tar::EntryType::Regular, path, 0);
            assert!(!is_restored(folder.path(), &bytes), "{path:?}");
        }
        // Sizes that no file has are not allocated.
        for (path, size) in [
            (&b"registry/docker/x"[..], 1 << 60),
            (b"index.json", 1 << 60),
            (b"index.json", 1 << 29),
            (b"heading.json", 1 << 40),
        ] {
            let bytes = with_entry(&whole, tar::EntryType::Regular, path, size);
            assert!(!is_restored(folder.path(), &bytes), "{path:?}");
        }
        assert!(!folder.path().join("target").exists());
    }

    #[test]
    fn a_heading_sends_nothing_to_the_terminal() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        let heading = Heading {
            program: "1\u{1b}]0;title\u{7}".to_owned(),
            ..Heading::new(InstallationKind::Up)
        };
        let writer = BackupWriter::create(&file, heading).unwrap();
        writer.finish(&BTreeSet::new()).unwrap();
        let error = Verified::new(&file).unwrap_err().to_string();
        assert!(!error.contains(char::is_control), "{error:?}");
        assert!(error.contains("heading"), "{error}");
    }

    /// The index is the attacker's, too: its modes and owners are not.
    #[test]
    fn no_restored_file_has_special_modes() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("target");
        let member = BackupMember {
            path: "file".to_owned(),
            size: 1,
            sha256: String::new(),
            mode: 0o106_777,
            uid: 0,
            gid: 0,
            is_dangling: false,
        };
        write(&target, &member, false, &mut &b"x"[..]).unwrap();
        let mode = fs::metadata(&target).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o777);
        // Nothing that is there is written to, such as a link.
        std::os::unix::fs::symlink("/dev/null", folder.path().join("link")).unwrap();
        let link = folder.path().join("link");
        assert!(write(&link, &member, false, &mut &b"x"[..]).is_err());
    }

    #[test]
    fn a_member_that_changed_after_verification_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let mut bytes = whole(folder.path());
        let file = folder.path().join("whole");
        let backup = Verified::new(&file).unwrap();
        assert!(backup.member("folder/none").is_err());
        let content = MEMBERS[1].1.as_bytes();
        let mut places = bytes.windows(content.len());
        let place = places.position(|part| part == content).unwrap();
        bytes[place] = b'M';
        fs::write(&file, bytes).unwrap();
        let error = backup.member(MEMBERS[1].0).unwrap_err();
        assert!(error.to_string().contains("changed"), "{error}");
        assert!(backup.extract(false, |_| None).is_err());
    }
}
