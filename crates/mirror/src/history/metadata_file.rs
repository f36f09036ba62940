//! A file with metadata, which is replaced as a whole.

use std::fs::{File, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use durable::{create_folder, sync_folder};
use model::Error;
use model::mirror_metadata::MirrorMetadata;

use crate::archive::{METADATA_LIMIT_BYTES, metadata_of};

/// The peer's mode of the file.
pub(super) const FILE_MODE: u32 = 0o640;

pub(super) fn read_file(path: &Path) -> Result<Option<MirrorMetadata>, Error> {
    let failed = |e| Error::internal(format!("reading {}", path.display()), e);
    let file = match File::open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(failed(e)),
    };
    let mut bytes = Vec::new();
    let mut limited = file.take(METADATA_LIMIT_BYTES + 1);
    limited.read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > METADATA_LIMIT_BYTES {
        return Err(Error::TooLarge {
            what: "metadata",
            limit: METADATA_LIMIT_BYTES,
        });
    }
    let wrong = |e: Error| Error::invalid(path.display().to_string(), e.to_string());
    metadata_of(&bytes).map(Some).map_err(wrong)
}

pub(super) fn write_file(path: &Path, metadata: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    create_folder(folder)?;
    let mut part = tempfile::Builder::new()
        .prefix(".metadata-")
        .permissions(Permissions::from_mode(FILE_MODE))
        .tempfile_in(folder)?;
    part.write_all(metadata)?;
    // Atomic replace: a crash leaves the old metadata or the new, which is durable before it has the name.
    part.as_file().sync_all()?;
    part.persist(path)?;
    sync_folder(folder)
}
