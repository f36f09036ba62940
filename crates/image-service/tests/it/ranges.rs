//! Images that are read in many ranges, as a BMC does: the installer API is asked when reading begins.

use std::time::Duration;

use reqwest::header::{CONTENT_LENGTH, ETAG, RANGE};

use testkit::iso::LiveImageOptions;

use crate::world::{ID, World};

/// The requests of an emulated machine whose CD drive reads an image of 27 MiB by HTTP (QEMU 7.2), recorded in the boot.
const VIRTUAL_CD: &str = include_str!("../data/virtual-cd.ranges");

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

/// Reads as the machine did, and counts the reads from the first byte.
async fn boot(world: &World, whole: &[u8], requests: &str) -> usize {
    let path = World::full_iso();
    let mut begun = 0;
    for line in requests.lines() {
        let Some((first, last)) = line.split_once('-') else {
            let head = world.client.head(format!("{}{path}", world.url));
            let headers = head.send().await.unwrap().headers().clone();
            assert_eq!(headers[CONTENT_LENGTH], whole.len().to_string());
            begun += 1;
            continue;
        };
        let (first, last) = (first.parse().unwrap(), last.parse().unwrap());
        let part = read(world, &path, first, last).await.bytes().await.unwrap();
        let range = usize::try_from(first).unwrap()..=usize::try_from(last).unwrap();
        assert!(part == whole[range], "{line}");
        begun += usize::from(first == 0);
    }
    begun
}

#[tokio::test]
async fn a_virtual_cd_drive_is_served_without_the_api() {
    let options = LiveImageOptions {
        rootfs_bytes: 28 << 20,
        ..LiveImageOptions::small()
    };
    let world = World::of_image(&options, |_| {}).await;
    let whole = world.expected_iso("");
    let (bios, uefi) = VIRTUAL_CD.split_once("# UEFI\n").unwrap();
    let bios = bios.strip_prefix("# BIOS\n").unwrap();
    // Two machines at once, which mix up nothing.
    let begun = tokio::join!(boot(&world, &whole, bios), boot(&world, &whole, uefi));
    let asked = world.api.asked().len();
    assert!(
        asked <= 2 * (begun.0 + begun.1),
        "{asked} calls, {begun:?} reads from the start"
    );
}

#[tokio::test]
async fn an_api_that_hangs_does_not_disturb_readers() {
    let world = World::new().await;
    let path = World::full_iso();
    world.bytes(&path).await;
    world.api.set(|answers| answers.hangs = true);
    // More than are composed at once; the clients end the wait.
    let waiting = (0..20).map(|key| {
        let request = world
            .get(&format!("{path}?api_key={key}"))
            .timeout(Duration::from_millis(300));
        request.send()
    });
    let reader = async {
        let mut bytes = 0;
        for first in (1..200_000).step_by(10_000) {
            bytes += read(&world, &path, first, first + 9_999)
                .await
                .bytes()
                .await
                .unwrap()
                .len();
        }
        bytes
    };
    let (waited, bytes) = tokio::join!(futures_util::future::join_all(waiting), reader);
    assert!(
        waited
            .iter()
            .all(|response| response.as_ref().is_err_and(reqwest::Error::is_timeout))
    );
    assert_eq!(bytes, 200_000);
    // Their places are free again.
    world.api.set(|answers| answers.hangs = false);
    world.bytes(&format!("{path}?api_key=later")).await;
}
