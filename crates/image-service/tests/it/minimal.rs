//! Minimal images over HTTP; their content is tested beside the code that makes it.

use std::fmt::Write as _;

use image_service::image::BaseImage;
use image_service::{OsImage, Settings};
use reqwest::header::{CONTENT_DISPOSITION, CONTENT_LENGTH, ETAG, LAST_MODIFIED, RANGE};
use service::settings::JsonVar;

use crate::world::{CHANGED, ID, OS_VERSION, World, os_image};

const BASE_URL: &str = "https://images.example:8888/";

fn with_base_url(settings: &mut Settings) {
    settings.image_service_base_url = Some(BASE_URL.to_owned());
}

fn minimal_iso() -> String {
    format!("/byid/{ID}/4.18/x86_64/minimal.iso")
}

#[tokio::test]
async fn a_minimal_image_has_no_root_file_system_but_its_url() {
    let world = World::with(with_base_url).await;
    world.api.set(|answers| {
        let text = r#"[{"operation":"append","value":"console=ttyS0"}]"#;
        answers.kernel_arguments = Some(text.to_owned());
    });
    let response = world.get(&minimal_iso()).send().await.unwrap();
    assert_eq!(response.status(), 200);
    let headers = response.headers().clone();
    let name = format!("attachment; filename={ID}-discovery.iso");
    assert_eq!(headers[CONTENT_DISPOSITION], name);
    assert_eq!(headers[LAST_MODIFIED], CHANGED);
    let bytes = response.bytes().await.unwrap();
    assert_eq!(headers[CONTENT_LENGTH], bytes.len().to_string());
    let rootfs = world.length_of("images/pxeboot/rootfs.img");
    assert!(bytes.len() < world.base.len() - rootfs + 64 * 1024);
    let url = format!(
        "coreos.live.rootfs_url=\"https://images.example:8888/boot-artifacts/rootfs?arch=x86_64&version={OS_VERSION}\" console=ttyS0\n"
    );
    let text = String::from_utf8_lossy(&bytes);
    assert_eq!(text.matches(&url).count(), 2, "both boot loaders");
    let path = world.data.path().join("minimal.iso");
    std::fs::write(&path, &bytes).unwrap();
    BaseImage::open(&path).unwrap();

    let mut asked = world.api.asked();
    asked.sort();
    let base = format!("/api/assisted-install/v2/infra-envs/{ID}");
    let kind = "discovery_iso_type=minimal-iso&file_name=discovery.ign";
    let expected = [
        base.clone(),
        format!("{base}/downloads/files?{kind}"),
        format!("{base}/downloads/minimal-initrd"),
    ];
    assert_eq!(asked, expected);
}

#[tokio::test]
async fn parts_of_a_minimal_image_are_those_of_the_whole() {
    let world = World::with(with_base_url).await;
    let member = ignition::cpio::CpioMember {
        name: "etc/assisted/network/x",
        mode: 0o100_600,
        data: &vec![7; 400_000],
    };
    let ramdisk = ignition::cpio::write(&[member]).unwrap();
    world.api.set(|answers| answers.ramdisk = Some(ramdisk));
    let whole = world.bytes(&minimal_iso()).await;
    let mut tags = Vec::new();
    for start in (0..whole.len()).step_by(100_000) {
        let end = (start + 100_000).min(whole.len());
        let range = format!("bytes={start}-{}", end - 1);
        let request = world.get(&minimal_iso()).header(RANGE, &range);
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 206);
        tags.push(response.headers()[ETAG].clone());
        assert!(
            response.bytes().await.unwrap() == whole[start..end],
            "{range}"
        );
    }
    tags.dedup();
    assert_eq!(tags.len(), 1, "one image");
}

#[tokio::test]
async fn a_long_ignition_gets_an_area_of_its_length() {
    let world = World::with(with_base_url).await;
    let mut noise = String::from("{\"a\":\"");
    let mut word: u64 = 1;
    while noise.len() < 2_000_000 {
        word = word
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        write!(noise, "{:08x}", word >> 32).unwrap();
    }
    noise.push_str("\"}");
    let ignition = noise.into_bytes();
    world
        .api
        .set(|answers| answers.ignition.clone_from(&ignition));
    for path in [minimal_iso(), World::full_iso()] {
        let bytes = world.bytes(&path).await;
        let packed = ignition::archive::write(&ignition).unwrap();
        assert!(packed.len() > 4 * ignition::archive::EMBED_AREA);
        let at = bytes
            .windows(64)
            .position(|at| at == &packed[..64])
            .unwrap();
        assert!(bytes[at..].starts_with(&packed));
        let path = world.data.path().join("long.iso");
        std::fs::write(&path, &bytes).unwrap();
        BaseImage::open(&path).unwrap();
    }
}

#[tokio::test]
async fn s390x_has_no_minimal_images() {
    let s390x = OsImage {
        cpu_architecture: "s390x".to_owned(),
        ..os_image("")
    };
    let world = World::without_image(tempfile::tempdir().unwrap(), |settings| {
        with_base_url(settings);
        settings.os_images = JsonVar(vec![s390x]);
    });
    let world = world.await;
    let path = format!("/byid/{ID}/4.18/s390x/minimal.iso");
    let response = world.get(&path).send().await.unwrap();
    assert_eq!(response.status(), 400);
    let text = response.text().await.unwrap();
    assert!(text.contains("use full.iso, or a network boot"), "{text}");
}
