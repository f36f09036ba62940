//! A path opened beneath a folder without `openat2`: component by component, with an open folder for each.

use std::collections::VecDeque;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::fs::{FileType, Mode, OFlags, fstat, openat, readlinkat};
use rustix::io::Errno;

/// Symbolic links in one path. Source: the kernel's own bound.
const MAX_LINKS: usize = 40;
/// Open folders of one path. Units: folders.
const MAX_DEPTH: usize = 64;

/// Opens `relative` beneath `root`.
///
/// Errors: as of `openat2` with `RESOLVE_BENEATH`; `NAMETOOLONG` for paths of more folders than any mirror has.
pub(super) fn open(
    root: BorrowedFd<'_>,
    relative: &[u8],
    flags: OFlags,
) -> rustix::io::Result<OwnedFd> {
    let entry = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut folders: Vec<OwnedFd> = vec![openat(root, ".", entry, Mode::empty())?];
    let mut left = components(relative);
    let mut links = 0;
    while let Some(name) = left.pop_front() {
        let folder = folders.last().ok_or(Errno::XDEV)?;
        if name == b".." {
            folders.pop();
            if folders.is_empty() {
                return Err(Errno::XDEV);
            }
            continue;
        }
        let opened = openat(folder, name.as_slice(), entry, Mode::empty())?;
        match FileType::from_raw_mode(fstat(&opened)?.st_mode) {
            FileType::Directory if folders.len() >= MAX_DEPTH => return Err(Errno::NAMETOOLONG),
            FileType::Directory => folders.push(opened),
            FileType::Symlink => {
                links += 1;
                if links > MAX_LINKS {
                    return Err(Errno::LOOP);
                }
                let target = readlinkat(&opened, c"", Vec::new())?.into_bytes();
                if target.starts_with(b"/") {
                    return Err(Errno::XDEV);
                }
                for component in components(&target).into_iter().rev() {
                    left.push_front(component);
                }
            }
            _ if !left.is_empty() => return Err(Errno::NOTDIR),
            // A link that took its place since then is an error, not a way out.
            _ => return openat(folder, name, flags | OFlags::NOFOLLOW, Mode::empty()),
        }
    }
    let folder = folders.last().ok_or(Errno::XDEV)?;
    openat(folder, ".", flags, Mode::empty())
}

fn components(path: &[u8]) -> VecDeque<Vec<u8>> {
    path.split(|byte| *byte == b'/')
        .filter(|name| !matches!(*name, b"" | b"."))
        .map(<[u8]>::to_vec)
        .collect()
}
