//! Catalogs from images, valid and malicious.

use std::fs;
use std::path::Path;

use axum::http::StatusCode;
use oci::Digest;
use serde_json::{Value, json};
use tar::EntryType;
use tempfile::TempDir;
use testkit::redirecting::Redirecting;

use crate::content::{Fault, Registry, configs, layer, package, write};
use crate::operation::{World, folder_with, is_tidy};

#[tokio::test]
async fn a_moved_tag_is_reloaded() {
    let registry = Registry::start().await;
    registry.push(&[configs(&package("a", "1.0.0"))]);
    let world = World::start(&registry.image()).await;
    world.until_head("catalog", "a.v1.0.0").await;
    let hidden = layer(&[(EntryType::Regular, "configs/.wh.catalog.json", "", b"")]);
    let other = package("a", "2.0.0");
    let upper = layer(&[(
        EntryType::Regular,
        "configs/other.json",
        "",
        other.as_bytes(),
    )]);
    registry.push(&[configs(&package("a", "1.0.0")), hidden, upper]);
    world.until_head("catalog", "a.v2.0.0").await;
    assert!(is_tidy(&world.path("cache")));
}

#[tokio::test]
async fn interrupted_pulls_are_retried() {
    let registry = Registry::start().await;
    registry.push(&[configs(&package("a", "1.0.0"))]);
    registry.inject(Fault::Truncate(3));
    let world = World::start(&registry.image()).await;
    world.until_head("catalog", "a.v1.0.0").await;
}

#[tokio::test]
async fn interrupted_reloads_keep_the_previous_catalog() {
    let registry = Registry::start().await;
    registry.push(&[configs(&package("a", "1.0.0"))]);
    let world = World::start(&registry.image()).await;
    world.until_head("catalog", "a.v1.0.0").await;
    registry.inject(Fault::Truncate(u32::MAX));
    registry.push(&[configs(&package("a", "2.0.0"))]);
    world.until("/readyz", |text| text.contains("ailing")).await;
    world.until_head("catalog", "a.v1.0.0").await;
    registry.inject(Fault::None);
    world.until_head("catalog", "a.v2.0.0").await;
    assert!(is_tidy(&world.path("cache")));
}

#[tokio::test]
async fn readiness_has_the_reason_until_a_catalog_is_loaded() {
    let registry = Registry::start().await;
    registry.push(&[configs(&package("a", "1.0.0"))]);
    for (fault, reason) in [
        (
            Fault::Status(StatusCode::UNAUTHORIZED),
            "requires authentication",
        ),
        (Fault::Status(StatusCode::NOT_FOUND), "was not found"),
        (Fault::Corrupt, "another digest"),
    ] {
        registry.inject(fault);
        let world = World::start(&registry.image()).await;
        world.until("/readyz", |text| text.contains(reason)).await;
        assert_eq!(world.readiness().await.0, StatusCode::SERVICE_UNAVAILABLE);
        registry.inject(Fault::None);
        world
            .until("/readyz", |text| text.contains("\"ready\":true"))
            .await;
    }
}

#[tokio::test]
async fn caches_of_earlier_sources_are_removed() {
    let registry = Registry::start().await;
    registry.push(&[configs(&package("a", "1.0.0"))]);
    let caches = |world: &World| {
        let files = fs::read_dir(world.path("cache")).unwrap();
        let paths = files.map(|file| file.unwrap().path());
        let caches = paths.filter(|path| path.extension().is_some_and(|it| it == "cache"));
        caches.collect::<Vec<_>>()
    };
    let world = World::start(&format!("a={}", registry.image())).await;
    world.until_head("a", "a.v1.0.0").await;
    let [first] = caches(&world).try_into().unwrap();
    let folder = world.stop().await;
    // Files of other programs.
    fs::write(folder.path().join("cache/b.cache"), "").unwrap();
    let other = registry.image().replace("v1", "v2");
    let world = World::start_in(folder, &format!("a={other}")).await;
    world.until_head("a", "a.v1.0.0").await;
    let now = caches(&world);
    assert!(now.len() == 2 && !now.contains(&first), "{now:?}");
}

#[tokio::test]
async fn credentials_added_later_are_used() {
    let registry = Registry::start().await;
    registry.push(&[configs(&package("a", "1.0.0"))]);
    // User u, password p.
    registry.inject(Fault::RequireLogin("Basic dTpw"));
    let world = World::start(&registry.image()).await;
    world
        .until("/readyz", |text| text.contains("requires authentication"))
        .await;
    let logins = json!({ "auths": { registry.address.to_string(): { "auth": "dTpw" } } });
    fs::write(world.path("auth.json"), logins.to_string()).unwrap();
    world.until_head("catalog", "a.v1.0.0").await;
}

#[tokio::test]
async fn a_catalog_behind_a_redirect_gets_no_login() {
    let redirecting = Redirecting::start().await;
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("logins.json"), redirecting.logins()).unwrap();
    let logins = [("registry_auth_file", "FOLDER/logins.json")];
    let world = World::start_with(folder, &redirecting.image(), &logins).await;
    let is_reported = |text: &str| text.contains("redirects to");
    world.until("/readyz", is_reported).await;
    redirecting.check(&world.text("/readyz").await).unwrap();
}

#[tokio::test]
async fn images_that_escape_their_folder_are_refused() {
    let registry = Registry::start().await;
    let good = package("a", "1.0.0");
    let good: (EntryType, &str, &str, &[u8]) =
        (EntryType::Regular, "configs/a.json", "", good.as_bytes());
    for (entries, reason) in [
        (
            vec![good, (EntryType::Symlink, "configs/b", "/etc/passwd", b"")],
            "leads to no file",
        ),
        (
            vec![
                good,
                (EntryType::Symlink, "configs/b", "../../../etc/passwd", b""),
            ],
            "leads to no file",
        ),
        (
            vec![good, (EntryType::Link, "configs/b", "/etc/passwd", b"")],
            "leads to no file",
        ),
        (
            vec![
                good,
                (EntryType::Symlink, "configs/d", "/tmp", b""),
                (EntryType::Regular, "configs/d/evil.json", "", b"{}"),
            ],
            "/configs/d",
        ),
        (
            vec![(EntryType::Regular, "configs/../../evil.json", "", b"{}")],
            "no files below",
        ),
        (
            vec![(EntryType::Regular, "elsewhere/a.json", "", b"{}")],
            "no files below",
        ),
    ] {
        registry.push(&[layer(&entries)]);
        let world = World::start(&registry.image()).await;
        world.until("/readyz", |text| text.contains(reason)).await;
        assert!(is_tidy(&world.path("cache")), "{reason}");
        assert!(!world.path("evil.json").exists() && !Path::new("/tmp/evil.json").exists());
    }
}

#[tokio::test]
async fn paths_outside_the_image_are_skipped() {
    let registry = Registry::start().await;
    let good = package("a", "1.0.0");
    registry.push(&[layer(&[
        (EntryType::Regular, "/configs/./a.json", "", good.as_bytes()),
        (EntryType::Regular, "../configs/evil.json", "", b"{"),
    ])]);
    let world = World::start(&registry.image()).await;
    world.until_head("catalog", "a.v1.0.0").await;
}

#[tokio::test]
async fn the_cache_is_served_while_the_registry_is_unavailable() {
    let registry = Registry::start().await;
    registry.push(&[configs(&package("a", "1.0.0"))]);
    let world = World::start(&registry.image()).await;
    world.until_head("catalog", "a.v1.0.0").await;
    let folder = world.stop().await;
    registry.inject(Fault::Status(StatusCode::SERVICE_UNAVAILABLE));
    let world = World::start_in(folder, &registry.image()).await;
    world.until_head("catalog", "a.v1.0.0").await;
    registry.push(&[configs(&package("a", "2.0.0"))]);
    registry.inject(Fault::None);
    world.until_head("catalog", "a.v2.0.0").await;
}

#[tokio::test]
async fn an_image_in_a_folder_is_served() {
    let folder = TempDir::new().unwrap();
    let blobs = folder.path().join("layout/blobs/sha256");
    fs::create_dir_all(&blobs).unwrap();
    let blob = |bytes: &[u8]| -> Value {
        let digest = Digest::sha256(bytes);
        fs::write(blobs.join(digest.hex()), bytes).unwrap();
        json!({ "digest": digest, "size": bytes.len() })
    };
    let config = blob(b"{}");
    let layer = blob(&configs(&package("a", "1.0.0")));
    let kind = "application/vnd.oci.image.manifest.v1+json";
    let manifest =
        json!({ "schemaVersion": 2, "mediaType": kind, "config": config, "layers": [layer] });
    let index = json!({ "schemaVersion": 2, "manifests": [blob(manifest.to_string().as_bytes())] });
    fs::write(folder.path().join("layout/index.json"), index.to_string()).unwrap();
    let world = World::start_in(folder, "oci:FOLDER/layout").await;
    world.until_head("catalog", "a.v1.0.0").await;
}

#[tokio::test]
async fn catalogs_are_served_without_a_writable_cache_folder() {
    let registry = Registry::start().await;
    registry.push(&[configs(&package("b", "1.0.0"))]);
    let catalogs = format!("folder=FOLDER/configs,image={}", registry.image());
    // Not even root can create folders there.
    let nowhere = [("catalog_cache_dir", "/sys/caches"), ("tmpdir", "FOLDER")];
    let folder = folder_with(&package("a", "1.0.0"));
    let world = World::start_with(folder, &catalogs, &nowhere).await;
    world.until_head("folder", "a.v1.0.0").await;
    world.until_head("image", "b.v1.0.0").await;
    write(&world.path("configs"), &package("a", "2.0.0"));
    world.until_head("folder", "a.v2.0.0").await;
}
