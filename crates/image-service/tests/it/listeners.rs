//! Listeners, and pages of other origins.

use image_service::Settings;
use reqwest::Method;
use reqwest::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
};
use service::program::ServerSettings as _;
use service::settings::CommaList;

use crate::world::World;

#[tokio::test]
async fn pages_of_allowed_origins_may_read_images() {
    let world = World::with(|settings| {
        settings.allowed_domains = CommaList(vec!["https://*.example.org".to_owned()]);
    })
    .await;
    let url = format!("{}{}", world.url, World::full_iso());
    for (origin, is_allowed) in [
        ("https://ui.example.org", true),
        ("https://evil.example", false),
    ] {
        let request = world.client.head(&url).header(ORIGIN, origin);
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()[VARY], "Origin");
        let allowed = response.headers().get(ACCESS_CONTROL_ALLOW_ORIGIN);
        assert_eq!(allowed.is_some_and(|allowed| allowed == origin), is_allowed);
        assert_eq!(allowed.is_some(), is_allowed);

        let preflight = world
            .client
            .request(Method::OPTIONS, &url)
            .header(ORIGIN, origin)
            .header(ACCESS_CONTROL_REQUEST_METHOD, "GET");
        let response = preflight.send().await.unwrap();
        assert_eq!(response.status(), 204);
        let header = |name| {
            response
                .headers()
                .get(name)
                .map(|value| value.to_str().unwrap().to_owned())
        };
        let expected = |text: &str| is_allowed.then(|| text.to_owned());
        assert_eq!(header(ACCESS_CONTROL_ALLOW_METHODS), expected("GET"));
        assert_eq!(
            header(ACCESS_CONTROL_ALLOW_HEADERS),
            expected("Authorization, Content-Type")
        );
        assert_eq!(header(ACCESS_CONTROL_MAX_AGE), expected("600"));
    }
    let health = world.get("/live").header(ORIGIN, "https://ui.example.org");
    let health = health.send().await.unwrap();
    assert!(!health.headers().contains_key(ACCESS_CONTROL_ALLOW_ORIGIN));
}

#[tokio::test]
async fn without_origins_there_are_no_headers_about_them() {
    let world = World::new().await;
    let request = world
        .get(&World::full_iso())
        .header(ORIGIN, "https://ui.example.org");
    let response = request.send().await.unwrap();
    assert!(!response.headers().contains_key(ACCESS_CONTROL_ALLOW_ORIGIN));
    assert!(!response.headers().contains_key(VARY));
}

#[tokio::test]
async fn metrics_have_the_names_that_dashboards_read() {
    let world = World::new().await;
    let length = world.bytes(&World::full_iso()).await.len();
    world
        .get("/boot-artifacts/none?version=4.18")
        .send()
        .await
        .unwrap();
    let metrics = String::from_utf8(world.bytes("/metrics").await).unwrap();
    let name = "assisted_image_service_http_response_size_bytes";
    let labels = r#"code="200",handler="/byid/:token",method="GET",service="""#;
    let sum = format!("{name}_sum{{{labels}}} ");
    let found = metrics.lines().find_map(|line| line.strip_prefix(&sum));
    let found: f64 = found
        .unwrap_or_else(|| panic!("no {sum} in {metrics}"))
        .parse()
        .unwrap();
    // Tests of this process share the metrics.
    let length: f64 = u32::try_from(length).unwrap().into();
    assert!(found >= length, "{found}");
    assert!(
        metrics.contains(&format!("{name}_bucket{{{labels},le=\"500000000\"}}")),
        "{metrics}"
    );
    for line in [
        r#"assisted_image_service_http_request_duration_seconds_count{code="404",handler="/boot-artifacts/:name",method="GET",service=""}"#,
        r#"assisted_image_service_http_requests_inflight{handler="/byid/:token",service=""}"#,
    ] {
        assert!(metrics.contains(line), "{line} in {metrics}");
    }
}

#[test]
fn a_plain_port_is_beside_https_or_alone() {
    let ports = |settings: &Settings| -> Vec<(u16, bool)> {
        let listeners = settings.listen().into_iter();
        listeners
            .map(|listen| (listen.address.port(), listen.tls.is_some()))
            .collect()
    };
    let mut settings = Settings {
        listen_port: 1,
        ..Settings::default()
    };
    assert_eq!(ports(&settings), [(1, false)]);
    settings.http_listen_port = Some(2);
    assert_eq!(ports(&settings), [(2, false)]);
    settings.https_cert_file = Some("cert".into());
    settings.https_key_file = Some("key".into());
    assert_eq!(ports(&settings), [(1, true), (2, false)]);
    settings.http_listen_port = Some(1);
    let problems = settings.problems();
    let named = problems
        .iter()
        .any(|problem| problem.variable == "HTTP_LISTEN_PORT");
    assert!(named, "{problems:?}");
}
