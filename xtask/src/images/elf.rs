//! The part of ELF that shows whether a program is static.

use anyhow::{Context as _, Result, ensure};

const MAGIC: &[u8] = b"\x7fELF\x02\x01";
/// `PT_INTERP`: the program header that names the dynamic loader.
const INTERPRETER: u32 = 3;

/// Whether a 64-bit little-endian program needs no loader.
///
/// Errors: not such a program.
pub(super) fn is_static(program: &[u8]) -> Result<bool> {
    ensure!(
        program.starts_with(MAGIC),
        "not a 64-bit little-endian ELF program"
    );
    is_without_interpreter(program).context("the ELF header points out of the file")
}

fn is_without_interpreter(program: &[u8]) -> Option<bool> {
    let table = usize::try_from(number(program, 32, 8)?).ok()?;
    let size = usize::try_from(number(program, 54, 2)?).ok()?;
    let count = usize::try_from(number(program, 56, 2)?).ok()?;
    for index in 0..count {
        let entry = table.checked_add(size.checked_mul(index)?)?;
        if number(program, entry, 4)? == u64::from(INTERPRETER) {
            return Some(false);
        }
    }
    Some(true)
}

/// The little-endian number of `size` bytes at `offset`.
fn number(bytes: &[u8], offset: usize, size: usize) -> Option<u64> {
    let bytes = bytes.get(offset..offset.checked_add(size)?)?;
    Some(
        bytes
            .iter()
            .rev()
            .fold(0, |value, byte| value << 8 | u64::from(*byte)),
    )
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The smallest program with program headers of these types.
    pub(crate) fn program(types: &[u32]) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
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
        for bytes in [&b""[..], b"#!/bin/sh\n", &program(&[1])[..66], MAGIC] {
            assert!(is_static(bytes).is_err(), "{bytes:?}");
        }
    }
}
