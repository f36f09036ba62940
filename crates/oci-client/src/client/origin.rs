//! Checks of origins: logins are sent to the server that asked for them, and never in clear after a redirect.

use reqwest::Url;

/// The URL that a server names in its response to `asked`; `None` for another server.
///
/// A server behind a TLS proxy may see plain HTTP and return such URLs: they are requested by TLS, too.
pub(super) fn same_server(asked: &Url, named: &str) -> Option<Url> {
    let mut url = asked.join(named).ok()?;
    if is_downgrade(asked, &url) {
        url.set_scheme("https").ok()?;
    }
    (url.origin() == asked.origin()).then_some(url)
}

/// Whether a request by TLS leads to plain HTTP.
pub(super) fn is_downgrade(asked: &Url, named: &Url) -> bool {
    asked.scheme() == "https" && named.scheme() == "http"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_followed_by_the_scheme_of_the_request() {
        let asked = |port: &str| format!("https://a.example{port}/v2/x/").parse().unwrap();
        for (port, named, expected) in [
            ("", "up/1?s=2", Some("https://a.example/v2/x/up/1?s=2")),
            ("", "/up/1", Some("https://a.example/up/1")),
            ("", "https://a.example:443/u", Some("https://a.example/u")),
            ("", "http://a.example/u", Some("https://a.example/u")),
            (
                ":5000",
                "http://a.example:5000/u",
                Some("https://a.example:5000/u"),
            ),
            (":5000", "http://a.example/u", None),
            ("", "https://a.example:8443/u", None),
            ("", "https://b.example/u", None),
            ("", "//b.example/u", None),
            ("", "ftp://a.example/u", None),
            ("", "https://", None),
        ] {
            let url = same_server(&asked(port), named);
            assert_eq!(url.as_ref().map(Url::as_str), expected, "{named}");
        }
        let plain = "http://a.example/v2/".parse().unwrap();
        let found = same_server(&plain, "http://a.example/u");
        assert_eq!(found.unwrap().as_str(), "http://a.example/u");
        assert_eq!(same_server(&plain, "http://a.example:5000/u"), None);
    }
}
