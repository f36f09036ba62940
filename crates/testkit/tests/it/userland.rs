//! Installers that are dynamically linked: they run on the libraries of their own image.

use std::path::{Path, PathBuf};

use preparation::{PreparationFailure, PreparationOutcome, prepare};
use testkit::release::{InstallerProgram, Userland, publish_with};

use crate::prepare::World;

const PROGRAM: &str = env!("CARGO_BIN_EXE_openshift-baremetal-install");
/// Before the plain installer was one for bare metal.
const VERSION: &str = "4.14.9";

fn dynamic() -> InstallerProgram {
    let userland = Userland::of(Path::new(PROGRAM)).unwrap();
    assert!(!userland.is_empty());
    InstallerProgram {
        program: PROGRAM.into(),
        userland,
    }
}

/// Prepares an installation with a release whose installer image holds `installer`.
async fn prepare_with(
    world: &mut World,
    installer: &InstallerProgram,
) -> Result<PreparationOutcome, PreparationFailure> {
    let registry = &world.registry;
    let client = registry.client();
    let published = publish_with(&client, &registry.address, "old", installer, VERSION).await;
    world.published = published.unwrap();
    prepare(&world.context().await, world.input()).await
}

/// Path of the installer in the cache.
fn kept(world: &World) -> PathBuf {
    let mut cache = std::fs::read_dir(world.root().join("installercache")).unwrap();
    let kept = cache.next().unwrap().unwrap().path();
    assert!(cache.next().is_none());
    kept
}

#[tokio::test]
async fn a_dynamic_installer_runs_on_its_images_libraries() {
    let mut world = World::new().await;
    let outcome = prepare_with(&mut world, &dynamic()).await.unwrap();
    assert_eq!(outcome.release.version, VERSION);
    assert!(!world.read("bootstrap.ign").await.is_empty());
    assert_eq!(world.leftovers(), 0);
    let libraries = kept(&world).join("lib");
    for name in ["libc.so.6", "libc.so.6.0"] {
        assert!(libraries.join(name).is_file(), "{name}");
    }
    let entries = std::fs::read_dir(libraries).unwrap();
    assert!(
        entries
            .map(Result::unwrap)
            .all(|entry| entry.file_type().unwrap().is_file())
    );
}

#[tokio::test]
async fn libraries_that_were_lost_are_taken_again() {
    let mut world = World::new().await;
    prepare_with(&mut world, &dynamic()).await.unwrap();
    let libraries = kept(&world).join("lib");
    std::fs::remove_dir_all(&libraries).unwrap();
    prepare(&world.context().await, world.input())
        .await
        .unwrap();
    assert!(libraries.join("libc.so.6").is_file());
    assert_eq!(world.leftovers(), 0);
}

/// Why an installation with this installer cannot be prepared.
async fn reason(installer: &InstallerProgram) -> String {
    let mut world = World::new().await;
    let failure = prepare_with(&mut world, installer).await.unwrap_err();
    let reason = failure.reason;
    let (_, digest) = world.published.installer.split_once('@').unwrap();
    for expected in [digest, "usr/bin/openshift-baremetal-install", VERSION] {
        assert!(reason.contains(expected), "{expected}: {reason}");
    }
    assert_eq!(
        std::fs::read_dir(world.root().join("installercache"))
            .unwrap()
            .count(),
        0
    );
    reason
}

#[tokio::test]
async fn an_image_without_the_loader_is_named() {
    let installer = InstallerProgram {
        userland: Userland::default(),
        ..dynamic()
    };
    let reason = reason(&installer).await;
    assert!(reason.contains("needs the loader /lib"), "{reason}");
}

/// Even though this machine has the library.
#[tokio::test]
async fn an_image_without_a_library_is_named() {
    let mut installer = dynamic();
    installer.userland = installer.userland.without("libc.so.6");
    let reason = reason(&installer).await;
    assert!(reason.contains("lacks its libraries"), "{reason}");
    assert!(reason.ends_with("libc.so.6"), "{reason}");
}

#[tokio::test]
async fn an_installer_for_another_machine_is_refused() {
    let (code, name) = if cfg!(target_arch = "aarch64") {
        (62, "x86_64")
    } else {
        (183, "aarch64")
    };
    let mut program = std::fs::read(PROGRAM).unwrap();
    program[18] = code;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("installer");
    std::fs::write(&path, program).unwrap();
    let reason = reason(&InstallerProgram {
        program: path,
        userland: Userland::default(),
    })
    .await;
    assert!(reason.contains(&format!("built for {name}")), "{reason}");
    assert!(reason.contains(std::env::consts::ARCH), "{reason}");
}

#[tokio::test]
async fn a_file_that_is_no_program_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("installer");
    std::fs::write(&path, "#!/bin/sh\necho this is a script\n").unwrap();
    let reason = reason(&InstallerProgram {
        program: path,
        userland: Userland::default(),
    })
    .await;
    assert!(reason.contains("not an ELF program"), "{reason}");
}
