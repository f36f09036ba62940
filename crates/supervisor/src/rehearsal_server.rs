//! An API server for one rehearsal: its database and files are temporary, and it makes files of installations without an
//! installer, so that no release image is needed.

use std::net::Ipv4Addr;
use std::time::Duration;

use api_server::Settings;
use api_server::settings::{BaseUrl, OsImages, ReleaseImages};
use credentials::secrets;
use serde_json::{Value, json};
use service::file::write_atomic;
use service::settings::{CommaList, Setting as _};
use service::{CancellationToken, Error, ResultExt as _};

use crate::data_directory::DataDirectory;
use crate::environment::{DB_NAME, DB_USER};
use crate::ports::temporary_port;
use crate::postgres::{Cluster, TemporaryServer};
use crate::ready;
use crate::temporary_folder::TemporaryFolder;

/// Release without `--release`.
const VERSION: &str = "4.20.4";
const ARCHITECTURES: [&str; 4] = ["x86_64", "arm64", "ppc64le", "s390x"];
/// Registry of images that no simulated host pulls.
const REGISTRY: &str = "127.0.0.1:5000";
/// Interval of judging clusters and hosts: time runs fast here.
const JUDGING: Duration = Duration::from_millis(500);
const CONNECTIONS: u32 = 16;

/// A running server.
pub struct RehearsalServer {
    url: String,
    shutdown: CancellationToken,
    running: service::server::Running,
    // Dropped in this order: the database stops before its folder is removed.
    _database: TemporaryServer,
    _folder: TemporaryFolder,
}

impl RehearsalServer {
    /// Starts the server, which offers one release; ready when this returns.
    ///
    /// Errors: no Postgres, or a folder that it cannot reach.
    pub async fn start(version: Option<&str>) -> Result<Self, Error> {
        let folder = TemporaryFolder::new()?;
        let directory = DataDirectory::new(Some(folder.path().join("data")))?;
        directory.create()?;
        let password = secrets::password();
        let file = directory.secrets().join("database-password");
        write_atomic(&file, password.as_bytes(), 0o600)?;
        let db_port = temporary_port()?;
        let database = tokio::task::block_in_place(|| {
            let (cluster, _) = Cluster::prepare(&directory, db_port, &file)?;
            cluster.serve()
        })?;
        let api_port = temporary_port()?;
        let url = format!("http://127.0.0.1:{api_port}");
        let settings = Settings {
            api_listen_address: Ipv4Addr::LOCALHOST.into(),
            api_listen_port: api_port,
            service_base_url: Some(BaseUrl(url.clone())),
            db_host: Ipv4Addr::LOCALHOST.to_string(),
            db_port,
            db_user: DB_USER.to_owned(),
            db_pass: password.into(),
            db_name: DB_NAME.to_owned(),
            db_max_open_connections: CONNECTIONS,
            work_dir: folder.path().join("work"),
            dummy_ignition: true,
            ipv6_support: true,
            release_images: releases(version.unwrap_or(VERSION)).doing("--release")?,
            os_images: os_images(version.unwrap_or(VERSION)).doing("--release")?,
            agent_docker_image: format!("{REGISTRY}/rehearsal/agent:1"),
            installer_image: format!("{REGISTRY}/rehearsal/installer:1"),
            controller_image: format!("{REGISTRY}/rehearsal/controller:1"),
            public_container_registries: CommaList(vec![REGISTRY.to_owned()]),
            registries_conf_path: "/nonexistent/registries.conf".into(),
            mirror_ca_path: "/nonexistent/ca.pem".into(),
            cluster_monitor_interval: JUDGING,
            ..Settings::default()
        };
        std::fs::create_dir_all(&settings.work_dir)
            .doing("starting the API server of the rehearsal")?;
        let shutdown = CancellationToken::new();
        let running = api_server::start(settings, shutdown.clone()).await?;
        ready::wait([("api-server", format!("{url}/ready"))].into()).await?;
        Ok(Self {
            url,
            shutdown,
            running,
            _database: database,
            _folder: folder,
        })
    }

    /// Base address.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Stops the server, then its database.
    pub async fn stop(self) {
        self.shutdown.cancel();
        // A failure of its last tasks changes nothing: the data is temporary.
        self.running.wait().await.ok();
    }
}

fn minor(version: &str) -> String {
    version.split('.').take(2).collect::<Vec<_>>().join(".")
}

fn releases(version: &str) -> Result<ReleaseImages, String> {
    let release = |architecture: &&str| {
        let is_default = *architecture == ARCHITECTURES[0];
        json!({ "openshift_version": minor(version), "version": version, "cpu_architecture": architecture,
            "cpu_architectures": [architecture], "default": is_default,
            "url": format!("{REGISTRY}/rehearsal/release:{version}-{architecture}") })
    };
    let list: Value = ARCHITECTURES.iter().map(release).collect();
    ReleaseImages::parse(&list.to_string())
}

fn os_images(version: &str) -> Result<OsImages, String> {
    let image = |architecture: &&str| {
        json!({ "openshift_version": minor(version), "version": version, "cpu_architecture": architecture,
            "url": format!("http://{REGISTRY}/live-{architecture}.iso") })
    };
    let list: Value = ARCHITECTURES.iter().map(image).collect();
    OsImages::parse(&list.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_of_each_architecture_is_offered() {
        assert_eq!(minor("4.20.4"), "4.20");
        assert!(releases(VERSION).is_ok());
        assert!(os_images(VERSION).is_ok());
        assert!(releases("new").is_err());
    }
}
