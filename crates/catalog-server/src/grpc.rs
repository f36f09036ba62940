//! The services that clients of catalogs call.
//!
//! The catalog's own are written upon HTTP: their answers lie framed in the cache, and go from there to the connection
//! without being decoded or copied. The others are tonic's.

mod experimental;
mod gzip;
mod health;
mod metrics;
mod quote;
mod registry;
mod reply;
mod wire;

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, Response, StatusCode};
use axum::response::IntoResponse as _;
use axum::routing::post;
use catalog::api::{ListBundlesRequest, ListPackageRequest};
use catalog::cache::{CatalogCache, Slices};
use prost::Message;
use service::CancellationToken;
use tonic::Status;
use tonic::service::Routes;
use tonic_health::pb::health_server::HealthServer;
use tonic_reflection::server::Builder;

use crate::ServedCatalog;
use health::Health;
use metrics::Meter;
use wire::GrpcCall;

/// Of `proto/registry.proto`; made by `cargo xtask codegen`.
const DESCRIPTORS: &[u8] = include_bytes!("grpc/descriptors.bin");
/// Units: bytes. Requests are names: clients' libraries have the same bound.
const MAX_REQUEST: usize = 4 << 20;

/// What the reflection services tell of.
const SERVICES: [&str; 5] = [
    "api.ExperimentalRegistry",
    "api.Registry",
    "grpc.health.v1.Health",
    "grpc.reflection.v1.ServerReflection",
    "grpc.reflection.v1alpha.ServerReflection",
];

/// How calls are bounded.
#[derive(Debug, Clone)]
pub struct GrpcOptions {
    /// Units: bytes. Of the longest message of a request.
    pub max_request: usize,
    /// Ends calls that have no end of their own.
    pub shutdown: CancellationToken,
}

impl Default for GrpcOptions {
    fn default() -> Self {
        Self {
            max_request: MAX_REQUEST,
            shutdown: CancellationToken::new(),
        }
    }
}

/// Every service of one catalog.
pub fn router(catalog: &ServedCatalog, options: &GrpcOptions) -> Router {
    let limit = options.max_request;
    let health = Health::new(catalog.clone(), options.shutdown.clone());
    let mut routes = Routes::new(HealthServer::new(health).max_decoding_message_size(limit));
    let whole = "the descriptors are whole";
    routes = routes.add_service(reflection().build_v1().expect(whole));
    routes = routes.add_service(reflection().build_v1alpha().expect(whole));
    let services = Services { catalog, limit };
    services.add_to(routes.prepare().into_axum_router())
}

fn reflection() -> Builder<'static> {
    let builder = Builder::configure()
        .register_encoded_file_descriptor_set(DESCRIPTORS)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        .register_encoded_file_descriptor_set(tonic_reflection::pb::v1::FILE_DESCRIPTOR_SET)
        .register_encoded_file_descriptor_set(tonic_reflection::pb::v1alpha::FILE_DESCRIPTOR_SET);
    SERVICES
        .into_iter()
        .fold(builder, Builder::with_service_name)
}

/// What the catalog's own services need.
struct Services<'a> {
    catalog: &'a ServedCatalog,
    limit: usize,
}

impl Services<'_> {
    fn add_to(&self, router: Router) -> Router {
        let router = self.registry(router);
        let name = "ExperimentalListPackageCustomSchemas";
        let answer = experimental::list_package_custom_schemas;
        let router = self.call(router, "api.ExperimentalRegistry", name, answer);
        router.fallback(unknown)
    }

    fn registry(&self, mut router: Router) -> Router {
        macro_rules! calls {
            ($($name:literal: $answer:expr,)*) => {
                $(router = self.call(router, "api.Registry", $name, $answer);)*
            };
        }
        calls! {
            "ListPackages": |cache, _: &GrpcCall<ListPackageRequest>| Ok(cache.list_packages()),
            "GetPackage": registry::get_package,
            "GetBundle": registry::get_bundle,
            "GetBundleForChannel": registry::get_bundle_for_channel,
            "GetChannelEntriesThatReplace": registry::get_channel_entries_that_replace,
            "GetBundleThatReplaces": registry::get_bundle_that_replaces,
            "GetChannelEntriesThatProvide": registry::get_channel_entries_that_provide,
            "GetLatestChannelEntriesThatProvide": registry::get_latest_channel_entries_that_provide,
            "GetDefaultBundleThatProvides": registry::get_default_bundle_that_provides,
            "ListBundles": |cache, _: &GrpcCall<ListBundlesRequest>| Ok(cache.list_bundles()),
        }
        router
    }

    /// Adds the call of `service` that is named so.
    fn call<M: Message + Default + 'static>(
        &self,
        router: Router,
        service: &str,
        name: &'static str,
        answer: fn(&Arc<CatalogCache>, &GrpcCall<M>) -> Result<Slices, Status>,
    ) -> Router {
        let (catalog, limit) = (self.catalog.clone(), self.limit);
        let meter = Meter::new(name);
        let handler = move |request: Request<Body>| async move {
            if !wire::is_call(request.headers()) {
                return StatusCode::UNSUPPORTED_MEDIA_TYPE.into_response();
            }
            let measured = meter.start();
            let answered = async {
                let call = GrpcCall::read(request, limit).await?;
                let cache = catalog.current();
                let cache = cache.ok_or_else(|| Status::unavailable("no catalog is there yet"))?;
                Ok((answer(&cache, &call)?, call.is_compressed))
            };
            match answered.await {
                Ok((slices, is_compressed)) => reply::answer(slices, is_compressed, measured),
                Err(status) => reply::refuse(&status, measured),
            }
        };
        router.route(&format!("/{service}/{name}"), post(handler))
    }
}

async fn unknown(request: Request<Body>) -> Response<Body> {
    let path = request.uri().path().trim_start_matches('/');
    let text = match path.split_once('/') {
        Some((service, method)) if SERVICES.contains(&service) => {
            format!("unknown method {method} for service {service}")
        }
        Some((service, _)) => format!("unknown service {service}"),
        None => format!("malformed method name: {path:?}"),
    };
    Status::unimplemented(text).into_http()
}
