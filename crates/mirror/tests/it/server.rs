//! A registry on a free port, without TLS and logins.

use mirror::platform::{ReleaseSources, public_graph_data, usual_graph_base};
use mirror::publish::MirrorTarget;
use net::web::Web;
use oci_client::{Client, ClientOptions};
use registry::{HttpAddr, Settings};
use service::CancellationToken;
use service::server::Running;
use tempfile::TempDir;

pub(crate) struct Server {
    pub(crate) address: String,
    pub(crate) client: Client,
    pub(crate) platform: ReleaseSources,
    shutdown: CancellationToken,
    _running: Running,
    _folder: TempDir,
}

impl Server {
    pub(crate) async fn start() -> Self {
        Self::with(|_| {}).await
    }

    /// With these settings.
    pub(crate) async fn with(change: impl FnOnce(&mut Settings)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut settings = Settings {
            registry_http_addr: HttpAddr("127.0.0.1:0".parse().unwrap()),
            registry_storage_filesystem_rootdirectory: folder.path().to_owned(),
            registry_log_accesslog_disabled: true,
            ..Settings::default()
        };
        change(&mut settings);
        let shutdown = CancellationToken::new();
        let running = registry::start(settings, shutdown.clone()).await.unwrap();
        let options = ClientOptions {
            plain_http: true,
            ..ClientOptions::default()
        };
        Self {
            address: running.address().to_string(),
            client: Client::new(options).unwrap(),
            platform: ReleaseSources {
                web: Web::new(None).unwrap(),
                updates: None,
                version_filter: None,
                signature_stores: Vec::new(),
                keyring: None,
                ignores_signatures: true,
                graph_data: public_graph_data(),
                graph_base: usual_graph_base(),
            },
            shutdown,
            _running: running,
            _folder: folder,
        }
    }

    /// The registry as a target, below a namespace.
    pub(crate) fn target(&self) -> MirrorTarget {
        MirrorTarget {
            client: self.client.clone(),
            registry: oci::Registry::Host(self.address.clone()),
            namespace: "ns".into(),
            max_components: 0,
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}
