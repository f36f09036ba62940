//! Errors: status and text, without internal URLs and credentials.

use reqwest::header::{ALLOW, RETRY_AFTER};

use crate::world::{ID, World};

async fn refusal(world: &World, path: &str) -> (u16, String) {
    let response = world.get(path).send().await.unwrap();
    (response.status().as_u16(), response.text().await.unwrap())
}

#[tokio::test]
async fn invalid_requests_get_the_reason() {
    let world = World::new().await;
    for (path, status, text) in [
        (format!("/images/{ID}"), 400, "'version' parameter required"),
        (
            format!("/images/{ID}?version=4.18"),
            400,
            "'type' parameter required",
        ),
        (
            format!("/images/{ID}?version=4.18&type=x"),
            400,
            "invalid value 'x' for parameter 'type'",
        ),
        (
            format!("/byid/{ID}/4.18/x86_64/other.iso"),
            404,
            "unrecognized file name other.iso; expected full.iso or minimal.iso",
        ),
        (
            format!("/byid/{ID}/4.18/x86_64/minimal.iso"),
            409,
            "IMAGE_SERVICE_BASE_URL",
        ),
        (
            format!("/byid/{ID}/4.18/x86_64/disconnected.iso"),
            404,
            "disconnected image 4.18 x86_64",
        ),
        (
            format!("/byid/{ID}/4.19/x86_64/full.iso"),
            404,
            "OS image 4.19 x86_64 (on offer: 4.18 x86_64)",
        ),
        (
            format!("/byid/{ID}/4.18/arm64/full.iso"),
            404,
            "OS image 4.18 arm64",
        ),
        (
            "/byid/X/4.18/x86_64/full.iso".to_owned(),
            404,
            "\"X\" is not the id of an infra-env; expected a UUID in lower case",
        ),
        (
            "/byapikey/x/4.18/x86_64/full.iso".to_owned(),
            404,
            "the token in the URL is not a JWT",
        ),
        ("/none".to_owned(), 404, "404 page not found\n"),
    ] {
        let (found, body) = refusal(&world, &path).await;
        assert_eq!(found, status, "{path}: {body}");
        assert!(body.contains(text), "{path}: {body}");
    }
    assert!(world.api.asked().is_empty());
}

#[tokio::test]
async fn invalid_requests_for_parts_of_a_network_boot_get_the_reason() {
    let world = World::new().await;
    for (path, status, text) in [
        (
            format!("/images/{ID}/pxe-initrd"),
            400,
            "'version' parameter required",
        ),
        (
            format!("/images/{ID}/pxe-initrd?version=1"),
            400,
            "OS image 1 x86_64",
        ),
        (
            "/boot-artifacts/kernel".to_owned(),
            400,
            "'version' parameter required",
        ),
        (
            "/boot-artifacts/kernel?version=1".to_owned(),
            400,
            "OS image 1 x86_64",
        ),
        (
            "/boot-artifacts/initrd?version=4.18".to_owned(),
            404,
            "expected kernel, rootfs or ins-file",
        ),
        (
            "/boot-artifacts/ins-file?version=4.18".to_owned(),
            404,
            "the ins-file is only of s390x, not of x86_64",
        ),
        (
            format!("/images/{ID}/s390x-initrd-addrsize"),
            400,
            "'version' parameter required",
        ),
        (
            format!("/images/{ID}/s390x-initrd-addrsize?version=4.18"),
            400,
            "OS image 4.18 s390x",
        ),
    ] {
        let (found, body) = refusal(&world, &path).await;
        assert_eq!(found, status, "{path}: {body}");
        assert!(body.contains(text), "{path}: {body}");
    }
    assert!(world.api.asked().is_empty());
}

#[tokio::test]
async fn only_reading_is_allowed() {
    let world = World::new().await;
    for path in [
        World::full_iso(),
        format!("/images/{ID}?version=4.18&type=full-iso"),
    ] {
        let url = format!("{}{path}", world.url);
        for request in [
            world.client.post(&url),
            world.client.delete(&url),
            world.client.put(&url),
        ] {
            let response = request.send().await.unwrap();
            assert_eq!(response.status(), 405);
            assert_eq!(response.headers()[ALLOW], "GET,HEAD");
        }
    }
}

#[tokio::test]
async fn errors_of_the_api_are_passed_on() {
    let world = World::new().await;
    for (status, body, expected, text) in [
        (401, "{}", 401, "401"),
        (
            403,
            r#"{"code":403,"message":"not yours"}"#,
            403,
            "not yours",
        ),
        (404, "", 404, ID),
        (409, r#"{"reason":"no pull secret"}"#, 409, "no pull secret"),
        (400, r#"{"reason":"bad"}"#, 400, "infra-env: bad"),
        (
            500,
            "secret internals",
            503,
            "the installer API is not available",
        ),
        (503, "", 503, "the installer API is not available"),
    ] {
        world
            .api
            .set(|answers| answers.refusal = Some((status, body.to_owned())));
        for path in [
            World::full_iso(),
            format!("/images/{ID}/pxe-initrd?version=4.18"),
        ] {
            let (found, text_found) = refusal(&world, &path).await;
            assert_eq!(found, expected, "{path}: {text_found}");
            assert!(text_found.contains(text), "{path}: {text_found}");
            assert!(!text_found.contains("secret internals"));
        }
    }
}

#[tokio::test]
async fn errors_never_contain_the_url_of_the_api() {
    let world = World::with(|settings| {
        // The discard port of the loopback network is closed.
        settings.assisted_service_host = "127.0.0.1:9".to_owned();
    })
    .await;
    let path = format!("{}?api_key=very-secret", World::full_iso());
    let response = world.get(&path).send().await.unwrap();
    assert_eq!(response.status(), 503);
    assert!(response.headers().contains_key(RETRY_AFTER));
    let body = response.text().await.unwrap();
    assert!(
        !body.contains("very-secret") && !body.contains("127.0.0.1"),
        "{body}"
    );
}

#[tokio::test]
async fn an_oversized_ignition_is_refused_before_the_first_byte() {
    let world = World::new().await;
    let long = "x".repeat(2000);
    world.api.set(|answers| {
        let text = serde_json::json!([{ "operation": "append", "value": long }]);
        answers.kernel_arguments = Some(text.to_string());
    });
    let (status, body) = refusal(&world, &World::full_iso()).await;
    assert_eq!(status, 409);
    assert!(body.contains("kernel arguments"), "{body}");
    world.api.set(|answers| {
        answers.kernel_arguments = Some(r#"[{"operation":"delete","value":"x"}]"#.to_owned());
    });
    let (status, body) = refusal(&world, &World::full_iso()).await;
    assert_eq!(status, 409);
    assert!(body.contains("only append"), "{body}");
}

#[tokio::test]
async fn probes_and_metrics_answer() {
    let world = World::new().await;
    world.bytes(&World::full_iso()).await;
    for path in ["/health", "/live", "/ready"] {
        assert_eq!(
            world.get(path).send().await.unwrap().status(),
            200,
            "{path}"
        );
    }
    let metrics = String::from_utf8(world.bytes("/metrics").await).unwrap();
    assert!(
        metrics.contains("/byid/{image_id}/{version}/{arch}/{filename}"),
        "{metrics}"
    );
}

// limit: ignition of an image
#[tokio::test]
async fn ignitions_beyond_the_bound_are_refused() {
    const BOUND: usize = 4 << 20;
    let world = World::new().await;
    let path = format!("/byid/{ID}/4.18/x86_64/full.iso");
    for (length, expected) in [(BOUND, 200), (BOUND + 1, 413)] {
        world
            .api
            .set(|answers| answers.ignition = vec![b' '; length]);
        let response = world.client.head(format!("{}{path}", world.url)).send();
        assert_eq!(response.await.unwrap().status(), expected, "{length}");
    }
}
