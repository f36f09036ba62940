//! Images that are read in many ranges, as a BMC does: the installer API is asked when reading begins.

use reqwest::header::{ETAG, RANGE};

use crate::world::{ID, World};

async fn read(world: &World, path: &str, first: u64, last: u64) -> reqwest::Response {
    let range = format!("bytes={first}-{last}");
    let request = world.get(path).header(RANGE, range);
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), 206);
    response
}

#[tokio::test]
async fn later_ranges_ask_no_api() {
    let world = World::new().await;
    let path = World::full_iso();
    let whole = world.expected_iso("");
    let block = 64 * 1024;
    let mut bytes = Vec::new();
    for first in (0..whole.len() as u64).step_by(block) {
        let part = read(&world, &path, first, first + block as u64 - 1).await;
        bytes.extend(part.bytes().await.unwrap());
    }
    assert!(bytes == whole);
    assert_eq!(world.api.asked().len(), 2, "ignition and infra-env, once");
}

#[tokio::test]
async fn a_new_read_asks_whether_the_infra_env_changed() {
    let world = World::new().await;
    let path = World::full_iso();
    let first = world.get(&path).send().await.unwrap().headers()[ETAG].clone();
    world.api.asked();
    let again = world.get(&path).send().await.unwrap().headers()[ETAG].clone();
    assert_eq!(again, first);
    let expected = [format!("/api/assisted-install/v2/infra-envs/{ID}")];
    assert_eq!(world.api.asked(), expected, "its version only");

    world.api.set(|answers| {
        answers.ignition = br#"{"ignition":{"version":"3.2.0"}}"#.to_vec();
    });
    // A reader in progress continues with its image.
    let later = read(&world, &path, 40_000, 40_009).await;
    assert_eq!(later.headers()[ETAG], first);
    let changed = world.get(&path).send().await.unwrap();
    assert_ne!(changed.headers()[ETAG], first);
    assert!(changed.bytes().await.unwrap() == world.expected_iso(""));
}

#[tokio::test]
async fn other_credentials_share_nothing() {
    let world = World::new().await;
    let path = World::full_iso();
    let known = format!("{path}?api_key=known");
    world.bytes(&known).await;
    let refusal = (401, r#"{"code":"401","message":"no"}"#.to_owned());
    world.api.set(|answers| answers.refusal = Some(refusal));
    for path in [
        path.clone(),
        format!("{path}?api_key=other"),
        format!("{path}?image_token=known"),
    ] {
        let request = world.get(&path).header(RANGE, "bytes=40000-40009");
        assert_eq!(request.send().await.unwrap().status(), 401, "{path}");
    }
    read(&world, &known, 40_000, 40_009).await;
    let begun = world.get(&known).send().await.unwrap();
    assert_eq!(begun.status(), 401, "a new read is checked");
}

#[tokio::test]
async fn hosts_that_boot_together_share_one_image() {
    let world = World::new().await;
    let path = format!("/images/{ID}/pxe-initrd?version=4.18");
    let ask = async || world.bytes(&path).await;
    let images = futures_util::future::join_all((0..40).map(|_| ask())).await;
    assert!(images.iter().all(|image| *image == images[0]));
    let asked = world.api.asked();
    let composed = asked
        .iter()
        .filter(|line| line.contains("/downloads/files"))
        .count();
    assert!(composed <= 4, "composed {composed} times: {asked:?}");
}
