//! Credentials of requests, and sessions.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::HeaderMap;
use hyper::header::AUTHORIZATION;
use serde_json::{Value, json};
use uuid::Uuid;

use super::answer::BmcAnswer;
use super::simulated::SimulatedBmc;
use super::state::CredentialUse;

/// Header of a session's token.
pub(super) const TOKEN: &str = "x-auth-token";
/// Path of the sessions.
pub(super) const SESSIONS: &str = "/redfish/v1/SessionService/Sessions";

/// The credentials in the headers of a request.
pub(super) fn credentials(headers: &HeaderMap) -> CredentialUse {
    if headers.contains_key(TOKEN) {
        CredentialUse::Session
    } else if headers.contains_key(AUTHORIZATION) {
        CredentialUse::Basic
    } else {
        CredentialUse::None
    }
}

/// Whether the credentials of a request are right. Wrong ones are counted.
pub(super) fn is_authorized(bmc: &SimulatedBmc, headers: &HeaderMap) -> bool {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let mut state = bmc.state();
    let is_right = match credentials(headers) {
        CredentialUse::None => false,
        CredentialUse::Session => {
            let token = text(TOKEN).unwrap_or_default();
            return state.tokens().contains(token);
        }
        CredentialUse::Basic => {
            let expected = STANDARD.encode(format!("{}:{}", bmc.user, bmc.password));
            text("authorization") == Some(&format!("Basic {expected}"))
        }
    };
    state.refused_logins += u32::from(!is_right);
    is_right
}

/// Opens a session.
pub(super) fn log_in(bmc: &SimulatedBmc, body: &Value) -> BmcAnswer {
    let mut state = bmc.state();
    let is_right =
        body["UserName"] == bmc.user.as_str() && body["Password"] == bmc.password.as_str();
    if !is_right {
        state.refused_logins += 1;
        return BmcAnswer::error(
            401,
            "InvalidCredentials",
            "the credentials are not valid",
            &[],
        );
    }
    let token = Uuid::new_v4().simple().to_string();
    let id = state.add_session(token.clone());
    let path = format!("{SESSIONS}/{id}");
    BmcAnswer::json(
        201,
        json!({ "@odata.id": path, "Id": id.to_string(), "UserName": bmc.user }),
    )
    .with_header("X-Auth-Token", &token)
    .with_header("Location", &path)
}

/// Ends a session.
pub(super) fn log_out(bmc: &SimulatedBmc, id: &str) -> BmcAnswer {
    let id = id.parse().unwrap_or_default();
    match bmc.state().sessions.remove(&id) {
        Some(_) => BmcAnswer::empty(204),
        None => BmcAnswer::not_found(),
    }
}
