//! cpio archives in the newc format, as the kernel unpacks them into its first root file system.

use crate::Error;

/// Bits of a regular file's kind, to be joined with its permissions.
pub const REGULAR: u32 = 0o100_000;
/// Bits of a directory's kind.
pub const DIRECTORY: u32 = 0o040_000;
/// Bits of a symbolic link's kind; its data is the target.
pub const LINK: u32 = 0o120_000;

const KIND: u32 = 0o170_000;
const MAGIC: &[u8] = b"070701";
/// Units: bytes. Six of magic and thirteen numbers of eight hexadecimal digits.
pub const HEADER: usize = 110;
const TRAILER: &str = "TRAILER!!!";

/// A member read from an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpioMember<'a> {
    /// Path in the archive.
    pub name: &'a str,
    /// Kind and permissions.
    pub mode: u32,
    /// Contents.
    pub data: &'a [u8],
}

/// Header, name and padding of a member with `size` bytes of data; the data and [`padding`] follow.
///
/// Inode numbers matter only to hard links, of which we write none.
pub fn header(name: &str, mode: u32, size: u32) -> Vec<u8> {
    let links = 1 + u32::from(mode & KIND == DIRECTORY);
    let name_size = u32::try_from(name.len() + 1).unwrap_or(u32::MAX);
    let fields = [0, mode, 0, 0, links, 0, size, 0, 0, 0, 0, name_size, 0];
    let mut bytes = MAGIC.to_vec();
    for field in fields {
        bytes.extend(format!("{field:08X}").bytes());
    }
    bytes.extend(name.bytes());
    bytes.push(0);
    bytes.resize(bytes.len() + padding(bytes.len() as u64), 0);
    bytes
}

/// The member that ends an archive.
pub fn trailer() -> Vec<u8> {
    header(TRAILER, 0, 0)
}

/// How many zero bytes bring `length` to a multiple of four.
pub fn padding(length: u64) -> usize {
    // Less than four, so the cast keeps it whole.
    (length.wrapping_neg() % 4) as usize
}

/// A whole archive of small members.
///
/// Errors: `Archive` when a member is too large for the format (4 GiB).
pub fn write(members: &[CpioMember<'_>]) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    for member in members {
        let size = u32::try_from(member.data.len())
            .map_err(|_| Error::Archive(format!("{} is larger than 4 GiB", member.name)))?;
        bytes.extend(header(member.name, member.mode, size));
        bytes.extend(member.data);
        bytes.resize(bytes.len() + padding(u64::from(size)), 0);
    }
    bytes.extend(trailer());
    Ok(bytes)
}

/// Reads one archive from the start of `bytes`; returns its members and how many bytes it takes.
///
/// Errors: `Archive` when it is no newc archive, or is truncated.
pub fn read(bytes: &[u8]) -> Result<(Vec<CpioMember<'_>>, usize), Error> {
    let mut members = Vec::new();
    let mut at = 0;
    loop {
        let fields = read_header(bytes, at)?;
        let [mode, size, name_size] = fields;
        let name_start = at + HEADER;
        let name_bytes = slice(bytes, name_start, name_size as usize, at)?;
        let name = name_bytes
            .strip_suffix(&[0])
            .and_then(|name| std::str::from_utf8(name).ok())
            .ok_or_else(|| {
                Error::Archive(format!("the name of the member at byte {at} is no text"))
            })?;
        let data_start = aligned(name_start + name_bytes.len());
        let data = slice(bytes, data_start, size as usize, at)?;
        at = aligned(data_start + data.len());
        if name == TRAILER {
            return Ok((members, at.min(bytes.len())));
        }
        members.push(CpioMember { name, mode, data });
    }
}

/// Sizes of the data and of the name, with its zero byte, in a member's header.
///
/// Errors: `Archive` when it is no newc header.
pub fn sizes(header: &[u8; HEADER]) -> Result<(u32, u32), Error> {
    read_header(header, 0).map(|[_, size, name_size]| (size, name_size))
}

/// Mode, size and length of the name.
fn read_header(bytes: &[u8], at: usize) -> Result<[u32; 3], Error> {
    let header = slice(bytes, at, HEADER, at)?;
    if !header.starts_with(MAGIC) {
        let reason = format!("no newc header at byte {at}");
        return Err(Error::Archive(reason));
    }
    let field = |index: usize| {
        let digits = &header[MAGIC.len() + index * 8..][..8];
        std::str::from_utf8(digits)
            .ok()
            .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
            .and_then(|digits| u32::from_str_radix(digits, 16).ok())
            .ok_or_else(|| Error::Archive(format!("a broken number in the header at byte {at}")))
    };
    Ok([field(1)?, field(6)?, field(11)?])
}

fn slice(bytes: &[u8], start: usize, length: usize, member: usize) -> Result<&[u8], Error> {
    start
        .checked_add(length)
        .and_then(|end| bytes.get(start..end))
        .ok_or_else(|| Error::Archive(format!("ends within the member at byte {member}")))
}

fn aligned(length: usize) -> usize {
    length + padding(length as u64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_archive_has_the_known_bytes() {
        let member = CpioMember {
            name: "a",
            mode: REGULAR | 0o644,
            data: b"xyz",
        };
        let bytes = write(&[member]).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.starts_with("07070100000000000081A4"), "{text}");
        assert_eq!(text.len(), 112 + 4 + 124);
        assert_eq!(&text[110..116], "a\0xyz\0");
    }

    proptest! {
        #[test]
        fn archives_round_trip(
            files in proptest::collection::vec(("[a-z/.]{1,20}", proptest::collection::vec(any::<u8>(), 0..50)), 0..6),
        ) {
            let members: Vec<_> = files
                .iter()
                .map(|(name, data)| CpioMember { name, mode: REGULAR | 0o600, data })
                .collect();
            let bytes = write(&members).unwrap();
            let (read, length) = read(&bytes).unwrap();
            prop_assert_eq!(read, members);
            prop_assert_eq!(length, bytes.len());
            prop_assert_eq!(length % 4, 0);
        }

        #[test]
        fn reading_never_panics(mut bytes in proptest::collection::vec(any::<u8>(), 0..300), is_magic: bool) {
            if is_magic {
                bytes.splice(0..0, MAGIC.iter().copied());
            }
            read(&bytes).ok();
        }

        #[test]
        fn damaged_archives_never_panic(at in 0..240_usize, byte: u8, cut in 0..240_usize) {
            let mut bytes = write(&[CpioMember { name: "a", mode: REGULAR, data: b"xyz" }]).unwrap();
            bytes[at % 236] = byte;
            bytes.truncate(cut);
            read(&bytes).ok();
        }
    }
}
