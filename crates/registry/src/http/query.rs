//! Query strings.

use std::borrow::Cow;

use axum::http::Uri;
use percent_encoding::percent_decode_str;

/// The parameters of a query string, in order.
pub(super) fn pairs(uri: &Uri) -> Vec<(String, String)> {
    // `+` for a blank is left alone: no name that is asked for here holds blanks, and a few hold `+`.
    let decode = |text: &str| {
        percent_decode_str(text)
            .decode_utf8()
            .map(Cow::into_owned)
            .ok()
    };
    let query = uri.query().filter(|query| !query.is_empty());
    let pairs = query.into_iter().flat_map(|query| query.split('&'));
    pairs
        .filter_map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Some((decode(name)?, decode(value)?))
        })
        .collect()
}

/// The values of a parameter, without empty ones.
pub(super) fn values(uri: &Uri, name: &str) -> Vec<String> {
    let named = pairs(uri).into_iter().filter(|(found, _)| found == name);
    named
        .map(|(_, value)| value)
        .filter(|value| !value.is_empty())
        .collect()
}

/// The first value of a parameter.
pub(super) fn value(uri: &Uri, name: &str) -> Option<String> {
    pairs(uri)
        .into_iter()
        .find(|(found, _)| found == name)
        .map(|(_, value)| value)
}
