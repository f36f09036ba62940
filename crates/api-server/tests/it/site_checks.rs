//! The checks of the site, from the API server's place.

use serde_json::Value;

use crate::harness::Server;

#[tokio::test(flavor = "multi_thread")]
async fn checks_are_listed_with_remedies() {
    let server = Server::start().await;
    let report = server.get("/v2/doctor").await.expect(200);
    let checks = report["checks"].as_array().unwrap();
    let of = |id: &str| -> &Value {
        let found = checks
            .iter()
            .find(|one| one["id"].as_str().unwrap().starts_with(id));
        found.unwrap_or_else(|| panic!("{id}: {report}"))
    };
    assert_eq!(of("disk-space:")["group"], "machine");
    assert_eq!(of("memory")["status"], "passed");
    for one in checks {
        assert_eq!(one["remedy"] == "", one["status"] == "passed", "{one}");
    }
    let database = of("database:");
    assert_eq!(database["status"], "passed", "{database}");
    assert!(!report.to_string().contains("DB_PASS"), "{report}");
    // The registry of the harness does not exist.
    for setting in ["AGENT_DOCKER_IMAGE", "INSTALLER_IMAGE", "CONTROLLER_IMAGE"] {
        let image = of(&format!("image:{setting}"));
        assert_eq!(image["status"], "failed", "{image}");
        assert!(image["remedy"].as_str().unwrap().contains(setting));
    }
    // Hosts that take this URL call themselves.
    let url = of("base-url:IMAGE_SERVICE_BASE_URL");
    assert_eq!(url["status"], "failed");
    // The second answer is the same run.
    assert_eq!(server.get("/v2/doctor").await.expect(200), report);
}

#[tokio::test(flavor = "multi_thread")]
async fn services_of_the_site_are_checked_by_their_names() {
    let open = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = open.local_addr().unwrap().port();
    let closed = testkit::ports::free_port().unwrap();
    let server = Server::with(|settings| {
        let list = |text: String| service::settings::Setting::parse(&text).unwrap();
        settings.service_base_url =
            Some(service::settings::Setting::parse("http://127.0.0.1:8090").unwrap());
        settings.doctor_services = list(format!(
            "tls://127.0.0.1:{closed},grpc://127.0.0.1:{closed}"
        ));
        settings.doctor_published = list(format!("{port},127.0.0.1:1,{closed}"));
    })
    .await;
    let report = server.get("/v2/doctor").await.expect(200);
    let checks = report["checks"].as_array().unwrap();
    let of = |id: &str| {
        let mut found = checks.iter().filter(|one| one["id"] == id);
        let one = found.next().unwrap_or_else(|| panic!("{id}: {report}"));
        (
            one["status"].as_str().unwrap(),
            one["remedy"].as_str().unwrap(),
        )
    };
    assert_eq!(of(&format!("connection:127.0.0.1:{port}")), ("passed", ""));
    for (id, setting) in [
        ("connection", "DOCTOR_PUBLISHED"),
        ("served-certificate", "DOCTOR_SERVICES"),
        ("catalog", "DOCTOR_SERVICES"),
    ] {
        let (status, remedy) = of(&format!("{id}:127.0.0.1:{closed}"));
        assert!(
            status == "failed" && remedy.contains(setting),
            "{id}: {remedy}"
        );
    }
}
