//! Sets that are planned, written, read again and damaged.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use model::mirror_metadata::{Association, ImageType, MirrorMetadata};
use oci::{Digest, Manifest, Registry};
use serde_json::json;
use uuid::Uuid;

use super::{ArchiveFormat, ArchiveWriter, Contents, Extra, SetPlan, Signer, Verifier};
use crate::content::{
    ImageContent, ResolvedImage, SelectedImage, SourceBlob, SourceRepository, Why,
};
use crate::progress::RunProgress;

mod fuzz;
mod kill;
mod plan;
mod set;
mod verify;
mod writer;

/// Room for everything.
const WIDE: u64 = 1 << 40;
/// Size of one chunk. Units: bytes.
const PIECE: usize = 64 << 10;
/// Period of the generated content.
const PERIOD: usize = 1021;

/// Images, and the blobs of their registry.
#[derive(Debug, Clone)]
struct Sample {
    content: ImageContent,
    blobs: BTreeMap<Digest, Bytes>,
    metadata: MirrorMetadata,
    extras: Vec<Extra>,
}

impl Sample {
    fn new() -> Self {
        let mut metadata = MirrorMetadata::new(Uuid::from_u128(7), false);
        metadata.past_mirror.timestamp = 1_795_241_937;
        metadata.past_mirror.sequence = 1;
        Self {
            content: ImageContent::default(),
            blobs: BTreeMap::new(),
            metadata,
            extras: vec![Extra::inline("catalogs/r/c/index/index.json", "{}")],
        }
    }

    /// `count` images with a layer of their own and a layer that all have, of that many bytes.
    fn of(count: usize, bytes: usize) -> Self {
        let mut sample = Self::new();
        let all = noise("all", bytes);
        for number in 0..count {
            let own = noise(&number.to_string(), bytes);
            sample.image(&format!("acme/op{number}"), &[&all, &own]);
        }
        sample
    }

    fn blob(&mut self, bytes: &Bytes) -> serde_json::Value {
        let digest = Digest::sha256(bytes);
        let size = bytes.len() as u64;
        let blob = SourceBlob {
            size,
            sources: BTreeSet::from([origin()]),
            file: None,
        };
        self.content.blobs.insert(digest.clone(), blob);
        self.blobs.insert(digest.clone(), bytes.clone());
        json!({"mediaType": "application/vnd.oci.image.layer.v1.tar+gzip", "digest": digest, "size": size})
    }

    fn manifest(&mut self, name: &str, layers: &[&Bytes]) -> Manifest {
        let config = self.blob(&Bytes::from(format!("config of {name}")));
        let layers: Vec<_> = layers.iter().map(|layer| self.blob(layer)).collect();
        let body = json!({"schemaVersion": 2, "config": config, "layers": layers});
        self.keep(&body)
    }

    fn keep(&mut self, body: &serde_json::Value) -> Manifest {
        let manifest = Manifest::parse(body.to_string().into(), None).unwrap();
        self.content
            .manifests
            .insert(manifest.digest.clone(), manifest.clone());
        manifest
    }

    fn image(&mut self, repository: &str, layers: &[&Bytes]) {
        let manifest = self.manifest(repository, layers);
        self.wanted(repository, &manifest.digest);
        self.associate(repository, &manifest, true);
    }

    /// An index of two images.
    fn list(&mut self, repository: &str) {
        let parts = ["amd64", "arm64"].map(|arch| self.manifest(arch, &[&noise(arch, 10)]));
        let body =
            json!({"schemaVersion": 2, "manifests": parts.clone().map(|part| part.descriptor())});
        let list = self.keep(&body);
        self.wanted(repository, &list.digest);
        self.associate(repository, &list, true);
        for part in &parts {
            self.associate(repository, part, false);
        }
    }

    fn wanted(&mut self, repository: &str, digest: &Digest) {
        let wanted = SelectedImage {
            source: format!("r:5000/{repository}@{digest}").parse().unwrap(),
            repository: repository.parse().unwrap(),
            tag: "v1".parse().unwrap(),
            kind: ImageType::OperatorBundle,
            why: vec![Why::Additional],
            platforms: Vec::new(),
            may_be_missing: false,
        };
        self.content.images.push(ResolvedImage {
            wanted,
            digest: digest.clone(),
        });
    }

    fn associate(&mut self, repository: &str, manifest: &Manifest, is_top: bool) {
        let digest = &manifest.digest;
        let mut layers: Vec<_> = manifest
            .blobs()
            .map(|blob| blob.digest.to_string())
            .collect();
        let config = usize::from(!layers.is_empty());
        layers.rotate_left(config);
        let association = Association {
            name: if is_top {
                format!("r:5000/{repository}@{digest}")
            } else {
                digest.to_string()
            },
            path: repository.to_owned(),
            id: digest.to_string(),
            tag_symlink: if is_top {
                "v1".to_owned()
            } else {
                String::new()
            },
            kind: ImageType::OperatorBundle,
            manifest_digests: manifest
                .required_manifests()
                .map(Digest::to_string)
                .collect(),
            layer_digests: layers,
        };
        self.metadata.past_mirror.associations.push(association);
    }

    fn plan(&self, limit: u64) -> Result<SetPlan, model::Error> {
        self.signed(limit, None)
    }

    fn signed(&self, limit: u64, signer: Option<&Signer>) -> Result<SetPlan, model::Error> {
        let contents = Contents {
            format: ArchiveFormat::V1,
            metadata: serde_json::to_vec(&self.metadata).unwrap().into(),
            extras: self.extras.clone(),
            content: &self.content,
            local: &BTreeMap::new(),
            carried: &BTreeSet::new(),
        };
        SetPlan::new(contents, limit, signer)
    }

    /// Fetches a blob that is missing.
    fn fetch(&self, writer: &ArchiveWriter, digest: &Digest) {
        let mut blob = writer.blob(digest).unwrap().unwrap();
        let written = usize::try_from(blob.written()).unwrap();
        for piece in self.blobs[digest][written..].chunks(PIECE) {
            blob.write(piece).unwrap();
        }
        blob.finish().unwrap();
    }

    fn fetch_all(&self, writer: &ArchiveWriter) {
        for missing in writer.missing() {
            self.fetch(writer, &missing.digest);
        }
    }

    /// Everything, as files in `folder`.
    fn write(&self, folder: &Path, limit: u64) -> Vec<PathBuf> {
        let writer = ArchiveWriter::open(folder, self.plan(limit).unwrap()).unwrap();
        self.fetch_all(&writer);
        writer.finish().unwrap()
    }
}

/// The same bytes for the same name.
fn noise(name: &str, length: usize) -> Bytes {
    let seed = name.bytes().fold(0x9e37_79b9, |seed: u32, byte| {
        (seed ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    let step = |state: &u32| Some(state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223));
    let states = std::iter::successors(Some(seed), step);
    let period: Vec<_> = states.take(PERIOD).flat_map(u32::to_be_bytes).collect();
    let mut bytes = period.repeat(length / period.len() + 1);
    bytes.truncate(length);
    bytes.into()
}

fn origin() -> SourceRepository {
    SourceRepository {
        registry: Registry::Host("r:5000".to_owned()),
        repository: "acme/op0".parse().unwrap(),
    }
}

/// Names of a folder's entries.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries
        .map(|it| it.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn key() -> (Signer, Verifier) {
    let pkcs8 =
        ring::signature::Ed25519KeyPair::generate_pkcs8(&ring::rand::SystemRandom::new()).unwrap();
    let pem = format!(
        "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n",
        base64::Engine::encode(&base64::engine::general_purpose::STANDARD, pkcs8)
    );
    let signer = Signer::from_pem(pem.as_bytes()).unwrap();
    let verifier = signer.verifier();
    (signer, verifier)
}

/// The same members without ours, as another tool packs them.
fn repack(
    from: &[PathBuf],
    to: &Path,
    change: impl Fn(&str, &mut tar::Header, Vec<u8>) -> Option<(String, Vec<u8>)>,
) {
    fs::create_dir_all(to).unwrap();
    for path in from {
        let mut archive = tar::Archive::new(File::open(path).unwrap());
        let mut builder =
            tar::Builder::new(File::create(to.join(path.file_name().unwrap())).unwrap());
        for entry in archive.entries().unwrap() {
            let mut entry = entry.unwrap();
            let path = entry.path().unwrap().display().to_string();
            let mut header = tar::Header::new_gnu();
            header.set_entry_type(entry.header().entry_type());
            header.set_mode(0o644);
            if let Some(target) = entry.link_name().unwrap() {
                header.set_link_name(target).unwrap();
            }
            let mut bytes = Vec::new();
            std::io::Read::read_to_end(&mut entry, &mut bytes).unwrap();
            if path.starts_with("atoll/") {
                continue;
            }
            if let Some((path, bytes)) = change(&path, &mut header, bytes) {
                header.set_size(bytes.len() as u64);
                builder
                    .append_data(&mut header, path, bytes.as_slice())
                    .unwrap();
            }
        }
        builder.finish().unwrap();
    }
}
