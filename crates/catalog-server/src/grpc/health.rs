//! `grpc.health.v1.Health`: serving while a catalog is loaded.

use std::pin::Pin;

use futures_util::{Stream, StreamExt as _, future, stream};
use service::CancellationToken;
use tokio_stream::wrappers::WatchStream;
use tonic::{Request, Response, Status};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_server;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

use crate::ServedCatalog;

/// Same status for every service name. Source: `opm serve` answers unknown names, too, which probes use.
#[derive(Debug)]
pub(super) struct Health {
    catalog: ServedCatalog,
    shutdown: CancellationToken,
}

impl Health {
    pub(super) fn new(catalog: ServedCatalog, shutdown: CancellationToken) -> Self {
        Self { catalog, shutdown }
    }
}

fn status(is_served: bool) -> HealthCheckResponse {
    let status = if is_served {
        ServingStatus::Serving
    } else {
        ServingStatus::NotServing
    };
    HealthCheckResponse {
        status: status.into(),
    }
}

#[tonic::async_trait]
impl health_server::Health for Health {
    async fn check(
        &self,
        _: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        Ok(Response::new(status(self.catalog.current().is_some())))
    }

    type WatchStream = Pin<Box<dyn Stream<Item = Result<HealthCheckResponse, Status>> + Send>>;

    /// Streams the status and its changes; NOT_SERVING at shutdown.
    async fn watch(
        &self,
        _: Request<HealthCheckRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let mut sent = None;
        let states = WatchStream::new(self.catalog.changes()).map(|served| served.is_some());
        let news = states.filter_map(move |is_served| {
            let is_news = sent.replace(is_served) != Some(is_served);
            future::ready(is_news.then(|| Ok(status(is_served))))
        });
        let end = self.shutdown.clone().cancelled_owned();
        let last = stream::once(async { Ok(status(false)) });
        Ok(Response::new(Box::pin(news.take_until(end).chain(last))))
    }
}
