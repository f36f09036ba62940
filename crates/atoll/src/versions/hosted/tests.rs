use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{get, post};
use tempfile::TempDir;

use super::*;

const OFFLINE: &str = "offline-secret-token";
const ACCESS: &str = "access-secret-token";

/// Responses and recorded requests of both services.
#[derive(Clone, Default)]
struct Hosted {
    token: Arc<Mutex<Option<(StatusCode, String)>>>,
    versions: Arc<Mutex<Option<(StatusCode, String)>>>,
    form: Arc<Mutex<String>>,
    headers: Arc<Mutex<HeaderMap>>,
}

async fn token(State(hosted): State<Hosted>, form: String) -> (StatusCode, String) {
    *hosted.form.lock().unwrap() = form;
    let other = hosted.token.lock().unwrap().clone();
    other.unwrap_or_else(|| {
        let token = format!(r#"{{"access_token":"{ACCESS}","token_type":"bearer"}}"#);
        (StatusCode::OK, token)
    })
}

async fn versions(State(hosted): State<Hosted>, headers: HeaderMap) -> (StatusCode, String) {
    *hosted.headers.lock().unwrap() = headers;
    let other = hosted.versions.lock().unwrap().clone();
    let versions = r#"{"4.18.1":{"display_name":"4.18.1","support_level":"production","cpu_architectures":["x86_64"]}}"#;
    other.unwrap_or((StatusCode::OK, versions.to_owned()))
}

struct Test {
    hosted: Hosted,
    arguments: FetchArgs,
    serving: tokio::task::JoinHandle<()>,
    _folder: TempDir,
}

impl Test {
    async fn start() -> Self {
        Self::with_paths(&["/api/assisted-install/v2/openshift-versions"]).await
    }

    /// A service that lists versions at these paths.
    async fn with_paths(paths: &[&str]) -> Self {
        let hosted = Hosted::default();
        let token_path = "/sso/auth/realms/site/protocol/openid-connect/token";
        let mut router = Router::new().route(token_path, post(token));
        for path in paths {
            router = router.route(path, get(versions));
        }
        let router = router.with_state(hosted.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        let folder = tempfile::tempdir().unwrap();
        let token_file = folder.path().join("token");
        std::fs::write(&token_file, format!("{OFFLINE}\n")).unwrap();
        let arguments = FetchArgs {
            base_url: format!("http://{address}").parse().unwrap(),
            auth_url: format!("http://{address}/sso/").parse().unwrap(),
            realm: "site".into(),
            client_id: "installer".into(),
            token_file,
            output: folder.path().join("versions.json"),
            ca: None,
        };
        Self {
            hosted,
            arguments,
            serving,
            _folder: folder,
        }
    }

    /// The error of a failed fetch, which contains no token.
    async fn refused(&self) -> String {
        let reason = model::error::chain(&fetch(&self.arguments).await.unwrap_err());
        assert!(
            !reason.contains(OFFLINE) && !reason.contains(ACCESS),
            "{reason}"
        );
        reason
    }
}

impl Drop for Test {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

#[tokio::test]
async fn versions_are_fetched_with_an_offline_token() {
    let test = Test::start().await;
    let text = fetch(&test.arguments).await.unwrap();
    assert!(
        rules::versions::load_platform_versions(&text)
            .unwrap()
            .contains_key("4.18.1")
    );
    let form = test.hosted.form.lock().unwrap().clone();
    let mut form: Vec<&str> = form.split('&').collect();
    form.sort_unstable();
    assert_eq!(
        form,
        [
            "client_id=installer",
            "grant_type=refresh_token",
            "refresh_token=offline-secret-token"
        ]
    );
    let headers = test.hosted.headers.lock().unwrap().clone();
    assert_eq!(headers["authorization"], format!("Bearer {ACCESS}"));
    assert_eq!(headers["content-type"], "application/json");
    assert_eq!(headers["accept"], "application/json");
}

#[tokio::test]
async fn either_path_of_the_versions_is_enough() {
    let neutral = ["/api/assisted-install/v2/platform-versions"];
    let test = Test::with_paths(&neutral).await;
    assert!(fetch(&test.arguments).await.unwrap().contains("4.18.1"));
    let test = Test::with_paths(&[]).await;
    let refused = test.refused().await;
    assert!(refused.contains("openshift-versions or"), "{refused}");
}

#[tokio::test]
async fn errors_contain_no_tokens() {
    let test = Test::start().await;
    for (status, body, expected) in [
        (
            400,
            format!(
                r#"{{"error":"400 Bad Request to the offline token: invalid_grant: … ran out","error_description":"{OFFLINE} ran out"}}"#
            ),
            "400 Bad Request to the offline token: invalid_grant: … ran out",
        ),
        (
            401,
            "<html>no</html>".to_owned(),
            "401 Unauthorized to the offline token: <html>no</html>",
        ),
        (
            200,
            format!(r#"{{"access_token":7,"other":"{ACCESS}"}}"#),
            "has no token",
        ),
        (200, "{}".to_owned(), "has no token"),
        (302, String::new(), "302 Found"),
    ] {
        let status = StatusCode::from_u16(status).unwrap();
        *test.hosted.token.lock().unwrap() = Some((status, body));
        let refused = test.refused().await;
        assert!(refused.contains(expected), "{refused}");
    }
    *test.hosted.token.lock().unwrap() = None;
    for (status, body, expected) in [
        (
            403,
            format!(r#"{{"reason":"not for {ACCESS}"}}"#),
            "403 Forbidden: not for …",
        ),
        (
            500,
            "broken\nall over".to_owned(),
            "500 Internal Server Error: broken all over",
        ),
    ] {
        let status = StatusCode::from_u16(status).unwrap();
        *test.hosted.versions.lock().unwrap() = Some((status, body));
        let refused = test.refused().await;
        assert!(refused.contains(expected), "{refused}");
    }
}

#[tokio::test]
async fn a_file_without_a_token_is_refused() {
    let test = Test::start().await;
    std::fs::write(&test.arguments.token_file, "two words").unwrap();
    assert!(test.refused().await.contains("one line is expected"));
    std::fs::remove_file(&test.arguments.token_file).unwrap();
    assert!(test.refused().await.contains("No such file"));
}
