//! Small catalogs, and a registry with fault injection.

use std::collections::HashMap;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use oci::Digest;
use serde_json::json;
use tar::EntryType;
use tokio::net::TcpListener;

const LABEL: &str = "operators.operatorframework.io.index.configs.v1";

/// A catalog of one package with one channel, whose head has `version`.
pub(crate) fn package(name: &str, version: &str) -> String {
    let bundle = format!("{name}.v{version}");
    [
        json!({ "schema": "olm.package", "name": name, "defaultChannel": "stable" }),
        json!({ "schema": "olm.channel", "package": name, "name": "stable", "entries": [{ "name": bundle }] }),
        json!({ "schema": "olm.bundle", "package": name, "name": bundle, "image": "quay.io/x/y:1",
            "relatedImages": [{ "name": "needed", "image": "quay.io/x/needed:1" }],
            "properties": [{ "type": "olm.package", "value": { "packageName": name, "version": version } }] }),
    ]
    .map(|document| format!("{document}\n"))
    .concat()
}

/// As [`package`], with `documents` more of about 1 KiB each.
pub(crate) fn large(name: &str, version: &str, documents: usize) -> String {
    let filling = "x".repeat(1000);
    let document = |number: usize| {
        let number = number.to_string();
        json!({ "schema": "filling", "package": name, "name": number, "text": filling }).to_string()
    };
    let documents: Vec<_> = (0..documents).map(document).collect();
    package(name, version) + &documents.join("\n")
}

/// Replaces the file atomically.
pub(crate) fn write(folder: &Path, text: &str) {
    fs::create_dir_all(folder).unwrap();
    let part = folder.with_extension("part");
    fs::write(&part, text).unwrap();
    fs::rename(part, folder.join("catalog.json")).unwrap();
}

/// Entries of a layer: kind, path, link, content.
pub(crate) type Entry<'a> = (EntryType, &'a str, &'a str, &'a [u8]);

/// A layer with unchecked paths and links, as an attacker writes them.
pub(crate) fn layer(entries: &[Entry<'_>]) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    for (kind, path, link, content) in entries {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(*kind);
        header.set_mode(0o644);
        header.set_size(content.len() as u64);
        header.as_mut_bytes()[..path.len()].copy_from_slice(path.as_bytes());
        header.as_mut_bytes()[157..157 + link.len()].copy_from_slice(link.as_bytes());
        header.set_cksum();
        archive.append(&header, *content).unwrap();
    }
    archive.into_inner().unwrap()
}

/// The layer of a catalog that is one file.
pub(crate) fn configs(text: &str) -> Vec<u8> {
    let file = "configs/catalog.json";
    layer(&[(EntryType::Regular, file, "", text.as_bytes())])
}

/// Injected fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    /// Every response has this status.
    Status(StatusCode),
    /// Truncates this many blobs.
    Truncate(u32),
    /// Corrupts blobs.
    Corrupt,
    /// Requires this `Authorization`.
    RequireLogin(&'static str),
}

/// A registry with one image under one tag.
#[derive(Clone)]
pub(crate) struct Registry {
    pub(crate) address: SocketAddr,
    inner: Arc<Mutex<Inner>>,
}

struct Inner {
    fault: Fault,
    manifest: Vec<u8>,
    blobs: HashMap<String, Vec<u8>>,
}

impl Registry {
    /// Listens until the runtime ends.
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let inner = Inner {
            fault: Fault::None,
            manifest: Vec::new(),
            blobs: HashMap::new(),
        };
        let registry = Self {
            address: listener.local_addr().unwrap(),
            inner: Arc::new(Mutex::new(inner)),
        };
        let router = Router::new().fallback(answer).with_state(registry.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        registry
    }

    /// The image, for settings.
    pub(crate) fn image(&self) -> String {
        format!("{}/test/catalog:v1", self.address)
    }

    pub(crate) fn inject(&self, fault: Fault) {
        self.inner.lock().unwrap().fault = fault;
    }

    /// Puts an image of `layers` under the tag.
    pub(crate) fn push(&self, layers: &[Vec<u8>]) {
        let config = json!({ "config": { "Labels": { LABEL: "/configs" } } });
        let mut inner = self.inner.lock().unwrap();
        let mut blob = |bytes: Vec<u8>, kind: &str| {
            let digest = Digest::sha256(&bytes).to_string();
            let size = bytes.len();
            inner.blobs.insert(digest.clone(), bytes);
            json!({ "mediaType": kind, "digest": digest, "size": size })
        };
        let config = blob(
            config.to_string().into_bytes(),
            "application/vnd.oci.image.config.v1+json",
        );
        let tar = "application/vnd.oci.image.layer.v1.tar";
        let layers: Vec<_> = layers
            .iter()
            .map(|layer| blob(layer.clone(), tar))
            .collect();
        let kind = "application/vnd.oci.image.manifest.v1+json";
        let manifest =
            json!({ "schemaVersion": 2, "mediaType": kind, "config": config, "layers": layers });
        inner.manifest = manifest.to_string().into_bytes();
    }
}

async fn answer(State(registry): State<Registry>, request: Request) -> Response {
    let path = request.uri().path().to_owned();
    let mut inner = registry.inner.lock().unwrap();
    let login = request.headers().get(header::AUTHORIZATION);
    let refused = match inner.fault {
        Fault::Status(status) => Some(status),
        Fault::RequireLogin(wanted) if login.is_none_or(|login| login != wanted) => {
            Some(StatusCode::UNAUTHORIZED)
        }
        _ => None,
    };
    if let Some(status) = refused {
        let demand = [(header::WWW_AUTHENTICATE, "Basic realm=\"x\"")];
        return (status, demand).into_response();
    }
    if path == "/v2/" {
        return StatusCode::OK.into_response();
    }
    if path.contains("/manifests/") {
        let kind = "application/vnd.oci.image.manifest.v1+json";
        let digest = Digest::sha256(&inner.manifest).to_string();
        let headers = [(header::CONTENT_TYPE, kind)];
        let named = [("docker-content-digest", digest)];
        return (headers, named, inner.manifest.clone()).into_response();
    }
    let digest = path.rsplit('/').next().unwrap_or_default();
    let Some(blob) = inner.blobs.get(digest).cloned() else {
        return StatusCode::NOT_FOUND.into_response();
    };
    match inner.fault {
        Fault::Truncate(times) => {
            inner.fault = match times {
                1 => Fault::None,
                times => Fault::Truncate(times - 1),
            };
            let half = bytes::Bytes::from(blob[..blob.len() / 2].to_vec());
            let broken = Err(std::io::Error::other("gone"));
            let pieces = futures_util::stream::iter([Ok(half), broken]);
            Body::from_stream(pieces).into_response()
        }
        Fault::Corrupt => vec![b'x'; blob.len()].into_response(),
        _ => blob.into_response(),
    }
}
