//! Route table: the handler of each operation.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{Uri, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, delete, get, patch, post, put};
use service::health::Health;
use service::layers::RequestId;
use tokio_util::task::TaskTracker;
use tower_http::compression::predicate::Predicate;
use tower_http::compression::{CompressionLayer, CompressionLevel};

use crate::app::App;
use crate::app::request::{self, RequestProperties};
use crate::db::Database;
use crate::http::access::{AccessLayer, check_access};
use crate::http::error::{ApiError, method_not_allowed, path_not_found};
use crate::http::extract::{BODY_LIMIT, REPLY_LIMIT, check_accept};
use crate::http::{
    agent, audit, bmc_boots, clusters, declarations, dry_run, events, expected_hosts, explain,
    files, hosts, infra_envs, installation, installed_nodes, jobs, log_in_codes, logs, manifests,
    operator_catalogs, operators, os_images, registry_events, release_images, site_checks, support,
    versions,
};
use crate::openapi;
use crate::operations::{BASE, OPERATIONS, Operation};
use crate::settings::Settings;

/// Path for image services: no operation of the API, as they have no credentials.
const HELD_OS_IMAGES: &str = "/os-images";
/// Path for the registry's notifications: no operation of the API, as it has no credentials here.
const REGISTRY_EVENTS: &str = "/registry-events";
/// Path for the web UI's server: no operation of the API, as the code is all that the caller has.
const LOG_IN_CODES: &str = "/log-in-codes";

/// The handler of an operation.
fn handler(id: &str) -> Option<MethodRouter<App>> {
    cluster_handler(id)
        .or_else(|| installation_handler(id))
        .or_else(|| infra_env_handler(id))
        .or_else(|| host_handler(id))
        .or_else(|| job_handler(id))
        .or_else(|| other_handler(id))
}

fn cluster_handler(id: &str) -> Option<MethodRouter<App>> {
    Some(match id {
        "v2RegisterCluster" => post(clusters::register),
        "v2ImportCluster" => post(clusters::import),
        "v2RegisterDisconnectedCluster" => post(clusters::register_disconnected),
        "TransformClusterToDay2" | "TransformClusterToAddingHosts" => {
            post(clusters::allow_add_hosts)
        }
        "v2ListClusters" => get(clusters::list),
        "v2GetCluster" => get(clusters::get),
        "explainCluster" => get(explain::cluster),
        "V2UpdateCluster" => patch(clusters::update),
        "v2DeregisterCluster" => delete(clusters::deregister),
        "ListClusterHosts" => get(clusters::hosts),
        "V2GetClusterDefaultConfig" => get(clusters::default_config),
        "v2GetPreflightRequirements" => get(clusters::preflight_requirements),
        "V2GetClusterUISettings" => get(clusters::ui_settings),
        "V2UpdateClusterUISettings" => put(clusters::set_ui_settings),
        "v2GetIgnoredValidations" => get(clusters::ignored_validations),
        "v2SetIgnoredValidations" => put(clusters::set_ignored_validations),
        "V2ListClusterManifests" => get(manifests::list),
        "V2CreateClusterManifest" => post(manifests::create),
        "V2UpdateClusterManifest" => patch(manifests::update),
        "V2DeleteClusterManifest" => delete(manifests::delete),
        "v2DownloadClusterManifest" => get(manifests::download),
        "V2ListOfClusterOperators" => get(operators::list),
        "v2ReportMonitoredOperatorStatus" => put(operators::report),
        "GetClusterSupportedPlatforms" => get(support::platforms),
        _ => return None,
    })
}

fn installation_handler(id: &str) -> Option<MethodRouter<App>> {
    Some(match id {
        "v2InstallCluster" => post(installation::install),
        "V2CancelInstallation" => post(installation::cancel),
        "v2ResetCluster" => post(installation::reset),
        "v2CompleteInstallation" => post(installation::complete),
        "v2UpdateClusterFinalizingProgress" => put(installation::finalizing_progress),
        "v2UploadClusterIngressCert" => post(installation::ingress_cert),
        "V2GetCredentials" => get(installation::credentials),
        "V2DownloadClusterFiles" => get(files::cluster_file),
        "V2DownloadClusterCredentials" => get(files::cluster_credentials),
        "v2DownloadHostIgnition" => get(files::host_ignition),
        "V2GetPresignedForClusterFiles" => get(files::cluster_file_link),
        "V2GetPresignedForClusterCredentials" => get(files::cluster_credentials_link),
        "v2GetClusterInstallConfig" => get(installation::install_config),
        "v2UpdateClusterInstallConfig" => patch(installation::update_install_config),
        // Archives are streamed to disk, where their own limit applies.
        "V2UploadLogs" => post(logs::upload).layer(DefaultBodyLimit::disable()),
        "V2DownloadClusterLogs" => get(logs::download),
        "v2UpdateClusterLogsProgress" => put(logs::cluster_progress),
        "v2UpdateHostLogsProgress" => put(logs::host_progress),
        "listInstalledNodes" => get(installed_nodes::list),
        "getNodeReplacement" => get(installed_nodes::replacement),
        "planNodeReplacement" => post(installed_nodes::plan),
        _ => return None,
    })
}

fn infra_env_handler(id: &str) -> Option<MethodRouter<App>> {
    Some(match id {
        "RegisterInfraEnv" => post(infra_envs::register),
        "ListInfraEnvs" => get(infra_envs::list),
        "GetInfraEnv" => get(infra_envs::get),
        "UpdateInfraEnv" => patch(infra_envs::update),
        "DeregisterInfraEnv" => delete(infra_envs::deregister),
        "GetInfraEnvDownloadURL" => get(infra_envs::download_url),
        "GetInfraEnvPresignedFileURL" => get(infra_envs::file_url),
        "v2DownloadInfraEnvFiles" => get(infra_envs::download_file),
        "DownloadMinimalInitrd" => get(infra_envs::minimal_initrd),
        "applyDeclaration" => post(declarations::apply_new),
        "applyToInfraEnv" => post(declarations::apply),
        "exportDeclaration" => get(declarations::export),
        "getExpectedHosts" => get(expected_hosts::get),
        "setExpectedHosts" => put(expected_hosts::set),
        "deleteExpectedHosts" => delete(expected_hosts::delete),
        "startBmcBoots" => post(bmc_boots::start),
        "listBmcBoots" => get(bmc_boots::list),
        "cancelBmcBoots" => delete(bmc_boots::cancel),
        "RegenerateInfraEnvSigningKey" => post(infra_envs::regenerate_signing_key),
        _ => return None,
    })
}

fn host_handler(id: &str) -> Option<MethodRouter<App>> {
    Some(match id {
        "v2RegisterHost" => post(agent::register),
        "v2GetNextSteps" => get(agent::next_steps),
        "v2PostStepReply" => post(agent::step_reply).layer(DefaultBodyLimit::max(REPLY_LIMIT)),
        "v2UpdateHostInstallProgress" => put(agent::progress),
        "v2ListHosts" => get(hosts::list),
        "v2GetHost" => get(hosts::get),
        "v2UpdateHost" => patch(hosts::update),
        "BindHost" => post(hosts::bind),
        "UnbindHost" => post(hosts::unbind),
        "v2InstallHost" => post(hosts::install),
        "v2ResetHost" => post(hosts::reset),
        "v2ResetHostValidation" => patch(hosts::reset_validation),
        "v2GetHostIgnition" => get(hosts::ignition),
        "v2DeregisterHost" => delete(hosts::deregister),
        "v2UpdateHostInstallerArgs" => patch(hosts::installer_args),
        "v2UpdateHostIgnition" => patch(hosts::ignition_override),
        _ => return None,
    })
}

fn job_handler(id: &str) -> Option<MethodRouter<App>> {
    Some(match id {
        "listReleaseImages" => get(release_images::list),
        "listOsImages" => get(os_images::list),
        "listOperatorCatalogs" => get(operator_catalogs::list),
        "listArchives" => get(jobs::archives),
        "listRehearsalOptions" => get(jobs::rehearsal_options),
        "createJob" => post(jobs::create),
        "listJobs" => get(jobs::list),
        "getJob" => get(jobs::get),
        "deleteJob" => delete(jobs::delete),
        "cancelJob" => post(jobs::cancel),
        "downloadJobFile" => get(jobs::file),
        _ => return None,
    })
}

fn other_handler(id: &str) -> Option<MethodRouter<App>> {
    Some(match id {
        "exportAuditRecords" => get(audit::export),
        "checkSite" => get(site_checks::get),
        "v2ListEvents" => get(events::list),
        "v2TriggerEvent" => post(events::trigger),
        "streamEvents" => get(events::stream),
        "listExplanations" => get(explain::list),
        "v2ListSupportedOpenshiftVersions" => get(versions::list),
        "v2ListComponentVersions" => get(versions::components),
        "v2ListReleaseSources" => get(versions::release_sources),
        "V2ListManagedDomains" => get(versions::managed_domains),
        "GetSupportedFeatures" => get(support::features),
        "GetDetailedSupportedFeatures" => get(support::detailed_features),
        "GetSupportedArchitectures" => get(support::architectures),
        "V2ListSupportedOperators" => get(operators::supported),
        "V2ListOperatorProperties" => get(operators::properties),
        "V2ListBundles" => get(operators::bundles),
        "V2GetBundle" => get(operators::bundle),
        _ => return None,
    })
}

/// The server's router.
pub(crate) fn router(app: App, health: Health) -> Router {
    let mut paths: BTreeMap<&'static str, Vec<&'static Operation>> = BTreeMap::new();
    for operation in OPERATIONS {
        paths.entry(operation.path).or_default().push(operation);
    }
    let settings: Arc<Settings> = app.part();
    let serves_metrics = settings.http.metrics_on_public_port;
    let gate = Arc::new(Gate {
        db: app.part(),
        requests: app.part(),
    });
    let mut api = Router::new();
    for (path, operations) in paths {
        api = api.route(&format!("{BASE}{path}"), path_router(&app, &operations));
    }
    let api = api
        .route(HELD_OS_IMAGES, get(os_images::held))
        .route(REGISTRY_EVENTS, post(registry_events::receive))
        .route(LOG_IN_CODES, post(log_in_codes::redeem))
        .layer(DefaultBodyLimit::max(BODY_LIMIT))
        .route_layer(middleware::from_fn_with_state(gate, check_schema))
        .with_state(app)
        .fallback(|uri: Uri| async move { path_not_found(uri.path()) });
    let compression = CompressionLayer::new()
        .quality(CompressionLevel::Fastest)
        .compress_when(IsLongJson);
    let all = api
        .merge(service::health::routes(health, serves_metrics))
        .merge(openapi::routes())
        .layer(middleware::from_fn(
            service::server::count_before_compression,
        ))
        .layer(compression);
    let observed = service::layers::apply(all, "api-server");
    // Slashes are normalized before routing.
    Router::new().fallback_service(tower::util::MapRequest::new(
        observed,
        normalize_slashes::<axum::body::Body>,
    ))
}

/// The handlers of one path; 405 for other methods.
fn path_router(app: &App, operations: &[&'static Operation]) -> MethodRouter<App> {
    let mut methods: Vec<_> = operations
        .iter()
        .map(|operation| operation.method)
        .collect();
    methods.sort_unstable();
    let allowed = methods.join(",");
    let mut router = MethodRouter::new();
    for operation in operations.iter().copied() {
        // A test keeps handlers and operations equal.
        let Some(handler) = handler(operation.id) else {
            continue;
        };
        let negotiated = handler.layer(middleware::from_fn(
            move |request: Request, next: Next| async move {
                let checked = check_accept(request.headers(), operation.content)
                    .and_then(|()| dry_run::check(request.uri(), operation));
                match checked {
                    Ok(()) => next.run(request).await,
                    Err(refusal) => refusal.into_response(),
                }
            },
        ));
        let state = AccessLayer {
            access: app.part(),
            audit: app.part(),
            operation,
        };
        router =
            router.merge(negotiated.layer(middleware::from_fn_with_state(state, check_access)));
    }
    router.fallback(move |request: Request| async move {
        method_not_allowed(request.method().as_str(), &allowed)
    })
}

/// Smallest compressed response: shorter ones, such as replies to polls, gain nothing. Units: bytes.
const COMPRESSION_MIN_BYTES: u64 = 4096;

/// Responses that may be compressed: long JSON. Downloads are not, as they have a Content-Length.
#[derive(Debug, Clone, Copy)]
struct IsLongJson;

impl Predicate for IsLongJson {
    fn should_compress<B: axum::body::HttpBody>(&self, response: &axum::http::Response<B>) -> bool {
        let kind = response.headers().get(header::CONTENT_TYPE);
        let length = response.body().size_hint().lower();
        length >= COMPRESSION_MIN_BYTES && kind.is_some_and(|kind| kind == "application/json")
    }
}

/// State of [`check_schema`].
#[derive(Debug)]
struct Gate {
    db: Database,
    /// In-flight requests: the pool closes after they are drained.
    requests: TaskTracker,
}

/// Responds 503 until the schema is migrated: agents stop polling after 401, 403, 404 and 409.
///
/// Source: openshift/assisted-installer-agent, `src/commands/register_node.go`.
async fn check_schema(State(gate): State<Arc<Gate>>, request: Request, next: Next) -> Response {
    if let Err(error) = gate.db.pool() {
        return ApiError::Domain(error).into_response();
    }
    let _counted = gate.requests.token();
    let id = request
        .extensions()
        .get::<RequestId>()
        .map_or_else(uuid::Uuid::new_v4, |id| id.0);
    let is_dry_run = match dry_run::is_requested(request.uri()) {
        Ok(is_dry_run) => is_dry_run,
        Err(refusal) => return refusal.into_response(),
    };
    let properties = RequestProperties { id, is_dry_run };
    let response = request::scope(properties, next.run(request)).await;
    if is_dry_run {
        return dry_run::mark(response);
    }
    response
}

/// Merges repeated slashes and removes the trailing one: some clients send both.
fn normalize_slashes<B>(mut request: axum::http::Request<B>) -> axum::http::Request<B> {
    let path = request.uri().path();
    if !path.contains("//") && (path.len() == 1 || !path.ends_with('/')) {
        return request;
    }
    let mut normalized = String::with_capacity(path.len());
    for part in path.split('/').filter(|part| !part.is_empty()) {
        normalized.push('/');
        normalized.push_str(part);
    }
    if normalized.is_empty() {
        normalized.push('/');
    }
    if let Some(query) = request.uri().query() {
        normalized.push('?');
        normalized.push_str(query);
    }
    let mut parts = request.uri().clone().into_parts();
    if let Ok(path_and_query) = normalized.parse() {
        parts.path_and_query = Some(path_and_query);
        if let Ok(uri) = Uri::from_parts(parts) {
            *request.uri_mut() = uri;
        }
    }
    request
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_has_a_handler() {
        for operation in OPERATIONS {
            assert!(handler(operation.id).is_some(), "{}", operation.id);
        }
    }

    #[test]
    fn slashes_are_normalized() {
        for (given, expected) in [
            ("/a/b", "/a/b"),
            ("/a/b/", "/a/b"),
            ("/a//b", "/a/b"),
            ("//a///b//?x=//", "/a/b?x=//"),
            ("/", "/"),
            ("//", "/"),
        ] {
            let request = axum::http::Request::builder().uri(given).body(()).unwrap();
            assert_eq!(
                normalize_slashes(request).uri().to_string(),
                expected,
                "{given}"
            );
        }
    }
}
