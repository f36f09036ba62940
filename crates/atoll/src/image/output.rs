//! Images as files: written beside the destination, and renamed when they are whole.

use std::fs::{self, File, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use clap::Args;
use image_service::content::ContentPieces;
use service::Error;

/// Mode of images with a login and keys of networks.
const OWNER_ONLY: u32 = 0o600;

/// Destination of an image.
#[derive(Debug, Clone, Args)]
pub(crate) struct OutputArgs {
    /// Output file
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
    /// Replace the output file
    #[arg(long, short)]
    force: bool,
}

impl OutputArgs {
    /// Writes the image.
    ///
    /// Errors: the file exists, or cannot be written.
    pub(super) fn write(&self, content: &ContentPieces) -> Result<(), Error> {
        write(&self.output, self.force, content)
    }

    /// Writes an image that no other user may read.
    ///
    /// Errors: the file exists, or cannot be written.
    pub(crate) fn write_private(&self, content: &ContentPieces) -> Result<(), Error> {
        write_with_mode(&self.output, self.force, content, Some(OWNER_ONLY))
    }

    /// The output file.
    pub(crate) fn path(&self) -> &Path {
        &self.output
    }
}

/// Writes `content` to `path`. The image that it is made of may be that file.
///
/// Errors: the file exists and is not to be replaced; it cannot be written.
pub(super) fn write(path: &Path, force: bool, content: &ContentPieces) -> Result<(), Error> {
    write_with_mode(path, force, content, None)
}

/// Without a mode, it is that of the umask.
fn write_with_mode(
    path: &Path,
    force: bool,
    content: &ContentPieces,
    mode: Option<u32>,
) -> Result<(), Error> {
    let failed = |error: io::Error| Error::new(format!("writing {}", path.display()), error);
    if path.exists() && !force {
        return Err(failed(io::Error::other(
            "it exists; use --force to replace it",
        )));
    }
    let mut partial = path.as_os_str().to_owned();
    partial.push(".part");
    let written = write_partial(Path::new(&partial), content, mode)
        .and_then(|()| fs::rename(&partial, path))
        .and_then(|()| durable::sync_parent(path));
    written.map_err(|error| {
        fs::remove_file(&partial).ok();
        failed(error)
    })
}

fn write_partial(path: &Path, content: &ContentPieces, mode: Option<u32>) -> io::Result<()> {
    let mut file = File::create(path)?;
    // Before the first byte.
    if let Some(mode) = mode {
        file.set_permissions(Permissions::from_mode(mode))?;
    }
    content.for_each_chunk(|chunk| file.write_all(chunk))?;
    file.sync_all()
}
