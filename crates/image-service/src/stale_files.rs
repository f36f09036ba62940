//! Removal of images that are no longer on offer: a volume would grow with every version.

use std::collections::HashSet;
use std::path::Path;

use crate::catalog::ImageCatalog;

/// Starts and ends of the names of files that this service or its predecessor writes.
const PATTERNS: [(&str, &str); 4] = [
    ("rhcos-full-iso-", ".iso"),
    ("rhcos-full-iso-", ".iso.part"),
    ("rhcos-minimal-iso-", ".iso"),
    ("nmstatectl-", ""),
];

/// Removes files of our own name patterns that belong to no image of the catalog. Readers of other replicas keep theirs
/// open.
pub(crate) async fn remove(folder: &Path, catalog: &ImageCatalog) {
    let bases = catalog.bases();
    if bases.is_empty() {
        // More likely a mistake than a wish to remove everything.
        return;
    }
    let expected: HashSet<String> = bases
        .iter()
        .flat_map(|base| {
            let image = base.file_name();
            let source = base
                .file()
                .and_then(|path| Some(path.file_name()?.to_str()?.to_owned()));
            [format!("{image}.part"), image, base.nmstatectl_name()]
                .into_iter()
                // An image that a file:// URL names may be in the folder.
                .chain(source)
        })
        .collect();
    let Ok(mut entries) = tokio::fs::read_dir(folder).await else {
        return;
    };
    while let Ok(Some(entry)) = entries.next_entry().await {
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        let is_own = |(start, end): &(&str, &str)| name.starts_with(start) && name.ends_with(end);
        let is_file = entry.file_type().await.is_ok_and(|kind| kind.is_file());
        if !is_file || expected.contains(&name) || !PATTERNS.iter().any(is_own) {
            continue;
        }
        let length = entry.metadata().await.map_or(0, |metadata| metadata.len());
        match tokio::fs::remove_file(entry.path()).await {
            Ok(()) => tracing::info!(
                name,
                length,
                "file of an image that is not on offer removed"
            ),
            Err(error) => {
                tracing::warn!(name, %error, "file of an image that is not on offer cannot be removed");
            }
        }
    }
}
