//! The archive of a configuration: one compressed cpio member, which early boot reads.

use std::io::Read as _;

use flate2::bufread::GzDecoder;

use crate::Error;
use crate::cpio::{self, CpioMember};
use crate::data_url::{MAX_UNPACKED, gzip};

/// Name of the member that Ignition reads.
pub const MEMBER: &str = "config.ign";

/// Units: bytes. The area that live images reserve for the archive.
pub const EMBED_AREA: usize = 262_144;

const GZIP_MAGIC: &[u8] = &[0x1f, 0x8b];

/// A member of an archive, unpacked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchiveFile {
    /// Path in the archive.
    pub name: String,
    /// Kind and permissions.
    pub mode: u32,
    /// Contents.
    pub data: Vec<u8>,
}

/// Packs a configuration: gzip of a newc archive with the one member, padded with zeros to a multiple of four so
/// that another archive may follow.
///
/// Errors: `Archive` when the configuration does not fit into the format (4 GiB).
pub fn write(config: &[u8]) -> Result<Vec<u8>, Error> {
    pack(&[CpioMember {
        name: MEMBER,
        mode: cpio::REGULAR | 0o644,
        data: config,
    }])
}

/// Packs members: gzip of a newc archive, padded with zeros to a multiple of four.
///
/// Errors: `Archive` when a member does not fit into the format (4 GiB).
pub fn pack(members: &[CpioMember<'_>]) -> Result<Vec<u8>, Error> {
    let mut packed = gzip(&cpio::write(members)?);
    packed.resize(packed.len() + cpio::padding(packed.len() as u64), 0);
    Ok(packed)
}

/// Unpacks everything in `bytes`: any number of archives one after the other, gzip or plain, zeros between.
///
/// Errors: `Archive` when anything else is found, or it unpacks to more than [`MAX_UNPACKED`].
pub fn read(mut bytes: &[u8]) -> Result<Vec<ArchiveFile>, Error> {
    let mut files = Vec::new();
    let mut budget = MAX_UNPACKED;
    loop {
        let start = bytes.iter().position(|byte| *byte != 0);
        let Some(start) = start else { return Ok(files) };
        bytes = &bytes[start..];
        if bytes.starts_with(GZIP_MAGIC) {
            let (unpacked, rest) = unpack(bytes, budget)?;
            budget -= unpacked.len() as u64;
            read_plain(&unpacked, &mut files)?;
            bytes = rest;
        } else {
            let (members, length) = cpio::read(bytes)?;
            add(&members, &mut files);
            bytes = &bytes[length..];
        }
    }
}

/// The configuration among the archives in `bytes`; none when the area is empty. Of several the last counts, as
/// for the kernel.
///
/// Errors: as [`read`].
pub fn config(bytes: &[u8]) -> Result<Option<Vec<u8>>, Error> {
    let files = read(bytes)?;
    let config = files.into_iter().rfind(|file| file.name == MEMBER);
    Ok(config.map(|file| file.data))
}

fn unpack(bytes: &[u8], budget: u64) -> Result<(Vec<u8>, &[u8]), Error> {
    let mut unpacked = Vec::new();
    let mut rest = bytes;
    GzDecoder::new(&mut rest)
        .take(budget + 1)
        .read_to_end(&mut unpacked)
        .map_err(|error| Error::Archive(format!("cannot be decompressed: {error}")))?;
    if unpacked.len() as u64 > budget {
        let reason = format!("unpacks to more than {MAX_UNPACKED} bytes");
        return Err(Error::Archive(reason));
    }
    Ok((unpacked, rest))
}

/// Within one compressed stream several archives may follow each other too.
fn read_plain(mut bytes: &[u8], files: &mut Vec<ArchiveFile>) -> Result<(), Error> {
    while let Some(start) = bytes.iter().position(|byte| *byte != 0) {
        bytes = &bytes[start..];
        let (members, length) = cpio::read(bytes)?;
        add(&members, files);
        bytes = &bytes[length..];
    }
    Ok(())
}

fn add(members: &[CpioMember<'_>], files: &mut Vec<ArchiveFile>) {
    files.extend(members.iter().map(|member| ArchiveFile {
        name: member.name.to_owned(),
        mode: member.mode,
        data: member.data.to_vec(),
    }));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_archive_has_one_padded_member() {
        let packed = write(b"{}").unwrap();
        assert_eq!(packed.len() % 4, 0);
        let files = read(&packed).unwrap();
        let expected = ArchiveFile {
            name: "config.ign".to_owned(),
            mode: 0o100_644,
            data: b"{}".to_vec(),
        };
        assert_eq!(files, [expected]);
        assert_eq!(
            write(b"{}").unwrap(),
            packed,
            "the same input packs the same"
        );
    }

    #[test]
    fn archives_may_follow_each_other() {
        let plain = cpio::write(&[CpioMember {
            name: "etc/x",
            mode: cpio::REGULAR,
            data: b"plain",
        }])
        .unwrap();
        let mut bytes = write(b"first").unwrap();
        bytes.extend([0; 512]);
        bytes.extend(&plain);
        bytes.extend(write(b"second").unwrap());
        bytes.extend([0; 100]);
        let files = read(&bytes).unwrap();
        let names: Vec<_> = files.iter().map(|file| file.name.as_str()).collect();
        assert_eq!(names, ["config.ign", "etc/x", "config.ign"]);
        assert_eq!(config(&bytes).unwrap().unwrap(), b"second");
    }

    #[test]
    fn an_empty_area_has_no_configuration() {
        assert_eq!(config(&[0; 4096]).unwrap(), None);
        assert_eq!(config(&[]).unwrap(), None);
    }

    #[test]
    fn malformed_archives_are_refused() {
        assert!(read(b"rubbish").is_err());
        let mut packed = write(b"{}").unwrap();
        packed.truncate(30);
        assert!(read(&packed).is_err());
    }

    proptest! {
        #[test]
        fn packing_round_trips(data in proptest::collection::vec(any::<u8>(), 0..2000)) {
            prop_assert_eq!(config(&write(&data).unwrap()).unwrap(), Some(data));
        }

        #[test]
        fn reading_never_panics(data in proptest::collection::vec(any::<u8>(), 0..300)) {
            read(&data).ok();
        }
    }
}
