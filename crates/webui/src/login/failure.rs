//! Failures of a log-in, for people: cause and remedy. No text has a token, a code or a secret.

use http::StatusCode;

/// Longest error code of a provider that is shown. Units: bytes.
const CODE_BYTES: usize = 64;

/// A failure of a log-in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LogInFailure {
    /// Too many requests to the provider at once.
    Busy,
    /// The provider cannot be reached; the reason.
    ProviderAway(String),
    /// The provider's description or response does not fit; the reason.
    ProviderInvalid(String),
    /// The provider reports an error instead of a code; its code.
    Denied(String),
    /// No log-in of this browser has that state: another one, an expired or a used one.
    UnknownState,
    /// The provider refuses the authorization code; its error code.
    CodeRefused(String),
    /// The ID token is of the future or the past. Units: seconds, positive if the provider's clock is ahead.
    ClockSkew(i64),
    /// The provider's access token is no JWT.
    OpaqueToken,
    /// The installer API refuses the token; its reason.
    TokenRefused(String),
    /// The installer API gives no answer; its status.
    ApiUnavailable(StatusCode),
    /// The tokens do not fit into cookies.
    TooLarge,
    /// The posted form is longer than allowed.
    FormTooLarge,
    /// A request that changes something comes from another site.
    ForeignSite,
}

/// Text of a failure.
pub(super) struct FailureText {
    pub(super) status: StatusCode,
    /// The cause.
    pub(super) reason: String,
    /// The remedy.
    pub(super) remedy: &'static str,
}

impl LogInFailure {
    /// An error code of a provider, without characters that such codes do not have.
    pub(super) fn code(code: &str) -> String {
        let is_known = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        code.chars().filter(is_known).take(CODE_BYTES).collect()
    }

    pub(super) fn text(&self) -> FailureText {
        use StatusCode as S;
        let (status, reason, remedy) = match self {
            Self::Busy => (
                S::SERVICE_UNAVAILABLE,
                "Too many log-ins are in progress.".to_owned(),
                "Try again in a few seconds.",
            ),
            Self::ProviderAway(reason) => (
                S::SERVICE_UNAVAILABLE,
                format!("The OpenID provider cannot be reached: {reason}."),
                "Try again later. Administrators: check that this server reaches OIDC_ISSUER, and that OIDC_CA_FILE has \
                 the authority of its certificate.",
            ),
            Self::ProviderInvalid(reason) => (
                S::BAD_GATEWAY,
                format!("The OpenID provider's response does not fit: {reason}."),
                "Administrators: compare OIDC_ISSUER and OIDC_CLIENT_ID with the provider's configuration.",
            ),
            Self::Denied(code) => (
                S::FORBIDDEN,
                format!("The OpenID provider refused the log-in ({code})."),
                "Log in again, with a user who may use this client. Administrators: check the provider's client, its \
                 redirect URI (WEBUI_BASE_URL followed by /login/callback) and its scopes.",
            ),
            Self::UnknownState => (
                S::BAD_REQUEST,
                "This browser has no such log-in in progress: it was started elsewhere, is older than 10 minutes, or was \
                 used already."
                    .to_owned(),
                "Log in again, and allow cookies of this site.",
            ),
            Self::CodeRefused(code) => (
                S::UNAUTHORIZED,
                format!("The OpenID provider refused the authorization code ({code})."),
                "Log in again. Administrators: invalid_client means a wrong OIDC_CLIENT_ID or OIDC_CLIENT_SECRET.",
            ),
            Self::ClockSkew(seconds) => (
                S::BAD_GATEWAY,
                skew(*seconds),
                "Administrators: set both clocks by the same time source, then log in again.",
            ),
            Self::OpaqueToken => (
                S::BAD_GATEWAY,
                "The OpenID provider issued an opaque access token, which the installer API cannot verify.".to_owned(),
                "Administrators: let the provider issue JWTs as access tokens of this client. Some do so for a resource or \
                 audience alone: configure OIDC_AUDIENCE of the API server as the default one.",
            ),
            Self::TokenRefused(reason) => (
                S::FORBIDDEN,
                format!("The installer API refuses the token: {reason}."),
                "Use a token of `atoll token user`, or log in with another user. Administrators: compare OIDC_ISSUER, \
                 OIDC_AUDIENCE and OIDC_USERNAME_CLAIM of the API server with the claims of the access token.",
            ),
            Self::ApiUnavailable(status) => (
                S::SERVICE_UNAVAILABLE,
                format!("The installer API could not check the token: it answered {status}."),
                "Try again in a few seconds.",
            ),
            Self::TooLarge => (
                S::BAD_GATEWAY,
                "The tokens are longer than cookies may be.".to_owned(),
                "Administrators: let the provider issue tokens with fewer claims or roles.",
            ),
            Self::FormTooLarge => (
                S::PAYLOAD_TOO_LARGE,
                "The form is too long: a token has at most 8 KiB.".to_owned(),
                "Log in again.",
            ),
            Self::ForeignSite => (
                S::FORBIDDEN,
                "The request came from a page of another site.".to_owned(),
                "Use the pages of this server. Administrators: WEBUI_BASE_URL is the address in the browser.",
            ),
        };
        FailureText {
            status,
            reason,
            remedy,
        }
    }
}

fn skew(seconds: i64) -> String {
    let side = if seconds > 0 { "future" } else { "past" };
    let seconds = seconds.abs();
    format!(
        "The clocks of this server and of the OpenID provider differ: its token is {seconds} s in the {side}."
    )
}
