//! Libraries that dynamic programs need.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::command::output;

/// Every library that one of the files needs, the loader among them.
pub(super) fn libraries(files: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut command = Command::new("ldd");
    command
        .args(files)
        .env_remove("LD_LIBRARY_PATH")
        .env_remove("LD_PRELOAD");
    let text = String::from_utf8(output(&mut command)?).context("ldd prints no text")?;
    if let Some(line) = text.lines().find(|line| line.contains("not found")) {
        bail!("ldd: {}: is the server's package whole?", line.trim());
    }
    let mut found: Vec<_> = text.lines().filter_map(library).collect();
    found.sort();
    found.dedup();
    Ok(found)
}

/// The path in `name => /path (address)` or `/path (address)`.
fn library(line: &str) -> Option<PathBuf> {
    let path = line
        .split_whitespace()
        .find(|word| word.starts_with('/') && !word.ends_with(':'))?;
    Some(PathBuf::from(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_found_in_what_ldd_prints() {
        let lines = [
            ("\tlinux-vdso.so.1 (0x00007f00d9061000)", None),
            (
                "\tlibz.so.1 => /lib/x/libz.so.1 (0x00007f00d8ee7000)",
                Some("/lib/x/libz.so.1"),
            ),
            (
                "\t/lib64/ld-linux-x86-64.so.2 (0x00007f00d9063000)",
                Some("/lib64/ld-linux-x86-64.so.2"),
            ),
            ("/usr/lib/postgresql/15/bin/postgres:", None),
        ];
        for (line, expected) in lines {
            assert_eq!(library(line), expected.map(PathBuf::from), "{line}");
        }
    }
}
