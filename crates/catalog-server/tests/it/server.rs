//! A server of one catalog, on a free port.

use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use catalog::cache::{CatalogCache, prepare};
use catalog_server::{ServedCatalog, grpc};
use service::CancellationToken;
use service::server::{self, Listen, Running};
use tempfile::TempDir;

use crate::client::Client;

const TWO: NonZeroUsize = NonZeroUsize::new(2).unwrap();
/// Long after every file was written. Units: seconds since 1970.
const LATER: i64 = 1 << 40;

/// Three packages: `a`; `b`, with one bundle in two channels; `c`, which provides the API in a channel other than its
/// default.
pub(crate) const CATALOG: &str = r#"
{"schema":"olm.package","name":"a","defaultChannel":"stable"}
{"schema":"olm.channel","package":"a","name":"stable","entries":[{"name":"a.v1"}]}
{"schema":"olm.bundle","package":"a","name":"a.v1","image":"quay.io/x/a:1","properties":[
  {"type":"olm.package","value":{"packageName":"a","version":"1.0.0"}},
  {"type":"olm.package.required","value":{"packageName":"b","versionRange":">=1.0.0"}},
  {"type":"olm.gvk.required","value":{"group":"r","version":"v1","kind":"R"}},
  {"type":"olm.csv.metadata","value":{"displayName":"A"}},
  {"type":"other","value":{"z":1.50,"a":"<&>"}},
  {"type":"olm.gvk","value":{"group":"g","version":"v1","kind":"K"}}]}
{"schema":"olm.deprecations","package":"a","entries":[
  {"reference":{"schema":"olm.package"},"message":"old package"},
  {"reference":{"schema":"olm.channel","name":"stable"},"message":"old channel"},
  {"reference":{"schema":"olm.bundle","name":"a.v1"},"message":"old bundle"}]}
{"schema":"olm.package","name":"b","defaultChannel":"fast"}
{"schema":"olm.channel","package":"b","name":"fast","entries":[
  {"name":"b.v1"},{"name":"b.v2","replaces":"b.v1","skips":["b.v0"],"skipRange":"<2.0.0"}]}
{"schema":"olm.channel","package":"b","name":"all","entries":[
  {"name":"b.v1"},{"name":"b.v2","skips":["b.v1","b.v0"]}]}
{"schema":"olm.bundle","package":"b","name":"b.v1","image":"quay.io/x/b:1","properties":[
  {"type":"olm.package","value":{"packageName":"b","version":"1.0.0"}}]}
{"schema":"olm.bundle","package":"b","name":"b.v2","image":"","properties":[
  {"type":"olm.package","value":{"packageName":"b","version":"2.0.0"}},
  {"type":"olm.gvk","value":{"group":"g","version":"v1","kind":"K"}},
  {"type":"olm.bundle.object","value":{"data":"eyJraW5kIjoiQ2x1c3RlclNlcnZpY2VWZXJzaW9uIn0="}}]}
{"schema":"olm.package","name":"c","defaultChannel":"new"}
{"schema":"olm.channel","package":"c","name":"new","entries":[{"name":"c.v2"}]}
{"schema":"olm.channel","package":"c","name":"old","entries":[{"name":"c.v1"}]}
{"schema":"olm.bundle","package":"c","name":"c.v1","image":"quay.io/x/c:1","properties":[
  {"type":"olm.package","value":{"packageName":"c","version":"1.0.0"}},
  {"type":"olm.gvk","value":{"group":"only","version":"v1","kind":"Old"}}]}
{"schema":"olm.bundle","package":"c","name":"c.v2","image":"quay.io/x/c:2","properties":[
  {"type":"olm.package","value":{"packageName":"c","version":"2.0.0"}}]}
{"schema":"example","package":"b","name":"one","n":1}
{"schema":"example","name":"of nobody","n":2}
{"schema":"example","package":"b","name":"two","n":3}
"#;

/// A server and its catalog.
pub(crate) struct Server {
    folder: TempDir,
    pub(crate) catalog: ServedCatalog,
    pub(crate) shutdown: CancellationToken,
    running: Running,
}

impl Server {
    /// Serves [`CATALOG`].
    pub(crate) async fn start() -> Self {
        let server = Self::empty(grpc::GrpcOptions::default()).await;
        server.serve(CATALOG);
        server
    }

    /// Serves [`CATALOG`] with a limit of requests in flight per client.
    pub(crate) async fn for_requests(per_client: usize) -> Self {
        let mut listen = loopback();
        listen.http.max_requests_per_client = per_client;
        let server = Self::on(listen, grpc::GrpcOptions::default()).await;
        server.serve(CATALOG);
        server
    }

    /// Serves no catalog yet.
    pub(crate) async fn empty(options: grpc::GrpcOptions) -> Self {
        Self::on(loopback(), options).await
    }

    async fn on(listen: Listen, options: grpc::GrpcOptions) -> Self {
        let shutdown = options.shutdown.clone();
        let catalog = ServedCatalog::new();
        let router = grpc::router(&catalog, &options);
        let running = server::start(vec![listen], router, shutdown.clone()).await;
        Self {
            folder: TempDir::new().unwrap(),
            catalog,
            shutdown,
            running: running.unwrap(),
        }
    }

    /// Swaps in the catalog `text`.
    pub(crate) fn serve(&self, text: &str) {
        let configs = self.folder.path().join("configs");
        fs::create_dir_all(&configs).unwrap();
        fs::write(configs.join("catalog.json"), text).unwrap();
        self.catalog.replace(open(&configs, &self.cache()));
    }

    /// Path of the cache.
    pub(crate) fn cache(&self) -> std::path::PathBuf {
        self.folder.path().join("cache")
    }

    pub(crate) fn address(&self) -> String {
        format!("http://{}", self.running.address())
    }

    pub(crate) async fn client(&self) -> Client {
        Client::new(&self.address()).await
    }

    /// Waits for its end.
    pub(crate) async fn wait(self) {
        self.running.wait().await.unwrap();
    }
}

fn loopback() -> Listen {
    Listen::new("127.0.0.1:0".parse().unwrap(), None)
}

/// The cache of a folder.
pub(crate) fn open(folder: &Path, path: &Path) -> Arc<CatalogCache> {
    prepare(folder, path, TWO, LATER).unwrap().cache
}
