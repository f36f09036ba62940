//! Authentication of requests: by session, or by user name and password in each.

use reqwest::header::HeaderValue;
use reqwest::{Method, RequestBuilder};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::json;

use super::access::BmcCredentials;
use super::document::RedfishDocument;
use super::error::BmcError;
use super::http::{RedfishReply, RedfishRequest, SESSION_TOKEN};
use super::link::RedfishPath;

/// The state of a login.
#[derive(Debug)]
pub(super) enum Authentication {
    /// The root of the service needs none.
    Anonymous,
    /// A session. `path` is for its end.
    Session {
        token: SecretString,
        path: Option<RedfishPath>,
    },
    /// User name and password in each request.
    Basic,
}

impl Authentication {
    /// Adds the credentials to a request.
    pub(super) fn apply(
        &self,
        builder: RequestBuilder,
        credentials: &BmcCredentials,
    ) -> RequestBuilder {
        match self {
            Self::Anonymous => builder,
            Self::Basic => {
                let password = credentials.password.expose_secret();
                builder.basic_auth(&credentials.user, Some(password))
            }
            Self::Session { token, .. } => {
                // A token came in a header, and fits into one.
                let Ok(mut value) = HeaderValue::from_str(token.expose_secret()) else {
                    return builder;
                };
                value.set_sensitive(true);
                builder.header(SESSION_TOKEN, value)
            }
        }
    }

    /// The session in the answer to a login; none without a token.
    pub(super) fn of_reply(reply: RedfishReply, root: &RedfishDocument) -> Option<Self> {
        let token = reply.token?;
        let in_body = reply.body["@odata.id"].as_str().map(str::to_owned);
        let location = reply.location.or(in_body);
        let path = location.and_then(|it| RedfishPath::of_location(&it, &root.origin));
        Some(Self::Session { token, path })
    }
}

/// The collection of sessions; none on BMCs without sessions.
///
/// Errors: ForeignLink.
pub(super) fn sessions(root: &RedfishDocument) -> Result<Option<RedfishPath>, BmcError> {
    root.link("/Links/Sessions")
}

/// The request for a session.
pub(super) fn login(sessions: &RedfishPath, credentials: &BmcCredentials) -> RedfishRequest {
    let body = json!({
        "UserName": credentials.user,
        "Password": credentials.password.expose_secret(),
    });
    RedfishRequest::new(Method::POST, sessions, Some(body))
}

/// Whether a failed login leaves the account usable by user name and password in each request.
///
/// A refused password (401) is not sent a second time in another form, since BMCs lock accounts.
pub(super) fn falls_back_to_basic(error: &BmcError) -> bool {
    matches!(
        error,
        BmcError::NotFound { .. }
            | BmcError::Forbidden { .. }
            | BmcError::Refused { .. }
            | BmcError::Busy { .. }
    )
}
