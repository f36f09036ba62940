//! OS images in the container image `machine-os-images` of a release, in a registry.

use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use image_service::{OsImage, Settings};
use oci::{Digest, Manifest, Platform, Reference, media_type};
use oci_client::{Client, ClientOptions};
use registry::HttpAddr;
use serde_json::{Value, json};
use service::CancellationToken;
use service::server::Running;
use service::settings::JsonVar;
use testkit::iso::{LiveImageOptions, Written};
use tokio::io::AsyncReadExt as _;
use tokio::net::{TcpListener, TcpStream};

use crate::world::{OS_VERSION, World, os_image, own_file};

pub(crate) const IMAGE: &str = "/coreos/coreos-x86_64.iso";
/// Type of a layer that is compressed by zstd.
const OCI_LAYER_ZSTD: &str = "application/vnd.oci.image.layer.v1.tar+zstd";

/// A registry without TLS and logins.
pub(crate) struct Registry {
    client: Client,
    pub(crate) image: Reference,
    shutdown: CancellationToken,
    _running: Running,
    _folder: tempfile::TempDir,
}

impl Drop for Registry {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

impl Registry {
    pub(crate) async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let settings = registry::Settings {
            registry_http_addr: HttpAddr("127.0.0.1:0".parse().unwrap()),
            registry_storage_filesystem_rootdirectory: folder.path().to_owned(),
            registry_log_accesslog_disabled: true,
            ..registry::Settings::default()
        };
        let shutdown = CancellationToken::new();
        let running = registry::start(settings, shutdown.clone()).await.unwrap();
        let image = format!("{}/release:5.0-machine-os-images", running.address());
        let options = ClientOptions {
            plain_http: true,
            ..ClientOptions::default()
        };
        Self {
            client: Client::new(options).unwrap(),
            image: image.parse().unwrap(),
            shutdown,
            _running: running,
            _folder: folder,
        }
    }

    fn url(&self) -> String {
        format!("oci://{}", self.image)
    }

    /// Pushes an image of these layers, the lowest first, under its tag.
    pub(crate) async fn push(&self, layers: &[(&str, Vec<u8>)]) -> Manifest {
        let mut pushed = Vec::new();
        for (kind, layer) in layers {
            pushed.push(self.push_blob(kind, layer.clone()).await);
        }
        let config = br#"{"architecture": "amd64", "os": "linux"}"#.to_vec();
        let config = self.push_blob(media_type::OCI_CONFIG, config).await;
        self.push_manifest(json!({
            "schemaVersion": 2, "mediaType": media_type::OCI_MANIFEST, "config": config, "layers": pushed,
        }))
        .await
    }

    async fn push_blob(&self, kind: &str, bytes: Vec<u8>) -> Value {
        let pushed = self.client.push_blob_bytes(&self.image, kind, bytes.into());
        serde_json::to_value(pushed.await.unwrap()).unwrap()
    }

    async fn push_manifest(&self, manifest: Value) -> Manifest {
        let manifest = Manifest::parse(Bytes::from(manifest.to_string()), None).unwrap();
        let pushed = self.client.push_manifest(&self.image, &manifest);
        pushed.await.unwrap();
        manifest
    }

    /// Pushes an index of images by their architectures, under the tag.
    async fn push_index(&self, images: &[(&str, &Manifest)]) {
        let images = images.iter().map(|(architecture, image)| {
            json!({
                "mediaType": image.media_type, "digest": image.digest, "size": image.bytes.len(),
                "platform": Platform::linux(architecture),
            })
        });
        let images: Vec<_> = images.collect();
        self.push_manifest(json!({
            "schemaVersion": 2, "mediaType": media_type::OCI_INDEX, "manifests": images,
        }))
        .await;
    }
}

/// Bytes of the first long response that a relay passes on.
const CUT_AFTER: usize = 8 << 20;

#[derive(Clone, Copy, PartialEq)]
enum RelayEnd {
    Close,
    Stall,
}

/// A relay to a registry that interrupts the first long response.
struct Relay {
    address: String,
}

impl Relay {
    async fn start(server: &str, end: RelayEnd) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (server, is_cut) = (server.to_owned(), Arc::new(AtomicBool::new(false)));
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(&server).await.unwrap();
                tokio::spawn(relay(client, server, end, Arc::clone(&is_cut)));
            }
        });
        Self { address }
    }

    fn url(&self, registry: &Registry) -> String {
        let image = registry.image.to_string();
        let (_, path) = image.split_once('/').unwrap();
        format!("oci://{}/{path}", self.address)
    }
}

async fn relay(client: TcpStream, server: TcpStream, end: RelayEnd, is_cut: Arc<AtomicBool>) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    tokio::spawn(async move { tokio::io::copy(&mut from_client, &mut to_server).await });
    let mut first = (&mut from_server).take(CUT_AFTER as u64);
    let passed = tokio::io::copy(&mut first, &mut to_client).await;
    let is_long = passed.is_ok_and(|passed| passed == CUT_AFTER as u64);
    if is_long && !is_cut.swap(true, Ordering::SeqCst) {
        if end == RelayEnd::Stall {
            std::future::pending::<()>().await;
        }
        return;
    }
    tokio::io::copy(&mut from_server, &mut to_client).await.ok();
}

pub(crate) fn live_image() -> (Vec<u8>, Written) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("live.iso");
    let written = testkit::iso::write(&path, &LiveImageOptions::default()).unwrap();
    (std::fs::read(path).unwrap(), written)
}

pub(crate) fn tar(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    for (path, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o644);
        header.set_size(content.len() as u64);
        let path = path.trim_start_matches('/');
        archive.append_data(&mut header, path, *content).unwrap();
    }
    archive.into_inner().unwrap()
}

fn gzip(files: &[(&str, &[u8])]) -> (&'static str, Vec<u8>) {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(&tar(files)).unwrap();
    (media_type::OCI_LAYER_GZIP, gzip.finish().unwrap())
}

fn sha256(bytes: &[u8]) -> String {
    Digest::sha256(bytes).hex().to_owned()
}

/// The layer of an image for one architecture, as releases have it.
fn layer_of(image: &[u8]) -> (&'static str, Vec<u8>) {
    gzip(&[
        (IMAGE, image),
        (&format!("{IMAGE}.sha256"), sha256(image).as_bytes()),
        ("/coreos/coreos-stream.json", b"{}"),
    ])
}

async fn world_of(url: &str, data: tempfile::TempDir, change: impl FnOnce(&mut Settings)) -> World {
    World::without_image(data, |settings| {
        settings.os_images = JsonVar(vec![os_image(url)]);
        settings.insecure_skip_verify = true;
        change(settings);
    })
    .await
}

fn data() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

pub(crate) fn partial(data: &Path) -> std::path::PathBuf {
    own_file(data).with_extension("iso.part")
}

async fn is_served(registry: &Registry, image: &[u8]) {
    let world = world_of(&registry.url(), data(), |_| {}).await;
    world.ready().await;
    assert!(std::fs::read(own_file(world.data.path())).unwrap() == image);
}

/// Starts with this image and with a sound one: such a service is ready once both have been tried.
async fn is_refused(registry: &Registry, change: impl FnOnce(&mut Settings)) {
    let folder = data();
    let sound = folder.path().join("sound.iso");
    testkit::iso::write(&sound, &LiveImageOptions::default()).unwrap();
    let world = world_of(&registry.url(), data(), |settings| {
        settings.os_images.0.push(OsImage {
            openshift_version: "4.17".to_owned(),
            version: "417.94.1-0".to_owned(),
            ..os_image(&format!("file://{}", sound.display()))
        });
        change(settings);
    })
    .await;
    let deadline = Instant::now() + Duration::from_mins(1);
    while world.get("/ready").send().await.unwrap().status() != 200 {
        assert!(Instant::now() < deadline, "no attempt has ended");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let image = world.get(&World::full_iso()).send().await.unwrap();
    assert_eq!(image.status(), 503);
    assert!(!own_file(world.data.path()).exists());
    // Its bytes are of no use.
    assert!(!partial(world.data.path()).exists());
}

#[tokio::test]
async fn a_live_image_of_a_release_is_customised() {
    let registry = Registry::start().await;
    let (image, written) = live_image();
    let base = gzip(&[("/etc/os-release", b"ID=rhel")]);
    let scripts = gzip(&[("/bin/copy-iso", b"#!/bin/sh")]);
    registry.push(&[base, layer_of(&image), scripts]).await;
    let mut world = world_of(&registry.url(), data(), |_| {}).await;
    world.ready().await;
    assert!(std::fs::read(own_file(world.data.path())).unwrap() == image);
    (world.base, world.written) = (image, written);
    assert!(world.bytes(&World::full_iso()).await == world.expected_iso(""));
}

#[tokio::test]
async fn the_image_of_the_architecture_is_taken_from_an_index() {
    let registry = Registry::start().await;
    let (image, _) = live_image();
    let own = registry.push(&[layer_of(&image)]).await;
    let other = [("/coreos/coreos-aarch64.iso", &b"other"[..])];
    let other = registry.push(&[gzip(&other)]).await;
    registry
        .push_index(&[("aarch64", &other), ("x86_64", &own)])
        .await;
    is_served(&registry, &image).await;
}

#[tokio::test]
async fn layers_may_be_plain_or_compressed_by_zstd() {
    let (image, _) = live_image();
    let plain = tar(&[(IMAGE, &image)]);
    let level = ruzstd::encoding::CompressionLevel::Fastest;
    let zstd = ruzstd::encoding::compress_to_vec(&plain[..], level);
    for (kind, layer) in [(media_type::OCI_LAYER, plain), (OCI_LAYER_ZSTD, zstd)] {
        let registry = Registry::start().await;
        registry.push(&[(kind, layer)]).await;
        is_served(&registry, &image).await;
    }
}

#[tokio::test]
async fn the_second_generation_is_taken_in_place_of_the_first_only() {
    let (image, _) = live_image();
    let second = "/coreos/coreos10-x86_64.iso";
    let (checksum, own) = (format!("{second}.sha256"), sha256(&image));
    let registry = Registry::start().await;
    let only = [(second, &image[..]), (&checksum, own.as_bytes())];
    registry.push(&[gzip(&only)]).await;
    is_served(&registry, &image).await;

    // In an unusual order, and in an upper layer.
    let other = [(second, &image[..4096]), (IMAGE, &image)];
    let upper = [(second, &b"above"[..])];
    registry.push(&[gzip(&other), gzip(&upper)]).await;
    is_served(&registry, &image).await;
}

/// A release with two streams in one image: the default one is populated at once, the other one when it is requested.
#[tokio::test]
async fn the_image_of_another_stream_is_served_by_its_version() {
    const VERSION: &str = "10.0.1-0";
    let registry = Registry::start().await;
    let ((image, _), second) = (live_image(), "/coreos/coreos10-x86_64.iso");
    let folder = data();
    let path = folder.path().join("ten.iso");
    let options = LiveImageOptions {
        os_version: VERSION.to_owned(),
        ..LiveImageOptions::default()
    };
    let written = testkit::iso::write(&path, &options).unwrap();
    let ten = std::fs::read(path).unwrap();
    let (checksum, sum) = (format!("{second}.sha256"), sha256(&ten));
    let files = [
        (IMAGE, &image[..]),
        (second, &ten),
        (&checksum, sum.as_bytes()),
    ];
    registry.push(&[gzip(&files)]).await;
    let of_stream = |version: &str, os_stream: &str| OsImage {
        version: version.to_owned(),
        os_stream: os_stream.to_owned(),
        ..os_image(&registry.url())
    };
    let mut world = world_of(&registry.url(), data(), |settings| {
        let default = os_image("").version;
        settings.os_images = JsonVar(vec![
            of_stream(&default, "rhel-9"),
            of_stream(VERSION, "rhel-10"),
            // Its file is missing.
            of_stream("11.0.1-0", "rhel-11"),
        ]);
    })
    .await;
    world.ready().await;
    assert!(std::fs::read(own_file(world.data.path())).unwrap() == image);
    let own = format!("rhcos-full-iso-{VERSION}-x86_64.iso");
    let own = world.data.path().join(own);
    assert!(!own.exists(), "it was not requested");

    let iso = World::full_iso().replace("/4.18/", &format!("/{VERSION}/"));
    let status = async |path: &str| world.get(path).send().await.unwrap().status();
    let missing = iso.replace(VERSION, "11.0.1-0");
    for path in [&missing, &iso] {
        assert_eq!(status(path).await, 503);
    }
    let deadline = Instant::now() + Duration::from_mins(1);
    while status(&iso).await != 200 {
        assert!(Instant::now() < deadline, "the image did not come");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(std::fs::read(&own).unwrap() == ten);
    assert_eq!(status(&missing).await, 503);
    assert_eq!(status("/ready").await, 200);
    (world.base, world.written) = (ten, written);
    assert!(world.bytes(&iso).await == world.expected_iso(""));
}

#[tokio::test]
async fn an_image_with_another_checksum_is_not_served() {
    let registry = Registry::start().await;
    let (image, _) = live_image();
    let checksum = (&*format!("{IMAGE}.sha256"), "0".repeat(64));
    let files = [(IMAGE, &image[..]), (checksum.0, checksum.1.as_bytes())];
    registry.push(&[gzip(&files)]).await;
    is_refused(&registry, |_| {}).await;
}

#[tokio::test]
async fn unusable_images_are_not_served() {
    let (image, _) = live_image();
    let (kind, whole) = layer_of(&image);
    let other = [("/coreos/coreos-aarch64.iso", &image[..])];
    for layer in [
        (kind, whole[..whole.len() / 2].to_vec()),
        (
            media_type::OCI_LAYER,
            tar(&[(IMAGE, &image)])[..9000].to_vec(),
        ),
        gzip(&other),
        gzip(&[("/etc/os-release", b"ID=rhel")]),
        gzip(&[(IMAGE, b"no live image")]),
    ] {
        let registry = Registry::start().await;
        registry.push(&[layer]).await;
        is_refused(&registry, |_| {}).await;
    }
}

#[tokio::test]
async fn images_above_the_limit_are_not_written() {
    let registry = Registry::start().await;
    let (image, _) = live_image();
    registry.push(&[layer_of(&image)]).await;
    is_refused(&registry, |settings| {
        settings.max_os_image_bytes = image.len() as u64 - 1;
    })
    .await;
}

#[tokio::test]
async fn a_partial_file_is_continued_in_place() {
    // Its own: services of one process share their measurements.
    const VERSION: &str = "418.94.202511191518-1";
    let named = |file: &Path| {
        let name = file.file_name().unwrap().to_str().unwrap();
        file.with_file_name(name.replace(OS_VERSION, VERSION))
    };
    let registry = Registry::start().await;
    let (image, _) = live_image();
    registry.push(&[layer_of(&image)]).await;
    // The second one has other bytes at its end, as after the crash of a machine.
    for held in [
        image[..100_000].to_vec(),
        [&image[..5000], b"torn"].concat(),
    ] {
        let data = data();
        let partial = named(&partial(data.path()));
        std::fs::write(&partial, held).unwrap();
        let inode = std::fs::metadata(&partial).unwrap().ino();
        let rename = |settings: &mut Settings| {
            VERSION.clone_into(&mut settings.os_images.0[0].version);
        };
        let world = world_of(&registry.url(), data, rename).await;
        world.ready().await;
        let own = named(&own_file(world.data.path()));
        assert!(std::fs::read(&own).unwrap() == image);
        assert_eq!(std::fs::metadata(&own).unwrap().ino(), inode);
        let metrics = world.bytes("/metrics").await;
        let metrics = String::from_utf8(metrics).unwrap();
        let gauge = metrics.lines().find(|line| {
            line.starts_with("atoll_os_image_downloaded_bytes") && line.contains(VERSION)
        });
        let end = format!(" {}", image.len());
        assert!(gauge.unwrap().ends_with(&end), "{gauge:?}");
    }
}

#[tokio::test]
async fn an_interrupted_download_is_continued() {
    let registry = Registry::start().await;
    let (image, _) = live_image();
    let plain = tar(&[(IMAGE, &image)]);
    registry.push(&[(media_type::OCI_LAYER, plain)]).await;
    let server = registry.image.registry.to_string();

    // The connection stops in the middle, and the process ends.
    let stalls = Relay::start(&server, RelayEnd::Stall).await;
    let first = world_of(&stalls.url(&registry), data(), |_| {}).await;
    let partial = partial(first.data.path());
    let deadline = Instant::now() + Duration::from_mins(1);
    while std::fs::metadata(&partial).map_or(0, |it| it.len()) < CUT_AFTER as u64 / 2 {
        assert!(Instant::now() < deadline, "nothing is written");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let inode = std::fs::metadata(&partial).unwrap().ino();
    let data = Arc::clone(&first.data);
    drop(first);

    // Then it breaks in the middle.
    let breaks = Relay::start(&server, RelayEnd::Close).await;
    let second = World::replica(data, |settings| {
        settings.os_images = JsonVar(vec![os_image(&breaks.url(&registry))]);
        settings.insecure_skip_verify = true;
    })
    .await;
    second.ready().await;
    let own = own_file(second.data.path());
    assert!(std::fs::read(&own).unwrap() == image);
    assert_eq!(std::fs::metadata(&own).unwrap().ino(), inode);
}

#[tokio::test]
async fn a_second_start_needs_no_registry() {
    let registry = Registry::start().await;
    let (image, _) = live_image();
    registry.push(&[layer_of(&image)]).await;
    let url = registry.url();
    let first = world_of(&url, data(), |_| {}).await;
    first.ready().await;
    let data = Arc::clone(&first.data);
    drop((first, registry));
    let second = World::replica(data, |settings| {
        settings.os_images = JsonVar(vec![OsImage {
            sha256: sha256(&image),
            ..os_image(&url)
        }]);
    })
    .await;
    second.ready().await;
}
