//! Log-in by an OpenID provider and by tokens.

use http::header;
use serde_json::json;
use testkit::ports::free_port;

use crate::openid::{Browser, OpenIdSite, origin};
use crate::server;

pub(crate) const KEY: &str = "a key that all replicas share, of 32 bytes or more";
const API: &str = "/api/assisted-install/v2/clusters";

#[tokio::test]
async fn a_person_logs_in_and_returns_to_the_page() {
    let site = OpenIdSite::start().await;
    let webui = site.webui(KEY, |_| {}).await;
    let mut browser = Browser::new();
    let path = "/status/clusters/x?a=b&c=%2F";
    let (done, _) = browser.log_in(&webui, path).await;
    assert_eq!(done.location(), path);
    assert_eq!(done.headers[header::CACHE_CONTROL], "no-store");
    let tokens = site.provider.state.lock().unwrap().all_tokens.clone();
    for cookie in done.set_cookies() {
        assert!(cookie.contains("; Path=/; "), "{cookie}");
        assert!(cookie.contains("; HttpOnly; SameSite=Lax"), "{cookie}");
        assert!(!cookie.contains("Secure"), "{cookie}");
        assert!(
            tokens.iter().all(|token| !cookie.contains(token)),
            "{cookie}"
        );
    }
    let page = browser.get(&webui.url(path)).await;
    assert!(page.text.contains("<title>Atoll"), "{}", page.text);
    assert!(page.set_cookies().is_empty());
    browser.jar.insert("other".to_owned(), "1".to_owned());
    let seen = browser.get(&webui.url(API)).await;
    assert_eq!(
        seen.json(),
        json!({ "method": "GET", "token": 0, "cookie": "other=1" })
    );
    assert_eq!(seen.headers["atoll-session"], "1");

    let mut stranger = Browser::new();
    let refused = stranger.get(&webui.url(API)).await;
    assert_eq!(
        (refused.status, &refused.headers["atoll-session"]),
        (401, &"0".parse().unwrap())
    );
    // The files of the page have no data.
    for path in ["/status/style.css", "/status/app.js", "/health"] {
        assert_eq!(stranger.load(&webui.url(path)).await.status, 200, "{path}");
    }
}

#[tokio::test]
async fn cookies_are_secure_with_https() {
    let site = OpenIdSite::start().await;
    let webui = site
        .webui(KEY, |settings| {
            settings.webui_base_url = Some("https://ui.example".to_owned());
        })
        .await;
    let mut browser = Browser::new();
    let start = browser.get(&webui.url("/login")).await;
    assert!(
        start
            .location()
            .contains("https%3A%2F%2Fui.example%2Flogin%2Fcallback")
    );
    let cookie = start.set_cookies()[0];
    assert!(cookie.starts_with("__Host-atoll-login="), "{cookie}");
    assert!(
        cookie.ends_with("; Max-Age=600; HttpOnly; SameSite=Lax; Secure"),
        "{cookie}"
    );
}

#[tokio::test]
async fn replicas_share_sessions_by_the_key_alone() {
    let site = OpenIdSite::start().await;
    let (one, two) = (site.webui(KEY, |_| {}).await, site.webui(KEY, |_| {}).await);
    let foreign = site
        .webui("another key, which no other replica has", |_| {})
        .await;
    let mut browser = Browser::new();
    let start = browser.get(&one.url("/login?return_to=/events")).await;
    let back = Browser::new()
        .get(start.location())
        .await
        .location()
        .to_owned();
    // The log-in began at one replica and ends at another one, whose redirect URI is the same in a real pod.
    let done = browser.get(&back).await;
    assert_eq!(done.location(), "/events");
    assert_eq!(browser.get(&two.url(API)).await.status, 200);
    assert_eq!(browser.get(&foreign.url(API)).await.status, 401);
    assert!(
        browser
            .get(&foreign.url("/"))
            .await
            .location()
            .starts_with("/login?")
    );
}

#[tokio::test]
async fn access_tokens_are_refreshed_once_for_concurrent_requests() {
    let site = OpenIdSite::start().await;
    site.change(|state| state.expires_in = 30);
    let webui = site.webui(KEY, |_| {}).await;
    let mut browser = Browser::new();
    browser.log_in(&webui, "/").await;
    let before = browser.jar.clone();
    site.change(|state| state.expires_in = 600);
    let url = webui.url(API);
    let (mut a, mut b, mut c) = (browser.clone(), browser.clone(), browser.clone());
    let (a, b, c) = tokio::join!(a.get(&url), b.get(&url), c.get(&url));
    for seen in [a, b, c] {
        assert_eq!(seen.json()["token"], 2);
        assert!(!seen.set_cookies().is_empty());
    }
    let seen = browser.get(&url).await;
    assert_eq!(seen.json()["token"], 2);
    assert_ne!(browser.jar, before);
    assert!(browser.get(&url).await.set_cookies().is_empty());
    assert_eq!(site.provider.state.lock().unwrap().refreshes, 1);
}

#[tokio::test]
async fn a_failed_refresh_leaves_a_valid_token() {
    let site = OpenIdSite::start().await;
    site.change(|state| state.expires_in = 30);
    let webui = site.webui(KEY, |_| {}).await;
    let mut browser = Browser::new();
    browser.log_in(&webui, "/").await;
    // Another replica may have used the refresh token.
    site.change(|state| state.refuses_refreshes = true);
    assert_eq!(browser.get(&webui.url(API)).await.json()["token"], 0);
}

#[tokio::test]
async fn sessions_outlast_an_absent_provider() {
    let site = OpenIdSite::start().await;
    site.change(|state| state.expires_in = 0);
    let webui = site.webui(KEY, |_| {}).await;
    let mut browser = Browser::new();
    browser.log_in(&webui, "/").await;
    site.change(|state| state.is_away = true);
    let refused = browser.get(&webui.url(API)).await;
    assert_eq!(refused.status, 503, "{}", refused.text);
    assert_eq!(refused.headers[header::RETRY_AFTER], "5");
    assert_eq!(refused.headers["atoll-session"], "1");
    let reason = refused.json()["reason"].as_str().unwrap().to_owned();
    assert!(reason.contains("cannot be reached"), "{reason}");
    for path in ["/events", "/token"] {
        assert_eq!(browser.get(&webui.url(path)).await.status, 503, "{path}");
    }
    let ask = browser.get(&webui.url("/logout")).await;
    assert!(ask.text.contains("<button>Log out"), "{}", ask.text);
    site.change(|state| {
        state.is_away = false;
        state.expires_in = 600;
    });
    assert_eq!(browser.get(&webui.url(API)).await.json()["token"], 2);
}

#[tokio::test]
async fn expired_sessions_lead_to_the_log_in() {
    let site = OpenIdSite::start().await;
    site.change(|state| state.expires_in = 0);
    let webui = site.webui(KEY, |_| {}).await;
    let mut browser = Browser::new();
    let (done, _) = browser.log_in(&webui, "/events").await;
    assert_eq!(done.location(), "/events");
    site.change(|state| state.refuses_refreshes = true);
    assert_eq!(
        browser.get(&webui.url("/events")).await.location(),
        "/login?return_to=%2Fevents"
    );
    assert_eq!(browser.get(&webui.url(API)).await.status, 401);
    let short = site
        .webui(KEY, |settings| {
            settings.session_lifetime = std::time::Duration::ZERO;
        })
        .await;
    let (done, _) = Browser::new().log_in(&short, "/").await;
    assert!(
        done.set_cookies()
            .iter()
            .all(|cookie| cookie.contains("Max-Age=0"))
    );
}

#[tokio::test]
async fn log_out_ends_both_sessions() {
    let site = OpenIdSite::start().await;
    let webui = site.webui(KEY, |_| {}).await;
    let own = origin(webui.address);
    let mut browser = Browser::new();
    browser.log_in(&webui, "/").await;
    let ask = browser.get(&webui.url("/logout")).await;
    assert!(ask.text.contains("alice &lt;b&gt;"), "{}", ask.text);
    assert_eq!(browser.get(&webui.url(API)).await.status, 200);
    let foreign = browser
        .post(&webui.url("/logout"), "http://evil.example", &[])
        .await;
    assert_eq!(foreign.status, 403);
    assert_eq!(browser.get(&webui.url(API)).await.status, 200);
    let done = browser.post(&webui.url("/logout"), &own, &[]).await;
    assert_eq!(done.status, 200);
    let end = format!(
        "{}?client_id=atoll&amp;post_logout_redirect_uri=",
        site.issuer.url("/end")
    );
    assert!(done.text.contains(&end), "{}", done.text);
    assert!(browser.jar.is_empty(), "{:?}", browser.jar);
    assert_eq!(browser.get(&webui.url(API)).await.status, 401);
    assert!(
        browser
            .get(&webui.url("/logout"))
            .await
            .text
            .contains("Logged out")
    );
}

#[tokio::test]
async fn forged_and_replayed_callbacks_are_refused() {
    let site = OpenIdSite::start().await;
    let webui = site.webui(KEY, |_| {}).await;
    let mut browser = Browser::new();
    let start = browser.get(&webui.url("/login")).await;
    let before = browser.clone();
    let back = Browser::new()
        .get(start.location())
        .await
        .location()
        .to_owned();
    for wrong in [
        webui.url("/login/callback"),
        webui.url("/login/callback?code=code-1"),
        webui.url("/login/callback?code=code-1&state=x"),
    ] {
        let refused = browser.get(&wrong).await;
        assert_eq!(refused.status, 400);
        assert!(
            refused.text.contains("no such log-in in progress"),
            "{}",
            refused.text
        );
        assert!(!refused.text.contains("code-1"));
    }
    // The link in another browser.
    assert_eq!(Browser::new().get(&back).await.status, 400);
    assert_eq!(browser.get(&back).await.location(), "/");
    assert_eq!(browser.clone().get(&back).await.status, 400);
    let mut replay = before;
    let refused = replay.get(&back).await;
    assert_eq!(refused.status, 401);
    assert!(
        refused
            .text
            .contains("refused the authorization code (invalid_grant)"),
        "{}",
        refused.text
    );
    assert_eq!(replay.get(&webui.url(API)).await.status, 401);
}

#[tokio::test]
async fn tampered_cookies_are_no_session() {
    let site = OpenIdSite::start().await;
    let webui = site.webui(KEY, |_| {}).await;
    let mut browser = Browser::new();
    let start = browser.get(&webui.url("/login")).await;
    let log_in = browser.jar["atoll-login"].clone();
    let back = Browser::new()
        .get(start.location())
        .await
        .location()
        .to_owned();
    browser.get(&back).await;
    let sealed = browser.jar["atoll-session-0"].clone();
    let changed = format!("{}{}", &sealed[..sealed.len() - 2], "AA");
    for text in [changed, log_in, "x".to_owned(), sealed[1..].to_owned()] {
        let mut tampered = browser.clone();
        tampered.jar.insert("atoll-session-0".to_owned(), text);
        assert_eq!(tampered.get(&webui.url(API)).await.status, 401);
        assert!(
            tampered
                .get(&webui.url("/"))
                .await
                .location()
                .starts_with("/login?")
        );
    }
    assert_eq!(browser.get(&webui.url(API)).await.status, 200);
}

#[tokio::test]
async fn other_sites_are_not_returned_to() {
    let site = OpenIdSite::start().await;
    let webui = site.webui(KEY, |_| {}).await;
    for target in [
        "https://evil.example/",
        "//evil.example/",
        "/%5Cevil.example",
        "/login",
    ] {
        let mut browser = Browser::new();
        let start = browser
            .get(&webui.url(&format!("/login?return_to={target}")))
            .await;
        let back = Browser::new()
            .get(start.location())
            .await
            .location()
            .to_owned();
        assert_eq!(browser.get(&back).await.location(), "/", "{target}");
    }
}

#[tokio::test]
async fn changes_from_other_sites_are_refused() {
    let site = OpenIdSite::start().await;
    let webui = site.webui(KEY, |_| {}).await;
    let own = origin(webui.address);
    let mut browser = Browser::new();
    browser.log_in(&webui, "/").await;
    let url = webui.url(API);
    for foreign in ["http://evil.example", "null", "http://127.0.0.1:1"] {
        let refused = browser.post(&url, foreign, &[]).await;
        assert_eq!(refused.status, 403);
        assert!(
            refused.json()["message"]
                .as_str()
                .unwrap()
                .contains("another origin")
        );
    }
    assert_eq!(browser.post(&url, &own, &[]).await.json()["method"], "POST");
    // Programs bring a token of their own, and no cookies.
    let token = site.provider.state.lock().unwrap().all_tokens[0].clone();
    let program = service::http_client(None, false).unwrap();
    let done = program.post(&url).bearer_auth(token).send().await.unwrap();
    assert_eq!(done.status(), 200);
}

#[tokio::test]
async fn failures_of_the_provider_are_explained() {
    let site = OpenIdSite::start().await;
    let webui = site.webui(KEY, |_| {}).await;
    let failed = async |status: u16, text: &str| {
        let (seen, _) = Browser::new().log_in(&webui, "/").await;
        assert_eq!(seen.status, status, "{}", seen.text);
        assert!(seen.text.contains(text), "{}", seen.text);
        let tokens = site.provider.state.lock().unwrap().all_tokens.clone();
        assert!(tokens.iter().all(|token| !seen.text.contains(token)));
        assert!(!seen.text.contains("code-"), "{}", seen.text);
        assert!(
            seen.set_cookies()
                .iter()
                .all(|cookie| cookie.contains("Max-Age=0"))
        );
    };
    site.change(|state| state.denial = Some("access_denied"));
    failed(403, "refused the log-in (access_denied)").await;
    site.change(|state| {
        state.denial = None;
        state.ahead_s = 120;
    });
    failed(502, "s in the future").await;
    site.change(|state| state.ahead_s = -600);
    failed(502, "s in the past").await;
    site.change(|state| {
        state.ahead_s = 0;
        state.is_opaque = true;
    });
    failed(502, "opaque access token").await;
    site.change(|state| {
        state.is_opaque = false;
        state.is_unknown = true;
    });
    failed(403, "the token is not valid: it is &lt;unknown&gt;.").await;
    site.change(|state| state.is_unknown = false);
    for (claims, text) in [
        (json!({ "nonce": "x" }), "another log-in (nonce)"),
        (json!({ "nonce": null }), "another log-in (nonce)"),
        (json!({ "iss": "http://other.example" }), "another issuer"),
        (json!({ "aud": "other" }), "another client"),
        (
            json!({ "aud": ["atoll", "other"], "azp": "other" }),
            "another client",
        ),
        (json!({ "exp": null }), "no expiry"),
    ] {
        site.change(|state| state.id_claims = claims);
        failed(502, text).await;
    }
    let wrong_secret = site
        .webui(KEY, |settings| {
            settings.oidc_client_secret = "another secret".into();
        })
        .await;
    site.change(|state| state.id_claims = json!({}));
    let (seen, _) = Browser::new().log_in(&wrong_secret, "/").await;
    assert!(
        seen.text.contains("(invalid_client)") && !seen.text.contains("another secret"),
        "{}",
        seen.text
    );
}

/// Mix-up: a browser that began a log-in at this provider comes back with the code of another one.
#[tokio::test]
async fn codes_of_other_issuers_are_not_exchanged() {
    let site = OpenIdSite::start().await;
    let own = site.issuer.url("");
    for (issuer, names_itself, is_taken) in [
        (None, false, true),
        (Some(own.clone()), false, true),
        (Some(own.clone()), true, true),
        (None, true, false),
        (Some("http://evil.example".to_owned()), false, false),
        (Some(format!("{own}/")), true, false),
        (Some(String::new()), true, false),
    ] {
        for denial in [None, Some("access_denied")] {
            site.change(|state| {
                state.response_issuer.clone_from(&issuer);
                state.denial = denial;
                state.exchanges = 0;
                let name = "authorization_response_iss_parameter_supported";
                state.description = json!({ name: names_itself });
            });
            let webui = site.webui(KEY, |_| {}).await;
            let mut browser = Browser::new();
            let (seen, back) = browser.log_in(&webui, "/clusters").await;
            let exchanges = site.provider.state.lock().unwrap().exchanges;
            match (is_taken, denial) {
                (true, None) => assert_eq!((seen.location(), exchanges), ("/clusters", 1)),
                (true, Some(_)) => assert_eq!((seen.status, exchanges), (403, 0)),
                (false, _) => {
                    assert_eq!((seen.status, exchanges), (502, 0), "{issuer:?}");
                    assert!(seen.text.contains("(iss)"), "{}", seen.text);
                    assert_eq!(browser.get(&webui.url(API)).await.status, 401);
                    // Nor with the same link again.
                    assert_eq!(browser.get(&back).await.status, 400);
                }
            }
        }
    }
}

#[tokio::test]
async fn hostile_descriptions_of_a_provider_lead_nowhere() {
    let site = OpenIdSite::start().await;
    for description in [
        json!({ "authorization_endpoint": "javascript:alert(1)" }),
        json!({ "authorization_endpoint": "data:text/html,x" }),
        json!({ "token_endpoint": "file:///etc/passwd" }),
        json!({ "end_session_endpoint": "javascript:alert(1)" }),
        json!({ "issuer": "http://evil.example/<script>" }),
        json!({ "issuer": null }),
        json!({ "redirect": site.issuer.url("/token") }),
        json!("<html>"),
        json!("x".repeat(1 << 20)),
    ] {
        site.change(|state| state.description = description.clone());
        let webui = site.webui(KEY, |_| {}).await;
        let seen = Browser::new().get(&webui.url("/login")).await;
        assert!(matches!(seen.status, 502 | 503), "{}", seen.status);
        assert!(!seen.headers.contains_key("location"), "{description}");
        for text in ["javascript:", "<script>", "data:text"] {
            assert!(!seen.text.contains(text), "{}", seen.text);
        }
    }
}

#[tokio::test]
async fn an_unreachable_provider_is_named() {
    let site = OpenIdSite::start().await;
    let port = free_port().unwrap();
    let issuer = format!("http://127.0.0.1:{port}");
    let webui = site
        .webui(KEY, |settings| settings.oidc_issuer = issuer)
        .await;
    let seen = Browser::new().get(&webui.url("/login")).await;
    assert_eq!(seen.status, 503);
    assert!(
        seen.text.contains("cannot be reached") && seen.text.contains("OIDC_CA_FILE"),
        "{}",
        seen.text
    );
    let other = format!("{}/", site.issuer.url(""));
    let webui = site
        .webui(KEY, |settings| settings.oidc_issuer = other)
        .await;
    let seen = Browser::new().get(&webui.url("/login")).await;
    assert_eq!(seen.status, 502);
    let found = format!("another issuer ({})", site.issuer.url(""));
    assert!(seen.text.contains(&found), "{}", seen.text);
}

// limit: sealed tokens of a session
#[tokio::test]
async fn longer_tokens_get_no_session() {
    let site = OpenIdSite::start().await;
    let webui = site.webui(KEY, |_| {}).await;
    // Base64 of the claims, then of the sealed session: 16 characters for 9 bytes.
    for (padding, fits) in [(7500, true), (9000, false)] {
        site.change(|state| state.padding = padding);
        let mut browser = Browser::new();
        let (seen, _) = browser.log_in(&webui, "/").await;
        assert_eq!(seen.status, if fits { 303 } else { 502 }, "{}", seen.text);
        assert_eq!(
            browser.get(&webui.url(API)).await.status,
            if fits { 200 } else { 401 }
        );
    }
}

#[tokio::test]
async fn people_bring_tokens_of_the_installation() {
    let site = OpenIdSite::start().await;
    let webui = server::webui_with(site.api.address, |settings| {
        settings.auth_type = webui::AuthType::Token;
    })
    .await;
    let own = origin(webui.address);
    let key = testkit::tokens::TokenKey::new().unwrap();
    let exp = service::clock::now().timestamp() + 600;
    let token = key
        .sign(&json!({ "auth_scheme": "userAuth", "sub": "bob", "exp": exp }))
        .unwrap();
    site.change(|state| {
        state.all_tokens.push(token.clone());
        state.accepted.insert(token.clone());
    });
    let mut browser = Browser::new();
    let gate = browser.get(&webui.url("/infra-envs")).await;
    let form = browser.get(&webui.url(gate.location())).await;
    assert!(form.text.contains("value=\"/infra-envs\""), "{}", form.text);
    let url = webui.url("/login");
    let refused = browser.post(&url, &own, &[("token", "eyJwrong")]).await;
    assert_eq!(refused.status, 403);
    assert!(!refused.text.contains("eyJwrong"));
    let fields = [("token", token.as_str()), ("return_to", "/infra-envs")];
    assert_eq!(
        browser
            .post(&url, "http://evil.example", &fields)
            .await
            .status,
        403
    );
    assert!(browser.jar.is_empty());
    let done = browser.post(&url, &own, &fields).await;
    assert_eq!(done.location(), "/infra-envs");
    assert_eq!(browser.get(&webui.url(API)).await.json()["token"], 0);

    let page = browser.get(&webui.url("/token")).await;
    assert_eq!(page.headers[header::CACHE_CONTROL], "no-store");
    assert!(
        page.text.contains("logged in as <b>bob</b>"),
        "{}",
        page.text
    );
    assert!(
        page.text.contains("aicli") && page.text.contains("curl") && !page.text.contains(&token)
    );
    assert_eq!(
        browser
            .post(&webui.url("/token"), "http://evil.example", &[])
            .await
            .status,
        403
    );
    let revealed = browser.post(&webui.url("/token"), &own, &[]).await;
    assert_eq!(revealed.headers[header::CACHE_CONTROL], "no-store");
    assert!(revealed.text.contains(&token), "{}", revealed.text);
    let stranger = Browser::new().get(&webui.url("/token")).await;
    assert_eq!(stranger.location(), "/login?return_to=%2Ftoken");
}

#[tokio::test]
async fn browsers_of_this_machine_are_logged_in_by_themselves() {
    let site = OpenIdSite::start().await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    let webui = server::webui_with(site.api.address, |settings| {
        settings.auth_type = webui::AuthType::Token;
        settings.loopback_log_in_token_file = Some(path.clone());
    })
    .await;
    // Without the file, and with a token that is refused, people log in as always.
    for token in [None, Some("eyJwrong")] {
        if let Some(token) = token {
            std::fs::write(&path, token).unwrap();
        }
        let seen = Browser::new().get(&webui.url("/infra-envs")).await;
        assert_eq!(seen.location(), "/login?return_to=%2Finfra-envs");
    }
    std::fs::write(&path, "a-token\n").unwrap();
    site.change(|state| {
        state.all_tokens.push("a-token".to_owned());
        state.accepted.insert("a-token".to_owned());
    });
    let mut browser = Browser::new();
    let seen = browser.get(&webui.url("/infra-envs?a=b")).await;
    assert_eq!(seen.location(), "/infra-envs?a=b");
    assert_eq!(browser.get(&webui.url(API)).await.json()["token"], 0);
    // Not the browsers behind a proxy on this machine, nor programs.
    for header in ["x-forwarded-for", "forwarded", "via"] {
        let client = service::http_client(None, false).unwrap();
        let request = client.get(webui.url("/infra-envs")).header(header, "x");
        // The client follows the redirect to the form.
        let seen = Browser::new()
            .send(request.header("accept", "text/html"))
            .await;
        assert!(seen.text.contains("name=\"token\""), "{header}");
    }
    assert_eq!(Browser::new().get(&webui.url(API)).await.status, 401);
}

#[tokio::test]
async fn a_link_logs_in_once() {
    let site = OpenIdSite::start().await;
    let webui = server::webui_with(site.api.address, |settings| {
        settings.auth_type = webui::AuthType::Token;
    })
    .await;
    let own = origin(webui.address);
    site.change(|state| {
        state.all_tokens.push("a-token".to_owned());
        state.accepted.insert("a-token".to_owned());
        state
            .log_in_codes
            .insert("a-code".to_owned(), "a-token".to_owned());
    });
    // Programs that look at the link do not use it up.
    for _ in 0..2 {
        let form = Browser::new().get(&webui.url("/login?code=a-code")).await;
        assert!(
            form.text.contains("name=\"code\" value=\"a-code\""),
            "{}",
            form.text
        );
        assert!(form.set_cookies().is_empty());
    }
    let url = webui.url("/login");
    let fields = [("code", "a-code")];
    let mut browser = Browser::new();
    let foreign = browser.post(&url, "http://evil.example", &fields).await;
    assert_eq!(foreign.status, 403);
    let done = browser.post(&url, &own, &fields).await;
    assert_eq!(done.location(), "/");
    assert_eq!(browser.get(&webui.url(API)).await.json()["token"], 0);
    let again = Browser::new().post(&url, &own, &fields).await;
    assert_eq!(again.status, 403);
    assert!(
        again.text.contains("the code of the link was used"),
        "{}",
        again.text
    );
    assert!(!again.text.contains("a-code"), "{}", again.text);
}

// limit: form of a log-in
#[tokio::test]
async fn longer_forms_are_refused() {
    let site = OpenIdSite::start().await;
    let webui = server::webui_with(site.api.address, |settings| {
        settings.auth_type = webui::AuthType::Token;
    })
    .await;
    let own = origin(webui.address);
    for (length, status) in [(16384, 403), (16385, 413), (1 << 20, 413)] {
        let token = "x".repeat(length - "token=".len());
        let seen = Browser::new()
            .post(&webui.url("/login"), &own, &[("token", &token)])
            .await;
        assert_eq!(seen.status, status, "{length}");
    }
}

#[tokio::test]
async fn without_authentication_nothing_changes() {
    let site = OpenIdSite::start().await;
    let webui = server::webui(site.api.address).await;
    for path in ["/", "/login", "/token", "/logout", "/login/callback", API] {
        let seen = Browser::new().get(&webui.url(path)).await;
        assert!(seen.set_cookies().is_empty(), "{path}");
        assert!(!seen.headers.contains_key("atoll-session"), "{path}");
        if path != API {
            // A page like any other: without a built UI it is below the status page.
            assert_eq!(seen.location(), format!("/status{path}"));
        }
    }
}
