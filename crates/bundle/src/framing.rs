//! The bytes between the contents of members: tar headers and padding, each with one allowed value.

use model::Error;

use crate::manifest::{BundleMember, Encoding, is_safe};

/// Units: bytes. Of tar.
pub(crate) const BLOCK_BYTES: usize = 512;
pub(crate) const BLOCK: u64 = BLOCK_BYTES as u64;
/// Units: bytes. Two empty blocks.
pub(crate) const END_BYTES: usize = 2 * BLOCK_BYTES;
pub(crate) const END: u64 = END_BYTES as u64;
/// Units: bytes. File systems share blocks of this size between files.
const ALIGNMENT: u64 = 4096;
/// Units: bytes. Smaller members gain nothing from sharing.
const ALIGNED_FROM: u64 = 1 << 20;
/// Modification time of every member: the same input gives the same file. Some tools warn about zero.
const MODIFIED: u64 = 1;
/// Name of the header that aligns the next member.
const PADDING: &str = "PaxHeaders/padding";
const PADDING_KEY: &str = "comment=";

/// Header of a member with `size` bytes.
///
/// Errors: Invalid – the path is too long or unsafe.
pub(crate) fn header(path: &str, mode: u32, size: u64) -> Result<Vec<u8>, Error> {
    if !is_safe(path) {
        let limit = crate::manifest::PATH_LIMIT_BYTES;
        let reason = format!(
            "{path:?} cannot be the name of a member: rename the file, to at most {limit} bytes with its folder"
        );
        return Err(Error::invalid("bundle", reason));
    }
    block(tar::EntryType::Regular, path, mode, size)
}

/// All bytes between the offset `at` and the content of a member.
///
/// Errors: as [`header`].
pub(crate) fn before(at: u64, path: &str, mode: u32, size: u64) -> Result<Vec<u8>, Error> {
    let mut bytes = if size < ALIGNED_FROM {
        Vec::new()
    } else {
        padding((at + BLOCK).wrapping_neg() % ALIGNMENT)?
    };
    bytes.extend(header(path, mode, size)?);
    Ok(bytes)
}

/// [`before`] the stored bytes of a member. Compressed members are not aligned: their length was unknown.
///
/// Errors: as [`header`].
pub(crate) fn before_stored(at: u64, member: &BundleMember) -> Result<Vec<u8>, Error> {
    match member.encoding {
        Encoding::Plain => before(at, &member.path, member.mode, member.size),
        Encoding::Gzip => header(&member.path, member.mode, member.size),
    }
}

/// Zeros behind `size` bytes of content.
pub(crate) fn after(size: u64) -> usize {
    // Below 512.
    usize::try_from(size.wrapping_neg() % BLOCK).unwrap_or_default()
}

/// A comment of PAX, which readers skip, of `length` bytes or one alignment more: it has at least two blocks.
fn padding(length: u64) -> Result<Vec<u8>, Error> {
    if length == 0 {
        return Ok(Vec::new());
    }
    let length = if length < 2 * BLOCK {
        length + ALIGNMENT
    } else {
        length
    };
    let record = length - BLOCK;
    let mut bytes = block(tar::EntryType::XHeader, PADDING, 0o644, record)?;
    let start = format!("{record} {PADDING_KEY}");
    bytes.extend(start.as_bytes());
    let spaces = usize::try_from(record).unwrap_or_default() - start.len() - 1;
    bytes.extend(std::iter::repeat_n(b' ', spaces));
    bytes.push(b'\n');
    Ok(bytes)
}

fn block(kind: tar::EntryType, path: &str, mode: u32, size: u64) -> Result<Vec<u8>, Error> {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header
        .set_path(path)
        .map_err(|e| Error::internal(format!("naming {path}"), e))?;
    header.set_mode(mode & 0o777);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(MODIFIED);
    header.set_size(size);
    header.set_cksum();
    Ok(header.as_bytes().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_members_are_aligned_from_any_offset() {
        for at in (0..64).map(|index| index * BLOCK) {
            for (size, is_aligned) in [(ALIGNED_FROM, true), (u64::MAX >> 2, true), (5, false)] {
                let bytes = before(at, "images/a.iso", 0o644, size).unwrap();
                assert_eq!(bytes.len() as u64 % BLOCK, 0);
                let data = at + bytes.len() as u64;
                assert!(!is_aligned || data.is_multiple_of(ALIGNMENT), "{at}");
                assert!(is_aligned || bytes.len() as u64 == BLOCK, "{at}");
            }
        }
    }

    #[test]
    fn names_at_the_limit_are_taken_and_longer_ones_refused() {
        header(&"a".repeat(100), 0o644, 1).unwrap();
        let error = header(&"a".repeat(101), 0o644, 1).unwrap_err();
        assert!(error.to_string().contains("rename"), "{error}");
        assert!(header("../a", 0o644, 1).is_err());
    }
}
