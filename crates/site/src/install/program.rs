//! The program of the bundle.

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use ::bundle::BundleFile;
use ::bundle::assemble::PROGRAM;
use service::file::folder;
use service::{Error, ResultExt as _};
use sha2::{Digest as _, Sha256};

use crate::event::{SiteEvent, SiteObserver};

/// Keeps the program of the bundle in the folder, for later commands; returns its path.
///
/// Errors: it is missing, or no space.
pub(super) fn extract(bundle: &BundleFile, dir: &Path) -> Result<PathBuf, Error> {
    let doing = "extracting the program";
    let member = bundle.member(PROGRAM);
    let member = member.ok_or_else(|| Error::new(doing, "it is not in the bundle"))?;
    folder(dir, 0o755)?;
    let program = dir.join(PROGRAM);
    if sum(&program).as_ref() != Some(&member.sha256) {
        bundle
            .extract(member, &program)
            .map_err(|e| e.chain())
            .doing(doing)?;
    }
    Ok(program)
}

/// Continues with the program of the bundle, when this is another one: a version is installed by its own program.
///
/// Errors: it cannot be extracted or run.
pub(super) fn hand_over(
    bundle: &BundleFile,
    dir: &Path,
    observe: SiteObserver<'_>,
) -> Result<(), Error> {
    let program = extract(bundle, dir)?;
    let own = sum(Path::new("/proc/self/exe"));
    if own.is_some() && own == bundle.member(PROGRAM).map(|it| it.sha256.clone()) {
        return Ok(());
    }
    observe(SiteEvent::ProgramChanged);
    let mut command = Command::new(&program);
    command.args(std::env::args_os().skip(1));
    // Another version may have another default.
    let names_dir = |it: std::ffi::OsString| it.to_string_lossy().starts_with("--dir");
    if !std::env::args_os().any(names_dir) {
        command.arg("--dir").arg(dir);
    }
    let error = command.exec();
    Err(Error::new(format!("running {}", program.display()), error))
}

/// SHA-256 of a file, in hexadecimal; none if it cannot be read.
pub(super) fn sum(path: &Path) -> Option<String> {
    let mut sha256 = Sha256::new();
    std::io::copy(&mut std::fs::File::open(path).ok()?, &mut sha256).ok()?;
    Some(hex::encode(sha256.finalize()))
}
