//! Tests that cannot run on this machine: recorded, so that they do not count as passed.

use std::ffi::OsString;
use std::fs::File;
use std::io::Write as _;

/// Names the file that [`skipped`] appends to; `cargo xtask test` sets it, and counts.
const FILE: &str = "ATOLL_TEST_SKIPS";

/// Records that the calling test, or a part of it, cannot run here, since `why`; the test returns afterwards.
///
/// Libtest knows no skipping at run time: it takes such a test for passed, and `cargo xtask test` corrects its count by
/// these records.
///
/// Panics: the record cannot be written.
pub fn skipped(why: &str) {
    let variable = |name| std::env::var_os(name).unwrap_or_default();
    let test = std::thread::current();
    // Libtest gives the thread of a test its name.
    let test = test.name().unwrap_or("unknown");
    let line = line(&variable("CARGO_PKG_NAME"), test, why);
    let path = variable(FILE);
    let written = if path.is_empty() {
        // Unlike the print macros, this passes the harness, which hides the output of tests that pass.
        std::io::stderr().write_all(format!("SKIPPED: {line}").as_bytes())
    } else {
        // One write to a file that is open for appending: lines of several processes do not mix.
        let file = File::options().append(true).create(true).open(&path);
        file.and_then(|mut file| file.write_all(line.as_bytes()))
    };
    if let Err(error) = written {
        panic!(
            "the skipped test {test} cannot be recorded in {}: {error}",
            path.display()
        );
    }
}

/// Package, test and reason, between tabs.
fn line(package: &OsString, test: &str, why: &str) -> String {
    let why = why.replace(['\t', '\n'], " ");
    format!("{}\t{test}\t{why}\n", package.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_one_line_of_three_fields() {
        let line = line(
            &"webui".into(),
            "browser::shows",
            "no browser:\n\tnot found",
        );
        assert_eq!(line, "webui\tbrowser::shows\tno browser:  not found\n");
    }
}
