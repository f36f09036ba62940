//! A server that speaks S3, with one bucket in memory and faults of the wire.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bucket;
mod wire;

use std::net::SocketAddr;

use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use s3s::auth::SimpleAuth;
use s3s::service::S3ServiceBuilder;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

pub use bucket::{BUCKET, S3Bucket, S3State, StoredObject};
pub use wire::{FAULTS, Faults, S3Fault, Wire};

/// Access key id.
pub const KEY: &str = "key";
/// Secret access key.
pub const SECRET: &str = "secret";

/// A server that speaks S3, until it is dropped.
#[derive(Debug)]
pub struct S3Server {
    /// Its bucket.
    pub bucket: S3Bucket,
    /// Faults of its requests.
    pub wire: Wire,
    /// Its address.
    pub address: SocketAddr,
    serving: JoinHandle<()>,
}

impl S3Server {
    /// An empty one on a free port.
    pub async fn start() -> Self {
        Self::listen(S3Bucket::default(), SocketAddr::from(([127, 0, 0, 1], 0))).await
    }

    /// One with this content, at this address.
    ///
    /// # Panics
    /// The address is in use.
    pub async fn listen(bucket: S3Bucket, address: SocketAddr) -> Self {
        let listener = TcpListener::bind(address).await.expect("a free address");
        let address = listener.local_addr().expect("an address");
        let mut service = S3ServiceBuilder::new(bucket.clone());
        service.set_auth(SimpleAuth::from_single(KEY, SECRET));
        let service = service.build();
        let wire = Wire::default();
        let behind = (bucket.clone(), wire.clone());
        let serving = tokio::spawn(async move {
            // Connections end with the server.
            let mut open = tokio::task::JoinSet::new();
            while let Ok((socket, _)) = listener.accept().await {
                let (service, (bucket, wire)) = (service.clone(), behind.clone());
                let service = service_fn(move |request| {
                    let (service, bucket, wire) = (service.clone(), bucket.clone(), wire.clone());
                    async move { wire.answer(&service, &bucket, request).await }
                });
                open.spawn(async move {
                    let server = Builder::new(TokioExecutor::new());
                    server
                        .serve_connection(TokioIo::new(socket), service)
                        .await
                        .ok();
                });
            }
        });
        Self {
            bucket,
            wire,
            address,
            serving,
        }
    }

    /// Ends at once; its stored content stays.
    pub async fn kill(mut self) -> (S3Bucket, SocketAddr) {
        self.serving.abort();
        (&mut self.serving).await.ok();
        (self.bucket.clone(), self.address)
    }
}

impl Drop for S3Server {
    fn drop(&mut self) {
        self.serving.abort();
    }
}
