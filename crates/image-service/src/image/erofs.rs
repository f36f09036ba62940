//! One file out of an EROFS image, compressed or not.

use std::io;

use erofs_rs::r#async::EroFS;
use erofs_rs::backend::AsyncImage;
use futures_util::FutureExt as _;

use super::squashfs::ReadAt;

/// Most entries of a folder that are looked at for a `*`.
const MAX_ENTRIES: usize = 64;

/// The bytes of an image. The reader's other interface wants all of it in memory.
struct Source<R>(R);

impl<R: ReadAt + Send + Sync> AsyncImage for Source<R> {
    async fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> erofs_rs::Result<()> {
        Ok(self.0.read_exact_at(buffer, offset)?)
    }
}

/// The contents of the first file at `path`, whose parts may be `*` for any name; none without such a file.
///
/// Errors: `InvalidData` – the image is damaged, or the file is larger than `most` bytes.
pub(super) fn find_in_erofs(
    source: impl ReadAt + Send + Sync,
    path: &[&str],
    most: u64,
) -> io::Result<Option<Vec<u8>>> {
    // Reads block, so the future never waits.
    let found = find(Source(source), path, most).now_or_never();
    let found = found.unwrap_or_else(|| Err(io::ErrorKind::WouldBlock.into()));
    found.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

async fn find<R: ReadAt + Send + Sync>(
    source: Source<R>,
    path: &[&str],
    most: u64,
) -> io::Result<Option<Vec<u8>>> {
    let image = EroFS::new(source).await.map_err(io::Error::other)?;
    let mut candidates = vec![String::new()];
    for part in path {
        let mut longer = Vec::new();
        for folder in candidates {
            if *part == "*" {
                longer.extend(entries(&image, &folder).await?);
            } else {
                longer.push(format!("{folder}/{part}"));
            }
        }
        candidates = longer;
    }
    for candidate in candidates {
        let Some(mut file) = existing(image.open(&candidate).await)? else {
            continue;
        };
        let size = file.size();
        if size > most {
            return Err(io::Error::other("the file in it is too large"));
        }
        let mut contents = vec![0; usize::try_from(size).map_err(io::Error::other)?];
        let mut read = 0;
        while read < contents.len() {
            match file.read(&mut contents[read..]).await {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => read += count,
                Err(error) => return Err(io::Error::other(error)),
            }
        }
        return Ok(Some(contents));
    }
    Ok(None)
}

/// Paths of the entries of a folder.
async fn entries<R: ReadAt + Send + Sync>(
    image: &EroFS<Source<R>>,
    folder: &str,
) -> io::Result<Vec<String>> {
    let mut paths = Vec::new();
    let Some(mut folder) = existing(image.read_dir(folder).await)? else {
        return Ok(paths);
    };
    for _ in 0..MAX_ENTRIES {
        let Some(entry) = folder.next_entry().await else {
            break;
        };
        let entry = entry.map_err(io::Error::other)?;
        paths.extend(String::from_utf8(entry.dir_entry.path().into_vec()));
    }
    Ok(paths)
}

/// Nothing where the path leads to nothing of its kind.
fn existing<T>(opened: erofs_rs::Result<T>) -> io::Result<Option<T>> {
    use erofs_rs::Error::{NotADirectory, NotAFile, PathNotFound};
    match opened {
        Ok(opened) => Ok(Some(opened)),
        Err(PathNotFound(_) | NotADirectory(_) | NotAFile(_)) => Ok(None),
        Err(error) => Err(io::Error::other(error)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The tree of the squashfs images, of a third of the small programs, made by mkfs.erofs 1.5 (lz4) and by 1.9.3, which
    /// packs file ends together and leaves duplicates out (`-Eall-fragments,dedupe -C65536`).
    const LZ4: &[u8] = include_bytes!("../../tests/data/lz4.erofs");
    const LZMA: &[u8] = include_bytes!("../../tests/data/lzma.erofs");
    const ZSTD: &[u8] = include_bytes!("../../tests/data/zstd.erofs");

    fn deployed(name: &str) -> Vec<&str> {
        vec!["ostree", "deploy", "*", "deploy", "*", "usr", "bin", name]
    }

    #[test]
    fn files_of_each_compression_are_found() {
        for image in [LZ4, LZMA, ZSTD] {
            let find = |path: &[&str], most| find_in_erofs(image, path, most);
            let found = find(&deployed("nmstatectl"), 1 << 20).unwrap();
            assert!(found.unwrap() == super::super::squashfs::tests::program());
            let small = find(&deployed("program-117"), 100).unwrap();
            assert_eq!(small.unwrap(), b"program 117\n");
            assert!(find(&deployed("program-301"), 100).unwrap().is_none());
            assert!(find(&deployed("nmstatectl")[..7], 100).unwrap().is_none());
            assert!(find(&deployed("nmstatectl"), 1000).is_err());
        }
    }

    #[test]
    fn other_images_are_refused() {
        let refused = find_in_erofs(&[7; 4096][..], &["a"], 1).unwrap_err();
        assert!(refused.to_string().contains("super block"), "{refused}");
        assert!(find_in_erofs(&LZ4[..1000], &["a"], 1).is_err());
    }

    proptest! {
        #[test]
        fn damage_is_an_error(at in 0..LZ4.len(), value: u8, which in 0..3_usize) {
            let mut bytes = [LZ4, LZMA, ZSTD][which].to_vec();
            let at = at % bytes.len();
            bytes[at] = value;
            let _ = find_in_erofs(&bytes[..], &deployed("nmstatectl"), 1 << 20);
        }
    }
}
