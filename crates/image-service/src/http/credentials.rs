//! Credentials of a request: passed on to the installer API, never verified here.

use axum::http::{HeaderMap, header};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use serde::Deserialize;
use uuid::Uuid;

use super::error::ErrorResponse;
use crate::installer_api::RequestCredentials;

/// Claims of a token that name its infra-env. Source: assisted-image-service reads `sub`, else `infra_env_id`.
#[derive(Deserialize)]
struct Claims {
    sub: Option<String>,
    infra_env_id: Option<String>,
}

/// Credentials of a request without a token in its path; the first of the three wins. Source: assisted-image-service.
pub(super) fn of_request(
    api_key: Option<String>,
    image_token: Option<String>,
    headers: &HeaderMap,
) -> RequestCredentials {
    if let Some(key) = api_key {
        return RequestCredentials::ApiKey(key);
    }
    if let Some(token) = image_token {
        return RequestCredentials::ImageToken(token);
    }
    headers
        .get(header::AUTHORIZATION)
        .map_or(RequestCredentials::None, |value| {
            RequestCredentials::Authorization(value.clone())
        })
}

/// An infra-env id of a path: lower case, with hyphens.
///
/// Errors: `Path` for anything else.
pub(super) fn infra_env_id(text: &str) -> Result<Uuid, ErrorResponse> {
    let id = Uuid::parse_str(text).ok();
    let id = id.filter(|id| id.to_string() == text);
    id.ok_or_else(|| {
        let reason =
            format!("{text:?} is not the id of an infra-env; expected a UUID in lower case");
        ErrorResponse::Path(reason)
    })
}

/// The infra-env of a token. The installer API verifies its signature.
///
/// Errors: `Path` when the token names none.
pub(super) fn infra_env_of_token(token: &str) -> Result<Uuid, ErrorResponse> {
    let refuse = |why: &str| ErrorResponse::Path(format!("the token in the URL {why}"));
    let mut parts = token.split('.');
    let payload = match (parts.next(), parts.next(), parts.next()) {
        (Some(_), Some(payload), Some(_)) => payload.trim_end_matches('='),
        _ => return Err(refuse("is not a JWT")),
    };
    let json = URL_SAFE_NO_PAD
        .decode(payload)
        .or_else(|_| STANDARD_NO_PAD.decode(payload))
        .map_err(|_| refuse("has a payload that is not base64"))?;
    let claims: Claims =
        serde_json::from_slice(&json).map_err(|_| refuse("has a payload that is not JSON"))?;
    let id = claims.sub.or(claims.infra_env_id);
    let id = id.ok_or_else(|| refuse("has neither sub nor infra_env_id"))?;
    infra_env_id(&id)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0d7c0a52-9b9d-4f7c-9d0a-0d9b6f7f0a01";

    fn token(claims: &str) -> String {
        format!("head.{}.signature", URL_SAFE_NO_PAD.encode(claims))
    }

    #[test]
    fn tokens_name_their_infra_env() {
        for claim in ["sub", "infra_env_id"] {
            let claims = format!(r#"{{"{claim}":"{ID}","exp":1}}"#);
            assert_eq!(infra_env_of_token(&token(&claims)).unwrap().to_string(), ID);
            let standard = format!("h.{}.s", STANDARD_NO_PAD.encode(&claims));
            assert_eq!(infra_env_of_token(&standard).unwrap().to_string(), ID);
        }
    }

    #[test]
    fn other_texts_name_none() {
        for text in [
            "",
            "abc",
            "a.b",
            "a.!.c",
            "a.YQ.c",
            &token("{}"),
            &token(r#"{"sub":"x"}"#),
        ] {
            assert!(
                matches!(infra_env_of_token(text), Err(ErrorResponse::Path(_))),
                "{text}"
            );
        }
        assert!(infra_env_id(&ID.to_uppercase()).is_err());
    }
}
