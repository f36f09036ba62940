//! Live images in the container image `machine-os-images` of a release.
//!
//! The live image is streamed out of its layer into the file: neither is held in memory, and there is no second copy on disk.
//! Source: openshift/machine-os-images, `fetch_image.sh`.

use std::collections::{BTreeMap, BTreeSet};

use bytes::{Bytes, BytesMut};
use futures_util::stream;
use model::Error;
use oci::{Algorithm, Descriptor, Digest, Hasher, Reference};
use oci_client::Client;
use oci_client::image::{FileContent, FileVisitor, visit_files};
use serde_json::Value;
use tokio::sync::mpsc;

use super::error::DownloadError;
use super::image_file::{ImageFile, ImageTarget};
use crate::catalog::CatalogImage;

/// Names of the files of streams, in the order of preference where the stream is unknown.
const STREAMS: [&str; 2] = ["coreos", "coreos10"];
/// First generation of the operating system whose files have its number in their names.
const FIRST_NUMBERED: u32 = 10;
/// Architectures of live images, as RPM spells them.
const ARCHITECTURES: [&str; 4] = ["x86_64", "aarch64", "ppc64le", "s390x"];
/// Chunks of 64 KiB between the layer and the file.
const QUEUED_CHUNKS: usize = 16;
/// Longest checksum or stream metadata. Units: bytes. Those of a release have 100 KB.
const TEXT_LIMIT: u64 = 4 << 20;

/// Downloads the live image of a container image into its target and syncs it. Bytes that the file holds are compared, not
/// written again.
pub(super) async fn fetch(
    registries: &Client,
    reference: &Reference,
    layers: &[Descriptor],
    image: &CatalogImage,
    target: ImageTarget<'_>,
) -> Result<(), DownloadError> {
    let (files, received) = mpsc::channel(1);
    let search = LiveImageSearch::new(&image.architecture, &image.os_stream);
    let wanted = search.wanted();
    let visitor = LiveImageVisitor { search, files };
    let read = async {
        let visited = visit_files(registries, reference, layers, wanted, visitor);
        // Without the channel, whose end lets the writing end.
        visited.await.map(|visitor| visitor.search)
    };
    // Not `try_join`: after an error of the registry, the received bytes are still written.
    let (search, file) = tokio::join!(read, write(received, target));
    let file = file?;
    let search = search?;
    match (file, &search.found) {
        (Some(file), Some(found)) => {
            search.verify(found, reference)?;
            file.sync().await
        }
        _ => Err(DownloadError::Payload(search.absence(reference))),
    }
}

/// A live image on its way to the file.
struct LiveImageContent {
    size: u64,
    chunks: mpsc::Receiver<Bytes>,
}

/// Writes the live images that the search finds, mostly one: each replaces the earlier one.
async fn write(
    mut files: mpsc::Receiver<LiveImageContent>,
    target: ImageTarget<'_>,
) -> Result<Option<ImageFile<'_>>, DownloadError> {
    let mut written = None;
    while let Some(LiveImageContent { size, mut chunks }) = files.recv().await {
        let chunks = stream::poll_fn(move |cx| chunks.poll_recv(cx).map(|chunk| chunk.map(Ok)));
        let mut file = target.open(target.held(size).await, Some(size)).await?;
        file.receive_again(chunks).await?;
        written = Some(file);
    }
    Ok(written)
}

/// The search for the live image of an architecture and a stream, and for its checksum.
struct LiveImageSearch {
    /// As RPM spells it.
    architecture: String,
    /// Names of the files of its stream: [`STREAMS`], if that is unknown.
    streams: Vec<String>,
    found: Option<FoundImage>,
    /// Checksums and metadata of streams, by path.
    texts: BTreeMap<String, Bytes>,
    /// Paths of live images of other architectures and streams.
    others: BTreeSet<String>,
}

struct FoundImage {
    /// Index in [`LiveImageSearch::streams`].
    stream: usize,
    digest: Digest,
}

impl LiveImageSearch {
    fn new(architecture: &str, os_stream: &str) -> Self {
        let architecture = match architecture {
            "arm64" => "aarch64",
            "amd64" => "x86_64",
            other => other,
        };
        Self {
            architecture: architecture.to_owned(),
            streams: file_names(os_stream),
            found: None,
            texts: BTreeMap::new(),
            others: BTreeSet::new(),
        }
    }

    /// Paths of the files in question.
    fn wanted(&self) -> BTreeSet<String> {
        let own = self.streams.iter().map(String::as_str);
        let mut paths = BTreeSet::new();
        for stream in own.clone().chain(STREAMS) {
            let all = ARCHITECTURES.into_iter().chain([&*self.architecture]);
            paths.extend(all.map(|architecture| image(stream, architecture)));
        }
        paths.extend(own.flat_map(|stream| [self.checksum(stream), metadata(stream)]));
        paths
    }

    /// Path of the live image of a stream.
    fn image(&self, stream: &str) -> String {
        image(stream, &self.architecture)
    }

    fn checksum(&self, stream: &str) -> String {
        format!("{}.sha256", self.image(stream))
    }

    /// Compares the live image with its checksum, or with the metadata of its stream, if the image has either.
    fn verify(&self, found: &FoundImage, reference: &Reference) -> Result<(), DownloadError> {
        let stream = self.streams[found.stream].as_str();
        let malformed = |path: &str, reason: String| {
            DownloadError::Payload(format!(
                "/{path} of {reference} {reason}: mirror the image again"
            ))
        };
        let (checksum, metadata) = (self.checksum(stream), metadata(stream));
        let (path, expected) = if let Some(text) = self.texts.get(&checksum) {
            let text = String::from_utf8_lossy(text);
            (checksum, text.split_whitespace().next().map(str::to_owned))
        } else if let Some(text) = self.texts.get(&metadata) {
            let parsed = serde_json::from_slice(text);
            let parsed: Value =
                parsed.map_err(|e| malformed(&metadata, format!("is no JSON ({e})")))?;
            let artifacts = &parsed["architectures"][&self.architecture]["artifacts"];
            let disk = &artifacts["metal"]["formats"]["iso"]["disk"];
            let Some(text) = disk["sha256"].as_str() else {
                return Ok(());
            };
            (metadata, Some(text.to_owned()))
        } else {
            return Ok(());
        };
        let expected = expected.unwrap_or_default().to_ascii_lowercase();
        let expected: Digest = format!("sha256:{expected}")
            .parse()
            .map_err(|_| malformed(&path, "has no SHA-256 of the live image".to_owned()))?;
        if found.digest == expected {
            return Ok(());
        }
        Err(DownloadError::Checksum {
            image: format!("/{} of {reference}", self.image(stream)),
            found: found.digest.hex().to_owned(),
            expected: expected.hex().to_owned(),
            listed_in: format!("/{path}"),
        })
    }

    /// The message for an image without a live image of the architecture and the stream.
    fn absence(&self, reference: &Reference) -> String {
        let path = format!("/{}", self.image(&self.streams[0]));
        let architecture = &self.architecture;
        if self.others.is_empty() {
            return format!(
                "{reference} has no {path}, and is no artifact with one live image: expected the container image \
                 machine-os-images of a release, or an artifact with one layer, or with one whose title ends with .iso"
            );
        }
        let others: Vec<_> = self.others.iter().map(|path| format!("/{path}")).collect();
        let others = others.join(", ");
        format!(
            "{reference} has no {path}, but {others}: set the url to the machine-os-images of a release with that file for \
             {architecture}, or cpu_architecture and os_stream to those of a file that it has"
        )
    }
}

/// The search, and the way of the live image to its file.
struct LiveImageVisitor {
    search: LiveImageSearch,
    files: mpsc::Sender<LiveImageContent>,
}

impl LiveImageVisitor {
    /// Passes a live image on to its file, and returns its digest.
    fn pass(&self, content: &mut FileContent<'_>) -> Result<Digest, Error> {
        let (chunks, received) = mpsc::channel(QUEUED_CHUNKS);
        let image = LiveImageContent {
            size: content.size(),
            chunks: received,
        };
        self.files.blocking_send(image).map_err(unwritten)?;
        let mut hasher = Hasher::new(Algorithm::Sha256);
        while let Some(chunk) = content.next_chunk()? {
            hasher.update(&chunk);
            chunks.blocking_send(chunk).map_err(unwritten)?;
        }
        Ok(hasher.finish())
    }
}

impl FileVisitor for LiveImageVisitor {
    fn file(&mut self, path: &str, content: &mut FileContent<'_>) -> Result<(), Error> {
        let search = &self.search;
        let is_text = |stream: &String| search.checksum(stream) == path || metadata(stream) == path;
        let is_image = |stream: &String| search.image(stream) == path;
        if search.streams.iter().any(is_text) {
            let text = text(path, content)?;
            self.search.texts.insert(path.to_owned(), text);
        } else if let Some(stream) = search.streams.iter().position(is_image) {
            let found = search.found.as_ref();
            if found.is_none_or(|found| stream <= found.stream) {
                let digest = self.pass(content)?;
                self.search.found = Some(FoundImage { stream, digest });
            }
        } else {
            self.search.others.insert(path.to_owned());
        }
        Ok(())
    }

    fn is_complete(&self) -> bool {
        let search = &self.search;
        let is_found = search.found.as_ref().is_some_and(|found| found.stream == 0);
        is_found
            && search
                .texts
                .contains_key(&search.checksum(&search.streams[0]))
    }
}

/// Names of the files of a stream, by the generation in its name: those of `rhel-9` have no number, those of `rhel-10` and
/// `rhel-10-nvidia` have 10.
fn file_names(os_stream: &str) -> Vec<String> {
    let mut numbers = os_stream.split(|c: char| !c.is_ascii_digit());
    let number = numbers.find_map(|text| text.parse::<u32>().ok());
    match number {
        None => STREAMS.map(str::to_owned).into(),
        Some(number) if number < FIRST_NUMBERED => vec![STREAMS[0].to_owned()],
        Some(number) => vec![format!("{}{number}", STREAMS[0])],
    }
}

/// Path of a live image.
fn image(stream: &str, architecture: &str) -> String {
    format!("coreos/{stream}-{architecture}.iso")
}

/// Path of the metadata of a stream.
fn metadata(stream: &str) -> String {
    format!("coreos/{stream}-stream.json")
}

fn text(path: &str, content: &mut FileContent<'_>) -> Result<Bytes, Error> {
    if content.size() > TEXT_LIMIT {
        let reason = format!(
            "/{path} has {} bytes, more than {TEXT_LIMIT}",
            content.size()
        );
        return Err(Error::invalid("layer", reason));
    }
    let mut text = BytesMut::new();
    while let Some(chunk) = content.next_chunk()? {
        text.extend_from_slice(&chunk);
    }
    Ok(text.freeze())
}

/// The error after one of the file, which the caller reports.
fn unwritten<T>(_: mpsc::error::SendError<T>) -> Error {
    Error::conflict("the file of the live image cannot be written")
}

#[cfg(test)]
#[path = "machine_os_tests.rs"]
mod tests;
