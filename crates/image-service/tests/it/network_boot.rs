//! Boot artifacts of a network boot.

use reqwest::header::{CONTENT_DISPOSITION, CONTENT_LENGTH, RANGE};
use testkit::iso::LiveImageOptions;

use crate::world::{ID, OS_VERSION, World};

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

/// A ramdisk as the installer API sends it.
fn network_ramdisk(file: &str) -> Vec<u8> {
    let name = format!("/etc/assisted/network/host0/{file}");
    let member = ignition::cpio::CpioMember {
        name: &name,
        mode: 0o100_600,
        data: b"network",
    };
    ignition::archive::pack(&[member]).unwrap()
}

fn names(initrd: &[u8]) -> Vec<(String, u32)> {
    let files = ignition::archive::read(initrd).unwrap();
    let names = files.into_iter().map(|file| (file.name, file.mode));
    names.skip_while(|(name, _)| name != "config.ign").collect()
}

#[tokio::test]
async fn network_policies_come_with_nmstatectl() {
    policies_come_with_nmstatectl(include_bytes!("../data/zstd.squashfs")).await;
    policies_come_with_nmstatectl(include_bytes!("../data/zstd.erofs")).await;
}

async fn policies_come_with_nmstatectl(root_file_system: &[u8]) {
    let options = LiveImageOptions {
        rootfs_head: root_file_system.to_vec(),
        ..LiveImageOptions::small()
    };
    let world = World::of_image(&options, |_| {}).await;
    let path = format!("/images/{ID}/pxe-initrd?version=4.18");
    for (file, nmstatectl) in [
        ("eth0.nmconnection", None),
        (
            "ymlFile0.yml",
            Some(("/usr/bin/nmstatectl".to_owned(), 0o100_755)),
        ),
    ] {
        let ramdisk = network_ramdisk(file);
        world.api.set(|answers| answers.ramdisk = Some(ramdisk));
        let initrd = world.bytes(&path).await;
        let names = names(&initrd);
        assert_eq!(names[1].0, format!("/etc/assisted/network/host0/{file}"));
        assert_eq!(names.get(2), nmstatectl.as_ref());
    }
    let files = ignition::archive::read(&world.bytes(&path).await).unwrap();
    assert!(files.last().unwrap().data.starts_with(b"\x7fELFnmstatectl"));
}

#[tokio::test]
async fn without_nmstatectl_the_administrator_provides_it() {
    let world = World::new().await;
    let path = format!("/images/{ID}/pxe-initrd?version=4.18");
    let ramdisk = network_ramdisk("ymlFile0.yml");
    world.api.set(|answers| answers.ramdisk = Some(ramdisk));
    // The made-up root file system cannot be read.
    assert_eq!(world.get(&path).send().await.unwrap().status(), 503);

    let member = ignition::cpio::CpioMember {
        name: "/usr/bin/nmstatectl",
        mode: 0o100_755,
        data: b"program",
    };
    let archive = ignition::archive::pack(&[member]).unwrap();
    let file = format!("nmstatectl-{OS_VERSION}-x86_64");
    std::fs::write(world.data.path().join(file), archive).unwrap();
    let names = names(&world.bytes(&path).await);
    assert_eq!(names[2].0, "/usr/bin/nmstatectl");
}

#[tokio::test]
async fn s390x_has_files_of_its_own() {
    let options = LiveImageOptions {
        cpu_architecture: "s390x".to_owned(),
        ..LiveImageOptions::small()
    };
    let data = tempfile::tempdir().unwrap();
    let path = data
        .path()
        .join(format!("rhcos-full-iso-{OS_VERSION}-s390x.iso"));
    let written = testkit::iso::write(&path, &options).unwrap();
    let base = std::fs::read(&path).unwrap();
    let world = World::without_image(data, |settings| {
        let image = image_service::OsImage {
            cpu_architecture: "s390x".to_owned(),
            ..crate::world::os_image("")
        };
        settings.os_images = service::settings::JsonVar(vec![image]);
    });
    let world = world.await;
    world.ready().await;
    let part = |path: &str| {
        let (start, length) = written.files[path];
        let [start, length] = [start, length].map(|at| usize::try_from(at).unwrap());
        &base[start..start + length]
    };
    let list = world
        .bytes("/boot-artifacts/ins-file?version=4.18&arch=s390x")
        .await;
    assert_eq!(list, part("generic.ins"));
    let initrd = world
        .bytes(&format!("/images/{ID}/pxe-initrd?version=4.18&arch=s390x"))
        .await;
    assert!(initrd.starts_with(part("images/pxeboot/initrd.img")));
    let path = format!("/images/{ID}/s390x-initrd-addrsize?version=4.18");
    let response = world.get(&path).send().await.unwrap();
    let disposition = format!("attachment; filename={ID}-initrd.addrsize");
    assert_eq!(response.headers()[CONTENT_DISPOSITION], disposition);
    let bytes = response.bytes().await.unwrap();
    assert_eq!(bytes[..8], part("images/initrd.addrsize")[..8]);
    assert_eq!(bytes[8..], (initrd.len() as u64).to_be_bytes());

    // The full image has its areas inside the boot image.
    world.api.set(|answers| {
        let text = r#"[{"operation":"append","value":"debug"}]"#;
        answers.kernel_arguments = Some(text.to_owned());
    });
    let iso = world
        .bytes(&format!("/byid/{ID}/4.18/s390x/full.iso"))
        .await;
    assert_eq!(iso.len(), base.len());
    let copy = world.data.path().join("copy.iso");
    std::fs::write(&copy, iso).unwrap();
    let image = image_service::image::BaseImage::open(&copy).unwrap();
    assert!(
        image
            .kernel_arguments()
            .unwrap()
            .ends_with(" ignition.firstboot debug")
    );
    let config = ignition::archive::config(&image.embedded().unwrap()).unwrap();
    assert_eq!(config.unwrap(), br#"{"ignition":{"version":"3.1.0"}}"#);
}
