//! The handler of a listener's requests: a router, or one function.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;

use axum::Router;
use axum::extract::{ConnectInfo, Request};
use axum::response::Response;
use tower::Service as _;

use super::clients::ClientAddress;

/// An admitted request.
#[derive(Debug)]
pub struct AdmittedRequest {
    /// The other end of the connection.
    pub peer: SocketAddr,
    /// The client that counts for limits.
    pub client: ClientAddress,
    /// The request itself.
    pub request: Request,
}

type ResponseFuture = Pin<Box<dyn Future<Output = Response> + Send>>;

/// Answers the requests of a listener; shared by its clones.
///
/// A server with one route and short requests in great numbers needs no router: its layers and extensions would cost
/// more than the answer.
#[derive(Clone)]
pub struct RequestHandler(Arc<dyn Fn(AdmittedRequest) -> ResponseFuture + Send + Sync>);

impl RequestHandler {
    /// Answers with `handle`.
    pub fn new<F>(handle: impl Fn(AdmittedRequest) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Response> + Send + 'static,
    {
        Self(Arc::new(move |request| Box::pin(handle(request))))
    }

    pub(crate) fn answer(&self, request: AdmittedRequest) -> ResponseFuture {
        (self.0)(request)
    }
}

impl From<Router> for RequestHandler {
    fn from(router: Router) -> Self {
        Self::new(move |admitted| {
            let AdmittedRequest {
                peer,
                client,
                mut request,
            } = admitted;
            let extensions = request.extensions_mut();
            extensions.insert(ConnectInfo(peer));
            extensions.insert(client);
            let response = router.clone().call(request);
            async move {
                let Ok(response) = response.await;
                response
            }
        })
    }
}
