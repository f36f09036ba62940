//! A registry with made-up releases, and servers beside it.

use api_server::Settings;
use api_server::settings::ReleaseImages;
use model::release_payload::COMPONENTS;
use oci_client::{Client, ClientOptions};
use registry::HttpAddr;
use serde_json::{Value, json};
use service::CancellationToken;
use service::server::Running;
use service::settings::Setting as _;

use crate::harness::Server;

/// Images that each installation needs.
const NEEDED: [&str; 4] = [
    "baremetal-installer",
    "machine-config-operator",
    "machine-os-images",
    "must-gather",
];

/// A registry over plain HTTP, without log-ins.
pub(crate) struct SiteRegistry {
    pub(crate) address: String,
    shutdown: CancellationToken,
    running: Running,
    folder: tempfile::TempDir,
}

impl SiteRegistry {
    pub(crate) async fn start() -> Self {
        Self::with(|_| {}).await
    }

    pub(crate) async fn with(change: impl FnOnce(&mut registry::Settings)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let shutdown = CancellationToken::new();
        let mut settings = registry::Settings {
            registry_http_addr: HttpAddr(([127, 0, 0, 1], 0).into()),
            registry_storage_filesystem_rootdirectory: folder.path().to_owned(),
            registry_log_accesslog_disabled: true,
            ..registry::Settings::default()
        };
        change(&mut settings);
        let running = registry::start(settings, shutdown.clone()).await.unwrap();
        Self {
            address: running.address().to_string(),
            shutdown,
            running,
            folder,
        }
    }

    pub(crate) async fn stop(self) {
        self.shutdown.cancel();
        self.running.wait().await.unwrap();
        drop(self.folder);
    }

    pub(crate) fn client() -> Client {
        let options = ClientOptions {
            insecure: true,
            ..ClientOptions::default()
        };
        Client::new(options).unwrap()
    }

    /// The reference of a component of a release.
    pub(crate) fn component(&self, version: &str, name: &str) -> String {
        format!("{}/openshift/release:{version}-{name}", self.address)
    }

    pub(crate) fn release(&self, version: &str) -> String {
        format!("{}/openshift/release-images:{version}-x86_64", self.address)
    }

    /// Publishes the payload of a release that names the images of each installation and `names`; no component.
    pub(crate) async fn publish(&self, version: &str, names: &[&str]) {
        self.publish_payload(version, names, |name| self.component(version, name))
            .await;
    }

    /// Publishes the payload of a release as [`Self::publish`] does, with references as a mirrored one has: to images of
    /// `repository`, which is in another registry.
    pub(crate) async fn publish_mirrored(&self, version: &str, names: &[&str], repository: &str) {
        let digest = oci::Digest::sha256(Self::component_manifest().digested());
        self.publish_payload(version, names, |_| format!("{repository}@{digest}"))
            .await;
    }

    /// Publishes an image with the tag and the label of a release, and one layer.
    pub(crate) async fn publish_layer(&self, version: &str, layer: &[u8]) {
        let (client, image) = (Self::client(), self.release(version).parse().unwrap());
        let push = async |kind: &str, bytes: Vec<u8>| {
            let pushed = client.push_blob_bytes(&image, kind, bytes.into()).await;
            json!(pushed.unwrap())
        };
        let config = json!({ "architecture": "amd64", "os": "linux",
            "config": { "Labels": { "io.openshift.release": version } } });
        let kind = "application/vnd.oci.image.manifest.v1+json";
        let manifest = json!({ "schemaVersion": 2, "mediaType": kind,
            "config": push("application/vnd.oci.image.config.v1+json", config.to_string().into()).await,
            "layers": [push("application/vnd.oci.image.layer.v1.tar+gzip", layer.to_vec()).await] });
        let manifest = manifest.to_string().into_bytes();
        let manifest = oci::Manifest::parse(manifest.into(), Some(kind)).unwrap();
        client.push_manifest(&image, &manifest).await.unwrap();
    }

    async fn publish_payload(&self, version: &str, names: &[&str], image: impl Fn(&str) -> String) {
        let stream = testkit::release::stream(&format!("418.94.{version}"));
        let data = json!({ "stream": stream.to_string() });
        self.publish_data(version, names, image, &data).await;
    }

    /// Publishes a whole release with this data in the ConfigMap of its boot images.
    pub(crate) async fn publish_streams(&self, version: &str, data: &Value) {
        let image = |name: &str| self.component(version, name);
        self.publish_data(version, &all(), image, data).await;
        self.publish_components(version, &all()).await;
    }

    async fn publish_data(
        &self,
        version: &str,
        names: &[&str],
        image: impl Fn(&str) -> String,
        data: &Value,
    ) {
        let names = NEEDED.iter().chain(names);
        let images: Vec<_> = names.map(|name| (*name, image(name))).collect();
        let images: Vec<_> = images
            .iter()
            .map(|(name, it)| (*name, it.as_str()))
            .collect();
        let (client, release) = (Self::client(), self.release(version));
        testkit::release::publish_payload_with(&client, &release, version, &images, data)
            .await
            .unwrap();
    }

    /// Publishes the components of a release.
    pub(crate) async fn publish_components(&self, version: &str, names: &[&str]) {
        let manifest = Self::component_manifest();
        for name in NEEDED.iter().chain(names) {
            let image = self.component(version, name).parse().unwrap();
            Self::client()
                .push_manifest(&image, &manifest)
                .await
                .unwrap();
        }
    }

    /// Publishes an image, and returns its digest.
    pub(crate) async fn publish_image(&self, name: &str) -> oci::Digest {
        let manifest = Self::component_manifest();
        let image = format!("{}/{name}", self.address).parse().unwrap();
        Self::client()
            .push_manifest(&image, &manifest)
            .await
            .unwrap();
        oci::Digest::sha256(manifest.digested())
    }

    fn component_manifest() -> oci::Manifest {
        let kind = "application/vnd.oci.image.index.v1+json";
        let index = json!({ "schemaVersion": 2, "mediaType": kind, "manifests": [] });
        let index = index.to_string().into_bytes();
        oci::Manifest::parse(index.into(), Some(kind)).unwrap()
    }

    /// Settings that name no images of hosts, and these releases.
    pub(crate) fn settings(&self, versions: &[&str]) -> impl FnOnce(&mut Settings) + use<> {
        let release = |version: &&str| {
            json!({ "openshift_version": version[..4], "version": version, "cpu_architecture": "x86_64",
                "url": self.release(version), "default": *version == versions[0] })
        };
        let releases: Vec<_> = versions.iter().map(release).collect();
        let address = self.address.clone();
        move |settings| {
            settings.dummy_ignition = false;
            settings.skip_cert_verification = true;
            settings.release_images = ReleaseImages::parse(&json!(releases).to_string()).unwrap();
            settings.agent_docker_image.clear();
            settings.installer_image.clear();
            settings.controller_image.clear();
            settings.public_container_registries.0.push(address);
        }
    }

    /// A server that offers these releases.
    pub(crate) async fn server(&self, versions: &[&str]) -> Server {
        Server::with(self.settings(versions)).await
    }
}

/// The components that hosts run.
pub(crate) fn all() -> [&'static str; 3] {
    COMPONENTS.map(|one| one.name)
}
