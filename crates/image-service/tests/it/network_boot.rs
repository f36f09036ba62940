//! Boot artifacts of a network boot.

use reqwest::header::{CONTENT_DISPOSITION, CONTENT_LENGTH, RANGE};

use crate::world::{ID, World};

#[tokio::test]
async fn kernel_and_rootfs_come_out_of_the_image() {
    let world = World::new().await;
    for (name, path, file) in [
        ("kernel", "images/pxeboot/vmlinuz", "vmlinuz"),
        ("rootfs", "images/pxeboot/rootfs.img", "rootfs.img"),
    ] {
        let url = format!("/boot-artifacts/{name}?version=4.18&arch=x86_64");
        let response = world.get(&url).send().await.unwrap();
        assert_eq!(response.status(), 200);
        let disposition = format!("attachment; filename={file}");
        assert_eq!(response.headers()[CONTENT_DISPOSITION], disposition);
        let start = world.start_of(path);
        let expected = &world.base[start..start + world.length_of(path)];
        assert!(response.bytes().await.unwrap() == expected);
        let head = world
            .client
            .head(format!("{}{url}", world.url))
            .send()
            .await
            .unwrap();
        assert_eq!(head.headers()[CONTENT_LENGTH], expected.len().to_string());
        let part = world
            .get(&url)
            .header(RANGE, "bytes=100-199")
            .send()
            .await
            .unwrap();
        assert!(part.bytes().await.unwrap() == expected[100..200]);
    }
    assert!(
        world.api.asked().is_empty(),
        "boot artifacts need no credentials"
    );
}

#[tokio::test]
async fn the_initrd_carries_the_configuration() {
    let world = World::new().await;
    let path = format!("/images/{ID}/pxe-initrd?version=4.18");
    let response = world.get(&path).send().await.unwrap();
    let disposition = format!("attachment; filename={ID}-initrd.img");
    assert_eq!(response.headers()[CONTENT_DISPOSITION], disposition);
    let initrd = response.bytes().await.unwrap();
    let start = world.start_of("images/pxeboot/initrd.img");
    let original = &world.base[start..start + world.length_of("images/pxeboot/initrd.img")];
    assert!(initrd.starts_with(original));
    let files = ignition::archive::read(&initrd).unwrap();
    assert_eq!(files.last().unwrap().name, "config.ign");
    assert_eq!(
        files.last().unwrap().data,
        br#"{"ignition":{"version":"3.1.0"}}"#
    );

    let asked = world.api.asked();
    assert!(
        asked
            .iter()
            .any(|line| line.ends_with("/downloads/files?file_name=discovery.ign"))
    );

    let member = ignition::cpio::CpioMember {
        name: "etc/x",
        mode: 0o100_600,
        data: b"network",
    };
    let ramdisk = ignition::cpio::write(&[member]).unwrap();
    world.api.set(|answers| answers.ramdisk = Some(ramdisk));
    let files = ignition::archive::read(&world.bytes(&path).await).unwrap();
    let names: Vec<_> = files
        .iter()
        .rev()
        .take(2)
        .map(|file| file.name.as_str())
        .collect();
    assert_eq!(names, ["etc/x", "config.ign"]);
}
