//! Extraction of a folder of an image.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use model::Error;

use super::{FileSelection, FileTree, ResolvedImage};

/// Limits of an extracted folder.
#[derive(Debug, Clone, Copy)]
pub struct FolderLimits {
    /// Number of files.
    pub files: usize,
    /// Total size. Units: bytes.
    pub bytes: u64,
}

impl ResolvedImage {
    /// Extracts `folder` (a path inside the image) to the folder `dest`, by way of `scratch`; both are empty, and on
    /// one file system. Returns the number of files.
    ///
    /// Errors: as [`ResolvedImage::fetch_tree`]; Invalid – a dangling link, or a name that the file system refuses.
    pub async fn fetch_folder(
        &self,
        folder: &str,
        limits: FolderLimits,
        scratch: &Path,
        dest: &Path,
    ) -> Result<usize, Error> {
        let folder = folder.trim_matches('/').to_owned();
        let prefix = match folder.as_str() {
            "" => String::new(),
            folder => format!("{folder}/"),
        };
        let selection = FileSelection {
            is_wanted: Arc::new(move |path| path.starts_with(&prefix)),
            limit_files: limits.files,
            limit_bytes: limits.bytes,
        };
        let tree = self.fetch_tree(&selection, scratch).await?;
        let (id, dest) = (self.location.to_string(), dest.to_owned());
        let work = move || lay_out(&id, &tree, &folder, &dest);
        tokio::task::spawn_blocking(work)
            .await
            .unwrap_or_else(|error| Err(Error::internal("laying out a folder", error)))
    }
}

/// Links the files below `folder` to their names below `dest`. The names are relative and without `..`, and only plain
/// files and folders are created, so that no name leaves `dest`.
fn lay_out(image: &str, tree: &FileTree, folder: &str, dest: &Path) -> Result<usize, Error> {
    let wrong = |path: &str, what: &str| {
        Error::invalid("image", format!("{image}: /{folder}/{path} {what}"))
    };
    let mut count = 0;
    for (path, file) in tree.below(folder) {
        let file = file.ok_or_else(|| wrong(path, "is a link that leads to no file there"))?;
        let target = dest.join(path);
        let named = target
            .parent()
            .map_or(Ok(()), fs::create_dir_all)
            // A hard link, since several names may lead to one file.
            .and_then(|()| fs::hard_link(file, &target));
        named.map_err(|error| match error.kind() {
            ErrorKind::NotADirectory | ErrorKind::AlreadyExists => {
                wrong(path, "lies below what is no folder")
            }
            ErrorKind::InvalidFilename => wrong(path, "has a name that is too long"),
            _ => Error::internal(format!("writing {}", target.display()), error),
        })?;
        count += 1;
    }
    Ok(count)
}
