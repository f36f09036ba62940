//! Addresses of web servers on the command line.

use url::{ParseError, Url};

/// Reads an address with `http` or `https`, and a host.
///
/// Errors: the reason, with an acceptable form.
pub(crate) fn web_address(text: &str) -> Result<Url, String> {
    let expected = "write it as https://HOST[:PORT]";
    let url = Url::parse(text).map_err(|problem| match problem {
        ParseError::RelativeUrlWithoutBase => format!("has no https:// in front: {expected}"),
        ParseError::EmptyHost => format!("names no host: {expected}"),
        problem => format!("is no address ({problem}): {expected}"),
    })?;
    if !matches!(url.scheme(), "http" | "https") {
        let scheme = url.scheme();
        return Err(format!(
            "has the scheme {scheme}, not http or https: {expected}"
        ));
    }
    Ok(url)
}

/// The same, as it was written.
pub(crate) fn web_text(text: &str) -> Result<String, String> {
    web_address(text).map(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_or_refused_with_a_form() {
        for text in [
            "https://api.example",
            "http://10.0.0.1:8090/",
            "https://[::1]/x",
        ] {
            assert!(web_address(text).is_ok(), "{text}");
        }
        for (text, expected) in [
            ("api.example", "has no https:// in front"),
            ("/api", "has no https:// in front"),
            ("", "has no https:// in front"),
            ("https://", "names no host"),
            ("https://a:99999", "invalid port number"),
            ("ftp://a", "has the scheme ftp"),
            ("localhost:8090", "has the scheme localhost"),
        ] {
            let error = web_address(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
            assert!(
                error.ends_with("write it as https://HOST[:PORT]"),
                "{error}"
            );
        }
    }
}
