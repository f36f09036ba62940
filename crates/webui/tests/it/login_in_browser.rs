//! Log-ins in a real browser, at sound and at hostile issuers.

use std::path::Path;

use axum::Router;
use axum::response::Html;
use axum::routing::get;
use serde_json::json;
use testkit::chromium::{self, Visit};

use crate::login::KEY;
use crate::openid::{Browser, OpenIdSite, ProviderState};
use crate::server;

/// Part of the page of a logged-in person.
const LOGGED_IN: &str = r#"id="account"><a href="/token""#;
/// A text that would load an image and run a script if it were parsed as HTML.
const EVIL: &str = r#"<img%20src="http://outside.test/x"%20onerror="document.title='taken'">"#;

async fn visit(browser: &Path, url: &str) -> Visit {
    chromium::visit(browser, url, 6).await.unwrap()
}

#[tokio::test]
async fn a_browser_logs_in() {
    let Some(browser) = chromium::find() else {
        return;
    };
    let site = OpenIdSite::start().await;
    let webui = site.webui(KEY, |_| {}).await;
    let visit = visit(&browser, &webui.url("/status/infra-envs")).await;
    assert!(visit.dom.contains(LOGGED_IN), "{}", visit.dom);
    assert!(
        visit.dom.contains(r#"role="alert" hidden="""#),
        "{}",
        visit.dom
    );
    assert!(visit.console.is_empty(), "{:?}", visit.console);
    let tokens = site.provider.state.lock().unwrap().all_tokens.clone();
    assert!(!tokens.is_empty() && tokens.iter().all(|token| !visit.dom.contains(token)));
}

/// An issuer that answers wrongly: mix-up, an ID token of another log-in, texts that are scripts, endpoints that are none.
#[tokio::test]
async fn hostile_issuers_log_no_browser_in() {
    type Change = fn(&mut ProviderState);
    const CHANGES: [(Change, &str); 6] = [
        (
            |state| state.response_issuer = Some("http://evil.example".to_owned()),
            "(iss)",
        ),
        (
            |state| state.id_claims = json!({ "nonce": "of another log-in" }),
            "another log-in (nonce)",
        ),
        (
            |state| state.id_claims = json!({ "iss": "http://evil.example" }),
            "another issuer",
        ),
        (|state| state.denial = Some(EVIL), "refused the log-in"),
        (
            |state| {
                state.description =
                    json!({ "authorization_endpoint": "javascript:document.title='taken'" });
            },
            "endpoint without TLS",
        ),
        (
            |state| state.description = json!({ "redirect": "http://outside.test/" }),
            "302",
        ),
    ];
    let Some(browser) = chromium::find() else {
        return;
    };
    for (change, text) in CHANGES {
        let site = OpenIdSite::start().await;
        site.change(change);
        let webui = site.webui(KEY, |_| {}).await;
        let visit = visit(&browser, &webui.url("/status/clusters")).await;
        assert!(visit.dom.contains(text), "{text}: {}", visit.dom);
        assert!(!visit.dom.contains(LOGGED_IN), "{text}: {}", visit.dom);
        assert!(!visit.dom.contains("<img"), "{text}: {}", visit.dom);
        assert!(!visit.dom.contains("<title>taken"), "{text}");
        assert!(visit.outside.is_empty(), "{text}: {:?}", visit.outside);
    }
}

/// A stranger logs itself in, and has the browser of another person end that log-in, as the stranger.
#[tokio::test]
async fn a_strangers_log_in_ends_in_no_other_browser() {
    let Some(browser) = chromium::find() else {
        return;
    };
    let site = OpenIdSite::start().await;
    let webui = site.webui(KEY, |_| {}).await;
    let mut stranger = Browser::new();
    let start = stranger.get(&webui.url("/login")).await;
    let back = Browser::new().get(start.location()).await;
    let back = back.location().to_owned();
    let page = format!(
        "<!doctype html><iframe src='{back}'></iframe><pre></pre><script>\
         open('{back}');\
         fetch('{back}', {{ mode: 'no-cors', credentials: 'include' }})\
           .then(() => {{ document.querySelector('pre').textContent = 'answered'; }});</script>"
    );
    let page = Router::new().route("/", get(async move || Html(page)));
    let page = server::api(page).await;
    // Another site than that of the web UI, for the browser.
    let url = page.url("/").replace("127.0.0.1", "localhost");
    let flags = ["--disable-popup-blocking"];
    let seen = chromium::visit_with(&browser, &url, 6, &flags).await;
    let seen = seen.unwrap();
    assert!(seen.dom.contains("<pre>answered</pre>"), "{}", seen.dom);
    assert_eq!(site.provider.state.lock().unwrap().exchanges, 0);
    // The link is whole: it is the stranger's, and ends once.
    assert_eq!(stranger.clone().get(&back).await.location(), "/");
    assert_eq!(stranger.get(&back).await.status, 401);
}

#[tokio::test]
async fn a_log_in_returns_to_own_pages() {
    let Some(browser) = chromium::find() else {
        return;
    };
    let site = OpenIdSite::start().await;
    let webui = site.webui(KEY, |_| {}).await;
    for target in [
        "//outside.test/",
        "https://outside.test/",
        "/%5Coutside.test",
        "/%09/outside.test",
        "javascript:document.title='taken'",
    ] {
        let url = webui.url(&format!("/login?return_to={target}"));
        let visit = visit(&browser, &url).await;
        assert!(visit.outside.is_empty(), "{target}: {:?}", visit.outside);
        assert!(visit.dom.contains(LOGGED_IN), "{target}: {}", visit.dom);
    }
}
