//! Metrics of images under the names and labels that dashboards of assisted-image-service read.
//!
//! Source: assisted-image-service with slok/go-http-metrics. The duration ends with the last byte, and the size is that of
//! the bytes which the connection took.

use std::time::Instant;

use axum::Router;
use axum::extract::{MatchedPath, Request};
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::Response;
use service::layers::method_label;
use service::metrics::DeclaredMetric;
use service::observed_body::{data_length, observed};

const DURATION: &str = "assisted_image_service_http_request_duration_seconds";
const SIZE: &str = "assisted_image_service_http_response_size_bytes";
const IN_FLIGHT: &str = "assisted_image_service_http_requests_inflight";

static DECLARED: [DeclaredMetric; 2] = [
    DeclaredMetric {
        name: DURATION,
        buckets: &[0.1, 1.0, 10.0, 50.0, 100.0, 300.0, 600.0],
        lasts: true,
    },
    DeclaredMetric {
        name: SIZE,
        buckets: &[100.0, 1e6, 5e8, 1e9, 1e10],
        lasts: true,
    },
];

/// Declares the metrics, before the process's recorder is installed.
pub(crate) fn declare() {
    service::metrics::declare(&DECLARED);
}

/// Measures requests for the routes.
pub(super) fn measured(router: Router) -> Router {
    router.layer(middleware::from_fn(measure))
}

async fn measure(request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>();
    let handler = route.map_or("", |route| handler(route.as_str(), request.uri().path()));
    let method = method_label(request.method());
    let in_flight = metrics::gauge!(IN_FLIGHT, "handler" => handler, "service" => "");
    in_flight.increment(1.0);
    let mut measurement = ImageMeasurement {
        handler,
        method,
        code: StatusCode::INTERNAL_SERVER_ERROR,
        started: Instant::now(),
        bytes: 0,
        in_flight,
    };
    let response = next.run(request).await;
    measurement.code = response.status();
    response.map(|body| {
        observed(body, measurement, |measurement, frame| {
            measurement.bytes += data_length(frame);
        })
    })
}

/// The peer's name of a route. Names of boot artifacts are in it.
fn handler(route: &str, path: &str) -> &'static str {
    match route {
        "/images/{image_id}" => "/images/:imageID",
        "/images/{image_id}/pxe-initrd" => "/images/:imageID/pxe-initrd",
        "/images/{image_id}/s390x-initrd-addrsize" => "/images/:imageID/s390x-initrd-addrsize",
        "/boot-artifacts/{name}" => match path {
            "/boot-artifacts/kernel" => "/boot-artifacts/kernel",
            "/boot-artifacts/rootfs" => "/boot-artifacts/rootfs",
            "/boot-artifacts/ins-file" => "/boot-artifacts/ins-file",
            _ => "/boot-artifacts/:name",
        },
        "/recipes/{digest}" => "/recipes/:sha256",
        "/recipes/{digest}/{name}" => "/recipes/:sha256/:name",
        route if route.starts_with("/byid/") => "/byid/:token",
        route if route.starts_with("/byapikey/") => "/byapikey/:token",
        route if route.starts_with("/bytoken/") => "/bytoken/:token",
        _ => "",
    }
}

/// A request until its last byte; recorded when it is dropped.
struct ImageMeasurement {
    handler: &'static str,
    method: &'static str,
    code: StatusCode,
    started: Instant,
    bytes: u64,
    in_flight: metrics::Gauge,
}

impl Drop for ImageMeasurement {
    fn drop(&mut self) {
        self.in_flight.decrement(1.0);
        let labels = [
            ("code", self.code.as_str().to_owned()),
            ("handler", self.handler.to_owned()),
            ("method", self.method.to_owned()),
            ("service", String::new()),
        ];
        metrics::histogram!(DURATION, &labels).record(self.started.elapsed().as_secs_f64());
        #[expect(clippy::cast_precision_loss, reason = "sizes are far below 2^53")]
        metrics::histogram!(SIZE, &labels).record(self.bytes as f64);
    }
}
