//! The services that clients of catalogs call.

mod health;

use axum::Router;
use tonic::service::Routes;
use tonic_health::pb::health_server::HealthServer;
use tonic_reflection::server::Builder;

use crate::Catalog;
use health::Health;

/// Of `proto/registry.proto`; made by `cargo xtask codegen`.
const DESCRIPTORS: &[u8] = include_bytes!("descriptors.bin");

/// What the reflection services tell of.
const SERVICES: [&str; 5] = [
    "api.ExperimentalRegistry",
    "api.Registry",
    "grpc.health.v1.Health",
    "grpc.reflection.v1.ServerReflection",
    "grpc.reflection.v1alpha.ServerReflection",
];

/// Every service of one catalog.
pub fn router(catalog: &Catalog) -> Router {
    let health = HealthServer::new(Health::new(catalog.clone()));
    let mut routes = Routes::new(health);
    routes = routes.add_service(reflection().build_v1().expect("the descriptors are whole"));
    routes = routes.add_service(
        reflection()
            .build_v1alpha()
            .expect("the descriptors are whole"),
    );
    routes.prepare().into_axum_router()
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
