//! Services of the site beside the installer API: which there are, the catalog server's query API, the registry's API and
//! its certificates.

use std::path::PathBuf;

use axum::extract::Request;
use axum::middleware;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{any, get};
use axum::{Json, Router};
use http::{StatusCode, header};
use serde::Serialize;
use service::forward::{self, Forward};

use crate::registry::{self, RegistryApi};
use crate::settings::Settings;

/// Services that the UI shows or links to.
#[derive(Debug, Clone, Serialize)]
struct SiteServices {
    /// Whether a catalog server is configured; it may be stopped.
    catalogs: bool,
    /// URL of the registry's pages.
    registry: Option<String>,
    /// Whether the registry's API is below `/services/registry`; it may be stopped.
    registry_api: bool,
    /// Whether the registry's certificates can be downloaded.
    registry_ca: bool,
    /// URL of the site's downloads.
    downloads: Option<String>,
}

/// Services that requests are forwarded to.
pub(crate) struct SiteUpstreams {
    pub(crate) catalogs: Option<Forward>,
    pub(crate) registry: Option<RegistryApi>,
}

/// Name of the download.
const CA_NAME: &str = "registry-ca.crt";
const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
const END: &str = "-----END CERTIFICATE-----";

/// Routes below `/services`.
pub(crate) fn routes(settings: &Settings, site: SiteUpstreams) -> Router {
    let list = SiteServices {
        catalogs: site.catalogs.is_some(),
        registry: settings.registry_page_url.clone(),
        registry_api: site.registry.is_some(),
        registry_ca: settings.registry_ca_file.is_some(),
        downloads: settings.downloads_url.clone(),
    };
    let ca = settings.registry_ca_file.clone();
    let router = Router::new()
        .route("/", get(async || Json(list)))
        .route(&format!("/{CA_NAME}"), get(async || registry_ca(ca).await))
        .fallback(async || StatusCode::NOT_FOUND);
    let router = match site.registry {
        Some(registry) => router.merge(registry::routes(registry)),
        None => router,
    };
    match site.catalogs {
        Some(catalogs) => router.merge(
            Router::new()
                .route("/catalogs", any(forward::forward))
                .route("/catalogs/{*path}", any(forward::forward))
                .layer(middleware::map_request(without_credentials))
                .with_state(catalogs),
        ),
        None => router,
    }
}

/// Credentials are for the installer API: no other service gets them.
async fn without_credentials(mut request: Request) -> Request {
    for name in [header::AUTHORIZATION, header::COOKIE] {
        request.headers_mut().remove(name);
    }
    request
}

/// The certificates in the file as it is now: it changes when they are renewed.
async fn registry_ca(path: Option<PathBuf>) -> Response {
    let Some(path) = path else {
        return StatusCode::NOT_FOUND.into_response();
    };
    match tokio::fs::read_to_string(&path).await {
        Ok(text) => (
            [
                (
                    header::CONTENT_TYPE,
                    "application/x-x509-ca-cert".to_owned(),
                ),
                (
                    header::CONTENT_DISPOSITION,
                    format!("attachment; filename=\"{CA_NAME}\""),
                ),
            ],
            certificates(&text),
        )
            .into_response(),
        Err(error) => {
            tracing::error!(path = %path.display(), %error, "REGISTRY_CA_FILE cannot be read");
            StatusCode::SERVICE_UNAVAILABLE.into_response()
        }
    }
}

/// The certificates of a PEM file, without its other content: it may have a private key, too.
fn certificates(pem: &str) -> String {
    let mut found = String::new();
    let mut is_inside = false;
    for line in pem.lines() {
        is_inside |= line.trim_end() == BEGIN;
        if is_inside {
            found.push_str(line.trim_end());
            found.push('\n');
        }
        is_inside &= line.trim_end() != END;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_keys_are_not_sent() {
        let certificate = format!("{BEGIN}\nAAAA\n{END}\n");
        let pem = format!(
            "comment\n{certificate}-----BEGIN PRIVATE KEY-----\nBBBB\n-----END PRIVATE KEY-----\n{certificate}"
        );
        assert_eq!(certificates(&pem), certificate.repeat(2));
        assert_eq!(certificates("BBBB"), "");
    }
}
