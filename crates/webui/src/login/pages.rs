//! Pages of the log-in, as HTML without scripts. Foreign text is escaped.

use std::fmt::Write as _;

use axum::body::Body;
use axum::response::Response;
use http::{HeaderName, HeaderValue, StatusCode, header};

use super::failure::LogInFailure;

/// As of the UI's files, and nothing of the page may run.
const POLICY: &str = "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/// The form for a token.
pub(super) fn token_form(return_to: &str) -> Response {
    let main = format!(
        "<section class=\"panel\"><h1>Log in</h1>\
         <form method=\"post\" action=\"/login\">\
         <p><label for=\"token\">Token of the installer API</label></p>\
         <p><input id=\"token\" name=\"token\" type=\"password\" autocomplete=\"off\" required maxlength=\"8192\"></p>\
         <input type=\"hidden\" name=\"return_to\" value=\"{}\">\
         <p><button>Log in</button></p></form>\
         <p class=\"muted\">Administrators make tokens with <code>atoll token user --name NAME</code>, and links that log in \
         with <code>atoll token link</code>.</p></section>",
        escaped(return_to)
    );
    page(StatusCode::OK, "Log in", "", &main)
}

/// The form of a link with a code. Not the link itself logs in: programs that look at links would use it up.
pub(super) fn code_form(code: &str) -> Response {
    let main = format!(
        "<section class=\"panel\"><h1>Log in</h1>\
         <p>This link logs you in once, as the user that it was made for.</p>\
         <form method=\"post\" action=\"/login\">\
         <input type=\"hidden\" name=\"code\" value=\"{}\">\
         <p><button autofocus>Log in</button></p></form></section>",
        escaped(code)
    );
    page(StatusCode::OK, "Log in", "", &main)
}

/// A failure, with a link to log in again.
pub(super) fn failure(failure: &LogInFailure) -> Response {
    let text = failure.text();
    let main = format!(
        "<section class=\"panel\"><h1>Not logged in</h1><p role=\"alert\">{}</p><p>{}</p>\
         <p><a class=\"button\" href=\"/login\">Log in</a></p></section>",
        escaped(&text.reason),
        escaped(text.remedy)
    );
    page(text.status, "Not logged in", "", &main)
}

/// The question before a log-out.
pub(super) fn log_out(name: &str) -> Response {
    let main = format!(
        "<section class=\"panel\"><h1>Log out</h1><p>{}</p>\
         <form method=\"post\" action=\"/logout\"><p><button>Log out</button> <a href=\"/\">Back</a></p></form></section>",
        logged_in_as(name)
    );
    page(StatusCode::OK, "Log out", "", &main)
}

/// The end of a session. Browsers proceed to `end_session` by themselves; a redirect of the form's response would
/// be refused by the policy of the page with the form.
pub(super) fn logged_out(end_session: Option<&str>) -> Response {
    let (head, link) = match end_session {
        Some(url) => {
            let url = escaped(url);
            (
                format!("<meta http-equiv=\"refresh\" content=\"0; url={url}\">"),
                format!("<p><a href=\"{url}\">End the session at the OpenID provider</a></p>"),
            )
        }
        None => (String::new(), String::new()),
    };
    let main = format!(
        "<section class=\"panel\"><h1>Logged out</h1><p>This browser has no session here.</p>{link}\
         <p><a class=\"button\" href=\"/login\">Log in</a></p></section>"
    );
    page(StatusCode::OK, "Logged out", &head, &main)
}

/// Commands that use the token of a person; `token` reveals it.
pub(super) fn token(name: &str, base_url: &str, token: Option<&str>) -> Response {
    let value = token.unwrap_or("TOKEN");
    let mut main = format!(
        "<section class=\"panel\"><h1>Token</h1><p>{}</p>\
         <p>The commands below act as you. Keep the token secret.</p>",
        logged_in_as(name)
    );
    let base = escaped(base_url);
    let commands = [
        ("Shell", format!("export AI_TOKEN={}", escaped(value))),
        (
            "curl",
            format!(
                "curl -H \"Authorization: Bearer $AI_TOKEN\" {base}/api/assisted-install/v2/clusters"
            ),
        ),
        ("aicli", format!("AI_URL={base} aicli list cluster")),
    ];
    for (title, command) in commands {
        // Writing to a text does not fail.
        let _ = write!(main, "<h2>{title}</h2><pre><code>{command}</code></pre>");
    }
    if token.is_none() {
        main += "<form method=\"post\" action=\"/token\"><p><button>Reveal the token</button></p></form>";
    }
    main += "<p><a href=\"/\">Back</a></p></section>";
    page(StatusCode::OK, "Token", "", &main)
}

fn logged_in_as(name: &str) -> String {
    if name.is_empty() {
        return "You are logged in.".to_owned();
    }
    format!("You are logged in as <b>{}</b>.", escaped(name))
}

fn page(status: StatusCode, title: &str, head: &str, main: &str) -> Response {
    let text = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <meta name=\"color-scheme\" content=\"light dark\"><title>{title} · Atoll</title>{head}\
         <link rel=\"icon\" href=\"/status/icon.svg\" type=\"image/svg+xml\"><link rel=\"stylesheet\" href=\"/status/style.css\"></head>\
         <body><header class=\"top\"><a class=\"brand\" href=\"/\">Atoll</a></header>\
         <main id=\"main\" tabindex=\"-1\">{main}</main></body></html>\n"
    );
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    for (name, value) in [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
    ] {
        response
            .headers_mut()
            .insert(name, HeaderValue::from_static(value));
    }
    guard(&mut response);
    response
}

/// Headers of every response of the log-in: no cache keeps it, no other site learns of it.
pub(super) fn guard(response: &mut Response) {
    for (name, value) in [
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        // Browsers send `Origin: null` from pages without any referrer.
        (header::REFERRER_POLICY, "same-origin"),
        (HeaderName::from_static("x-frame-options"), "DENY"),
    ] {
        response
            .headers_mut()
            .insert(name, HeaderValue::from_static(value));
    }
}

fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => safe += "&amp;",
            '<' => safe += "&lt;",
            '>' => safe += "&gt;",
            '"' => safe += "&quot;",
            '\'' => safe += "&#39;",
            other if other.is_control() => safe.push(char::REPLACEMENT_CHARACTER),
            other => safe.push(other),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_is_escaped() {
        assert_eq!(
            escaped("<b a=\"1\" c='2'>&\n"),
            "&lt;b a=&quot;1&quot; c=&#39;2&#39;&gt;&amp;\u{fffd}"
        );
    }
}
