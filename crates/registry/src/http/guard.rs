//! Where the gate stands: before everything below `/v2/`, and at the place where passwords become tokens.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use oci::Repository;
use serde_json::json;
use service::server::ClientAddress;

use super::route::Route;
use super::state::App;
use crate::auth::{Access, Action, Credentials, Gate, Lack, TOKEN_LIFETIME_S, Users};
use crate::error::RegistryError;
use crate::observe::UserName;
use crate::origin::Origins;
use crate::upstream::Upstreams;

/// Where tokens are given. Source: distribution's own place for them.
pub(super) const TOKEN_PATH: &str = "/auth/token";

#[derive(Debug, Clone)]
pub(super) struct Guard {
    origins: Arc<Origins>,
    upstreams: Upstreams,
    pub(super) gate: Gate,
}

impl Guard {
    pub(super) fn new(app: &App, gate: Gate) -> Self {
        Self {
            origins: Arc::clone(&app.origins),
            upstreams: app.upstreams.clone(),
            gate,
        }
    }

    /// The users that get tokens for passwords; None with an external token service.
    pub(super) fn users(&self) -> Option<&Users> {
        match &self.gate {
            Gate::Users(users) => Some(users),
            Gate::Issuer(_) => None,
        }
    }
}

/// Lets a request through with its [`Access`], or refuses it; 401 always with a challenge.
pub(super) async fn check(State(guard): State<Guard>, request: Request, next: Next) -> Response {
    let (mut head, body) = request.into_parts();
    let credentials = Credentials::of(&head.headers);
    // Clients ask here whether they have to send anything at all, and send nothing ever after if not.
    let is_question = credentials == Credentials::None && head.uri.path() == "/v2/";
    let has_token = matches!(credentials, Credentials::Bearer(_));
    let admitted = match guard.gate.admit(credentials, address(&head)).await {
        Ok(access) if access.user().is_none() && is_question && !has_token => {
            Err(RegistryError::unauthorized())
        }
        admitted => admitted,
    };
    match admitted {
        // 403 where no login grants more: no challenge helps.
        Ok(access) if !access.may_get_more() => {
            let name = access.name();
            head.extensions.insert(access);
            signed(next.run(Request::from_parts(head, body)).await, name)
        }
        Ok(access) => {
            let challenge = challenge(&guard, &head, Some(Lack::Scope)).await;
            let name = access.name();
            head.extensions.insert(access);
            let response = next.run(Request::from_parts(head, body)).await;
            signed(challenged(response, challenge), name)
        }
        Err(refusal) => {
            let lack = has_token.then_some(Lack::Token);
            challenged(refusal.answer(), challenge(&guard, &head, lack).await)
        }
    }
}

/// `GET /auth/token`: a token in place of a password. Source: distribution's token protocol.
///
/// The requested scope is ignored: access is looked up with each request.
pub(super) async fn token(State(users): State<Users>, request: Request) -> Response {
    let head = request.into_parts().0;
    let credentials = Credentials::of(&head.headers);
    match users.token(credentials, address(&head)).await {
        Ok(token) => {
            let body = json!({ "token": token, "expires_in": TOKEN_LIFETIME_S });
            ([(header::CACHE_CONTROL, "no-store")], Json(body)).into_response()
        }
        Err(refusal) => challenged(refusal.answer(), Some(users.basic())),
    }
}

/// Errors: the user may not do that in the repository.
pub(super) fn authorize(
    access: &Access,
    route: &Route,
    method: &Method,
) -> Result<(), RegistryError> {
    match (route, need(route, method)) {
        // All of them reveal content of every repository.
        (Route::Gc | Route::Scrub | Route::Reindex | Route::Usage, _) => access.demand_everything(),
        (Route::Catalog, _) => access.demand_catalog(),
        (_, Some((repository, action))) => access.demand(repository, action),
        (_, None) => Ok(()),
    }
}

/// The access that a request needs; None outside of repositories.
fn need<'a>(route: &'a Route, method: &Method) -> Option<(&'a Repository, Action)> {
    match route {
        Route::Base
        | Route::Catalog
        | Route::Extensions
        | Route::Gc
        | Route::Scrub
        | Route::Reindex
        | Route::Usage => None,
        // Looking at one's upload and giving it up are parts of a push.
        Route::Uploads { name } | Route::Upload { name, .. } => Some((name, Action::Push)),
        Route::Referrers { name, .. }
        | Route::Tags { name }
        | Route::ManifestList { name }
        | Route::Manifest { name, .. }
        | Route::Blob { name, .. } => {
            let action = match *method {
                Method::GET | Method::HEAD => Action::Pull,
                Method::DELETE => Action::Delete,
                _ => Action::Push,
            };
            Some((name, action))
        }
    }
}

/// The challenge of a 401.
async fn challenge(guard: &Guard, head: &Parts, lack: Option<Lack>) -> Option<HeaderValue> {
    match &guard.gate {
        Gate::Issuer(issuer) => {
            let origin = guard.origins.absolute(head);
            issuer.challenge(origin.as_deref(), &scope(&guard.upstreams, head), lack)
        }
        // A password where nothing goes without one. Else a token, since there Docker has to send something from
        // the first request on, with or without a login, and of passwords it sends none or all.
        Gate::Users(users) if users.lets_in_anonymous().await => {
            bearer(guard, head).or_else(|| Some(users.basic()))
        }
        Gate::Users(users) => Some(users.basic()),
    }
}

fn bearer(guard: &Guard, head: &Parts) -> Option<HeaderValue> {
    let origin = guard.origins.absolute(head)?;
    let service = origin.split_once("://").map_or(&*origin, |(_, host)| host);
    let scope = match scope(&guard.upstreams, head) {
        scope if scope.is_empty() => scope,
        scope => format!(",scope=\"{scope}\""),
    };
    let text = format!("Bearer realm=\"{origin}{TOKEN_PATH}\",service=\"{service}\"{scope}");
    HeaderValue::from_str(&text).ok()
}

/// The scope of a request. Source: distribution, "Token Scope Documentation".
fn scope(upstreams: &Upstreams, head: &Parts) -> String {
    let Ok(route) = super::route(upstreams, head) else {
        return String::new();
    };
    match (&route, need(&route, &head.method)) {
        (Route::Catalog, _) => "registry:catalog:*".to_owned(),
        (Route::Gc | Route::Scrub | Route::Usage, _) => "registry:maintenance:*".to_owned(),
        (_, Some((repository, action))) => {
            let actions = match action {
                Action::Pull => "pull",
                Action::Push => "pull,push",
                Action::Delete => "delete",
            };
            format!("repository:{repository}:{actions}")
        }
        (_, None) => String::new(),
    }
}

pub(super) fn challenged(mut response: Response, challenge: Option<HeaderValue>) -> Response {
    if response.status() == StatusCode::UNAUTHORIZED
        && let Some(challenge) = challenge
    {
        let headers = response.headers_mut();
        headers.insert(header::WWW_AUTHENTICATE, challenge);
    }
    response
}

/// Adds the user's name for the access log.
pub(super) fn signed(mut response: Response, name: Option<Arc<str>>) -> Response {
    if let Some(name) = name {
        response.extensions_mut().insert(UserName(name));
    }
    response
}

/// The address that failed logins count for: the peer, or the one that a trusted proxy (`TRUSTED_PROXIES`) reports. Of
/// others, `X-Forwarded-For` would be a way around the throttle.
pub(super) fn address(head: &Parts) -> IpAddr {
    let client = head.extensions.get::<ClientAddress>();
    client.map_or(Ipv6Addr::UNSPECIFIED.into(), |client| client.ip)
}

/// Errors: the request did not pass authentication, which must not happen.
pub(super) fn access(head: &Parts) -> Result<&Access, RegistryError> {
    head.extensions
        .get()
        .ok_or_else(RegistryError::unauthorized)
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn each_request_has_its_action() {
        let digest = oci::Digest::sha256(b"");
        let upload = format!("/v2/a/blobs/uploads/{}", Uuid::nil());
        let need = |method: Method, path: &str| {
            let route = Route::of(&path.parse().unwrap()).unwrap();
            super::need(&route, &method).map(|(name, action)| (name.to_string(), action))
        };
        let is = |action| Some(("a".to_owned(), action));
        for path in [
            "/v2/a/tags/list",
            "/v2/_atoll/manifests?repository=a",
            "/v2/a/manifests/t",
            &format!("/v2/a/blobs/{digest}"),
            &format!("/v2/a/referrers/{digest}"),
        ] {
            assert_eq!(need(Method::GET, path), is(Action::Pull), "{path}");
            assert_eq!(need(Method::HEAD, path), is(Action::Pull), "{path}");
            assert_eq!(need(Method::PUT, path), is(Action::Push), "{path}");
            assert_eq!(need(Method::DELETE, path), is(Action::Delete), "{path}");
        }
        for method in [
            Method::GET,
            Method::POST,
            Method::PATCH,
            Method::PUT,
            Method::DELETE,
        ] {
            assert_eq!(
                need(method.clone(), "/v2/a/blobs/uploads/"),
                is(Action::Push)
            );
            assert_eq!(need(method, &upload), is(Action::Push));
        }
        for path in ["/v2/", "/v2/_catalog", "/v2/_oci/ext/discover"] {
            assert_eq!(need(Method::GET, path), None);
        }
    }
}
