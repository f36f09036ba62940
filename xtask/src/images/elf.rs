//! The part of ELF that shows whether a program is static.

use anyhow::{Context as _, Result};
use object::LittleEndian;
use object::elf::{FileHeader64, PT_INTERP};
use object::read::elf::FileHeader as _;

/// Whether a 64-bit little-endian program needs no loader.
///
/// Errors: not such a program.
pub(super) fn is_static(program: &[u8]) -> Result<bool> {
    let header = FileHeader64::<LittleEndian>::parse(program)
        .context("not a 64-bit little-endian ELF program")?;
    let endian = header.endian()?;
    let segments = header.program_headers(endian, program)?;
    Ok(segments
        .iter()
        .all(|segment| segment.p_type.get(endian) != PT_INTERP))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The smallest program with program headers of these types.
    pub(crate) fn program(types: &[u32]) -> Vec<u8> {
        let mut bytes = b"\x7fELF\x02\x01\x01".to_vec();
        bytes.resize(64, 0);
        bytes[32] = 64;
        bytes[54] = 56;
        bytes[56] = u8::try_from(types.len()).unwrap();
        for kind in types {
            bytes.extend(kind.to_le_bytes());
            bytes.resize(bytes.len() + 52, 0);
        }
        bytes
    }

    #[test]
    fn a_dynamic_loader_is_found() {
        assert!(is_static(&program(&[6, 1, 2])).unwrap());
        assert!(!is_static(&program(&[6, 3, 1])).unwrap());
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        assert_eq!(
            is_static(&own).unwrap(),
            cfg!(target_feature = "crt-static")
        );
    }

    #[test]
    fn other_files_are_an_error() {
        for bytes in [
            &b""[..],
            b"#!/bin/sh\n",
            &program(&[1])[..66],
            &program(&[])[..7],
        ] {
            assert!(is_static(bytes).is_err(), "{bytes:?}");
        }
    }
}
