//! Images by their recipes.

use reqwest::header::{CONTENT_DISPOSITION, CONTENT_TYPE, ETAG, RANGE};
use sha2::{Digest as _, Sha256};

use crate::world::{ID, World};

async fn text(world: &World, path: &str) -> String {
    String::from_utf8(world.bytes(path).await).unwrap()
}

/// The recipe's digest and the bytes of an image.
async fn read(world: &World, path: &str) -> (String, Vec<u8>) {
    let response = world.get(path).send().await.unwrap();
    assert_eq!(response.status(), 200, "{path}");
    let tag = response.headers()[ETAG].to_str().unwrap();
    let digest = tag.trim_matches('"').to_owned();
    (digest, response.bytes().await.unwrap().to_vec())
}

fn with_base_url(settings: &mut image_service::Settings) {
    settings.image_service_base_url = Some("http://images.example:8888".to_owned());
}

#[tokio::test]
async fn equal_settings_give_equal_images_in_each_replica() {
    let (one, other) = (
        World::with(with_base_url).await,
        World::with(with_base_url).await,
    );
    for name in ["full.iso", "minimal.iso"] {
        let path = format!("/byid/{ID}/4.18/x86_64/{name}");
        let (digest, image) = read(&one, &path).await;
        let again = read(&other, &format!("{path}?api_key=other")).await;
        assert!(again == (digest.clone(), image.clone()), "{name}");

        let recipe = text(&one, &format!("/recipes/{digest}")).await;
        assert_eq!(hex::encode(Sha256::digest(&recipe)), digest);
        assert_eq!(recipe, text(&other, &format!("/recipes/{digest}")).await);
        let by_recipe = one.get(&format!("/recipes/{digest}/discovery.iso"));
        let by_recipe = by_recipe.send().await.unwrap();
        let headers = by_recipe.headers().clone();
        assert_eq!(headers[ETAG], format!("\"{digest}\""));
        assert_eq!(headers[CONTENT_TYPE], "application/x-cd-image");
        assert_eq!(
            headers[CONTENT_DISPOSITION],
            "attachment; filename=discovery.iso"
        );
        assert!(by_recipe.bytes().await.unwrap() == image);
    }
}

#[tokio::test]
async fn each_setting_changes_the_recipe() {
    let world = World::with(with_base_url).await;
    let mut digests = vec![read(&world, &World::full_iso()).await.0];
    world
        .api
        .set(|answers| answers.ignition = br#"{"ignition":{"version":"3.2.0"}}"#.to_vec());
    digests.push(read(&world, &World::full_iso()).await.0);
    world.api.set(|answers| {
        let text = r#"[{"operation":"append","value":"quiet"}]"#;
        answers.kernel_arguments = Some(text.to_owned());
    });
    digests.push(read(&world, &World::full_iso()).await.0);
    digests.push(
        read(
            &world,
            &World::full_iso().replace("full.iso", "minimal.iso"),
        )
        .await
        .0,
    );
    world
        .api
        .set(|answers| answers.ramdisk = Some(ignition::cpio::write(&[]).unwrap()));
    digests.push(
        read(
            &world,
            &World::full_iso().replace("full.iso", "minimal.iso"),
        )
        .await
        .0,
    );
    let count = digests.len();
    digests.sort();
    digests.dedup();
    assert_eq!(digests.len(), count);
}

#[tokio::test]
async fn a_recipe_keeps_its_image_when_the_infra_env_changes() {
    let world = World::new().await;
    let secret = br#"{"ignition":{"version":"3.1.0"},"secret":"hunter2"}"#;
    world.api.set(|answers| answers.ignition = secret.to_vec());
    let (digest, image) = read(&world, &World::full_iso()).await;
    world.api.set(|answers| answers.ignition = b"{}".to_vec());
    assert!(read(&world, &World::full_iso()).await.1 != image);
    world.api.asked();

    let path = format!("/recipes/{digest}/discovery.iso");
    let part = world.get(&path).header(RANGE, "bytes=32768-65535");
    let part = part.send().await.unwrap();
    assert_eq!(part.status(), 206);
    assert!(part.bytes().await.unwrap() == image[32768..65536]);
    let recipe = text(&world, &format!("/recipes/{digest}")).await;
    assert!(!recipe.contains("hunter2"));
    assert_eq!(
        world.api.asked(),
        Vec::<String>::new(),
        "no call of the API"
    );
}

#[tokio::test]
async fn a_network_boot_has_its_files_at_its_recipe() {
    let world = World::with(with_base_url).await;
    world.api.set(|answers| {
        let text = r#"[{"operation":"append","value":"quiet"}]"#;
        answers.kernel_arguments = Some(text.to_owned());
    });
    let path = format!("/images/{ID}/pxe-initrd?version=4.18");
    let (digest, initrd) = read(&world, &path).await;
    let folder = format!("/recipes/{digest}");
    let script = text(&world, &format!("{folder}/boot.ipxe")).await;
    let url = format!("http://images.example:8888{folder}");
    for expected in [
        format!("initrd --name initrd {url}/initrd.img\n"),
        format!("kernel {url}/kernel initrd=initrd coreos.live.rootfs_url={url}/rootfs.img "),
        " quiet\nboot\n".to_owned(),
    ] {
        assert!(script.contains(&expected), "{expected} in {script}");
    }
    assert!(world.bytes(&format!("{folder}/initrd.img")).await == initrd);
    for (name, artifact) in [("kernel", "kernel"), ("rootfs.img", "rootfs")] {
        let expected = world
            .bytes(&format!("/boot-artifacts/{artifact}?version=4.18"))
            .await;
        assert!(
            world.bytes(&format!("{folder}/{name}")).await == expected,
            "{name}"
        );
    }
    let other = world
        .get(&format!("{folder}/discovery.iso"))
        .send()
        .await
        .unwrap();
    assert_eq!(other.status(), 404);
    assert!(
        other
            .text()
            .await
            .unwrap()
            .contains("boot.ipxe, initrd.img")
    );
}

#[tokio::test]
async fn unknown_recipes_are_not_found() {
    let world = World::new().await;
    for digest in [
        "0".repeat(64),
        "x".repeat(64),
        "0".to_owned(),
        "00".to_owned(),
    ] {
        for path in [
            format!("/recipes/{digest}"),
            format!("/recipes/{digest}/kernel"),
        ] {
            let response = world.get(&path).send().await.unwrap();
            assert_eq!(response.status(), 404, "{path}");
            assert!(response.text().await.unwrap().contains("recipe"));
        }
    }
}
