//! Headers of members, the same bytes every time.

use std::io;

use model::Error;
use tar::{Builder, EntryType, Header};

use super::member::{MemberKind, PlannedMember};
use super::name::METADATA;

/// Units: bytes.
pub(super) const BLOCK_BYTES: u64 = 512;
/// Two empty blocks end a file. Units: bytes.
pub(super) const END_BYTES: u64 = 2 * BLOCK_BYTES;
/// From here on the size does not fit into a header of POSIX. Units: bytes.
const LARGE_BYTES: u64 = 8 << 30;

/// Size of content with its padding, saturating. Units: bytes.
pub(super) fn padded(size: u64) -> u64 {
    size.checked_next_multiple_of(BLOCK_BYTES)
        .unwrap_or(u64::MAX)
}

/// The header, with those of GNU before it where a name or target is long.
///
/// Errors: Invalid – a path that no archive may have.
pub(super) fn bytes(member: &PlannedMember, mtime: u64) -> Result<Vec<u8>, Error> {
    let PlannedMember { path, size, .. } = member;
    let mut header = match member.kind {
        MemberKind::Symlink(ref target) if fits(path, Some(target)) => Header::new_ustar(),
        MemberKind::Symlink(_) => Header::new_gnu(),
        _ if fits(path, None) && *size < LARGE_BYTES => Header::new_ustar(),
        _ => Header::new_gnu(),
    };
    let (entry_type, mode) = match member.kind {
        MemberKind::Symlink(_) => (EntryType::Symlink, 0o777),
        MemberKind::Directory => (EntryType::Directory, 0o755),
        _ if path == METADATA => (EntryType::Regular, 0o640),
        _ => (EntryType::Regular, 0o644),
    };
    header.set_entry_type(entry_type);
    header.set_mode(mode);
    header.set_size(*size);
    header.set_mtime(mtime);
    header.set_uid(0);
    header.set_gid(0);
    written(header, member)
        .map_err(|e| Error::invalid("path in the archive", format!("{path}: {e}")))
}

fn fits(path: &str, target: Option<&str>) -> bool {
    let mut header = Header::new_ustar();
    header.set_path(path).is_ok() && target.is_none_or(|it| header.set_link_name(it).is_ok())
}

fn written(mut header: Header, member: &PlannedMember) -> io::Result<Vec<u8>> {
    header.set_username("root")?;
    header.set_groupname("root")?;
    let mut builder = Builder::new(Vec::new());
    match &member.kind {
        MemberKind::Symlink(target) => builder.append_link(&mut header, &member.path, target)?,
        _ => builder.append_data(&mut header, &member.path, io::empty())?,
    }
    Ok(builder.get_ref().clone())
}
