//! Token and headers with which a day-2 host asks its ignition endpoint.

use model::Error;
use model::host::IgnitionEndpointHttpHeadersParams;

use super::refusal::refuse;

/// Checks the bearer token, which is empty when it is to be removed; its text is shown nowhere.
///
/// A token has no `:`, so that none passes for a sealed value of the database.
/// Source: RFC 6750, section 2.1: b64token.
pub fn endpoint_token(token: &str) -> Result<(), Error> {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/".contains(&byte);
    let text = token.trim_end_matches('=');
    let is_b64token = !text.is_empty() && text.bytes().all(is_part);
    if token.is_empty() || is_b64token {
        return Ok(());
    }
    Err(Error::invalid(
        "ignition_endpoint_token",
        "is not a bearer token: give letters, digits and -._~+/ with = at the end only, without \"Bearer\" and line \
         breaks",
    ))
}

/// Checks names and values of headers; values are shown nowhere.
/// Source: RFC 9110, section 5: tokens and field values.
pub fn endpoint_headers(list: &[IgnitionEndpointHttpHeadersParams]) -> Result<(), Error> {
    const FIELD: &str = "ignition_endpoint_http_headers";
    for header in list {
        if !is_name(&header.key) {
            let remedy = "is not the name of a header: use letters, digits and '-'";
            return Err(refuse(FIELD, &header.key, remedy));
        }
        if !is_value(&header.value) {
            let key = &header.key;
            let reason = format!("has control characters in the value of {key}: leave them out");
            return Err(Error::invalid(FIELD, reason));
        }
    }
    Ok(())
}

fn is_name(name: &str) -> bool {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(is_token)
}

fn is_value(value: &str) -> bool {
    !value.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_have_a_name_and_one_line() {
        for (key, value, fits) in [
            ("X-Token", "a b", true),
            ("X-Token", "", true),
            ("", "a", false),
            ("X Token", "a", false),
            ("X:Token", "a", false),
            ("X-Token", "a\nb", false),
        ] {
            let header = IgnitionEndpointHttpHeadersParams {
                key: key.to_owned(),
                value: value.to_owned(),
            };
            let result = endpoint_headers(&[header]);
            assert_eq!(result.is_ok(), fits, "{key:?} {value:?}");
        }
    }

    #[test]
    fn tokens_are_bearer_tokens() {
        for token in ["", "abc.def", "eyJhbGciOiJub25lIn0.e30.", "Az09-._~+/=="] {
            assert!(endpoint_token(token).is_ok(), "{token:?}");
        }
        for token in [
            "secret\n",
            "Bearer secret",
            "secret:1",
            "atoll-sealed:c2VjcmV0",
            "sec=ret",
            "=",
            "s\u{e9}cret",
        ] {
            let error = endpoint_token(token).unwrap_err().to_string();
            assert!(!error.contains("secret"), "{token:?}: {error}");
        }
    }
}
