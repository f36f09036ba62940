//! Dry runs: the parameter `dry_run`, which changing operations accept or refuse, and never ignore.

use axum::http::{HeaderName, HeaderValue, Uri};
use axum::response::Response;

use super::error::ApiError;
use crate::operations::Operation;

/// Name of the query parameter, and in lower case with a hyphen of the response's header.
pub(crate) const DRY_RUN: &str = "dry_run";
/// Header of responses to dry runs: a client detects a server that does not know the parameter.
const HEADER: HeaderName = HeaderName::from_static("dry-run");

/// Whether a request is a dry run.
///
/// Errors: a value that is neither true nor false, as a typing error must not write.
pub(crate) fn is_requested(uri: &Uri) -> Result<bool, ApiError> {
    let query = uri.query().unwrap_or_default();
    let mut is_dry_run = false;
    for (key, value) in url::form_urlencoded::parse(query.as_bytes()) {
        if key != DRY_RUN {
            continue;
        }
        match value.as_ref() {
            "true" => is_dry_run = true,
            "false" => {}
            other => {
                let problem = format!("should be true or false: {other:?}");
                return Err(ApiError::parameter(DRY_RUN, "query", problem));
            }
        }
    }
    Ok(is_dry_run)
}

/// Refuses a dry run of an operation that would write.
pub(crate) fn check(uri: &Uri, operation: &Operation) -> Result<(), ApiError> {
    let is_harmless = operation.accepts_dry_run || operation.method == "GET";
    if is_harmless || !is_requested(uri)? {
        return Ok(());
    }
    let problem = format!(
        "is not accepted by {}: send the request without it",
        operation.id
    );
    Err(ApiError::parameter(DRY_RUN, "query", problem))
}

/// Marks the response to a dry run.
pub(crate) fn mark(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(HEADER, HeaderValue::from_static("true"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::OPERATIONS;

    fn uri(query: &str) -> Uri {
        format!("/v2/clusters?{query}").parse().unwrap()
    }

    #[test]
    fn only_true_and_false_are_accepted() {
        for (query, expected) in [
            ("", Some(false)),
            ("dry_run=true", Some(true)),
            ("dry_run=false", Some(false)),
            ("dry_run=false&dry_run=true", Some(true)),
            ("dry_run=True", None),
            ("dry_run=1", None),
            ("dry_run", None),
            ("dry_run=ture", None),
        ] {
            assert_eq!(is_requested(&uri(query)).ok(), expected, "{query}");
        }
    }

    #[test]
    fn operations_that_write_refuse_or_accept_it() {
        for operation in OPERATIONS {
            let is_accepted = check(&uri("dry_run=true"), operation).is_ok();
            let expected = operation.accepts_dry_run || operation.method == "GET";
            assert_eq!(is_accepted, expected, "{}", operation.id);
        }
    }
}
