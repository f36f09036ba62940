//! Packing with a real engine.

use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::context::ImageSource;
use super::engine::ImageEngine;
use super::list::{IMAGES, ServiceImage, agent_name};
use super::{elf, layout};
use crate::cargo::root;
use crate::scratch::ScratchFolder;

/// An image in the engine, removed on drop.
struct Packed {
    engine: ImageEngine,
    reference: String,
    digest: String,
}

impl Drop for Packed {
    fn drop(&mut self) {
        if let Err(error) = self.engine.remove(&self.reference) {
            eprintln!("{error:#}");
        }
    }
}

/// The engine; `None`, and a skipped test, where none can pack.
fn engine() -> Option<ImageEngine> {
    let engine = ImageEngine::find();
    if engine.is_none() {
        testkit::skipped("neither podman nor buildah works here");
    }
    engine
}

/// Writes a program with its own mtime and mode.
fn write_program(folder: &Path, image: &ServiceImage, hours: u64, mode: u32) {
    use std::os::unix::fs::PermissionsExt as _;
    let path = folder.join(image.program());
    fs::write(&path, elf::tests::program(&[1])).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    let time = SystemTime::now() - Duration::from_hours(hours);
    File::open(&path).unwrap().set_modified(time).unwrap();
}

fn pack(
    engine: ImageEngine,
    image: &'static ServiceImage,
    version: &str,
    hours: u64,
    mode: u32,
) -> Packed {
    let (programs, context) = (ScratchFolder::new().unwrap(), ScratchFolder::new().unwrap());
    write_program(programs.path(), image, hours, mode);
    let source = ImageSource::new(image, &root().join("deploy"), programs.path(), false);
    let containerfile = source.fill(context.path()).unwrap();
    let name = image.name;
    let pid = std::process::id();
    let reference = format!("localhost/atoll-test-{pid}/{name}:{version}-{hours}");
    let stored = engine
        .pack(&reference, version, &containerfile, context.path())
        .unwrap();
    assert!(stored.size_bytes > 0);
    Packed {
        engine,
        reference,
        digest: stored.digest,
    }
}

#[test]
fn the_same_input_gives_the_same_digest() {
    let Some(engine) = engine() else {
        return;
    };
    for image in IMAGES {
        if !image.is_program() {
            continue;
        }
        let first = pack(engine, image, "1.2.3", 1, 0o755);
        let second = pack(engine, image, "1.2.3", 700, 0o700);
        assert_eq!(first.digest, second.digest, "{}", image.name);
        assert_eq!(
            engine.inspect(&first.reference).unwrap().unwrap().digest,
            first.digest
        );
        let other = pack(engine, image, "1.2.4", 1, 0o755);
        assert_ne!(first.digest, other.digest, "{}", image.name);
    }
}

#[test]
fn the_shipped_image_service_has_the_agent() {
    let (programs, context) = (ScratchFolder::new().unwrap(), ScratchFolder::new().unwrap());
    let image = IMAGES.iter().find(|image| image.has_agent).unwrap();
    write_program(programs.path(), image, 1, 0o755);
    let source = ImageSource::new(image, &root().join("deploy"), programs.path(), true);
    assert!(source.inputs().is_err(), "there is no agent yet");
    fs::write(programs.path().join("atoll-agent"), "agent").unwrap();
    let inputs = source.inputs().unwrap();
    let containerfile = source.fill(context.path()).unwrap();
    let agent = context.path().join("agents").join(agent_name());
    assert_eq!(fs::read_to_string(agent).unwrap(), "agent");
    let instructions = fs::read_to_string(containerfile).unwrap();
    assert!(instructions.contains("\nCOPY agents /agents\n"));
    fs::write(programs.path().join("atoll-agent"), vec![0; (8 << 20) + 1]).unwrap();
    let other = ScratchFolder::new().unwrap();
    let refused = source.fill(other.path()).unwrap_err().to_string();
    assert!(refused.contains("8388609 bytes"), "{refused}");
    fs::write(programs.path().join("atoll-agent"), "other").unwrap();
    assert_ne!(source.inputs().unwrap(), inputs);
}

#[test]
fn a_layout_keeps_the_digest() {
    let Some(engine) = engine() else {
        return;
    };
    let packed = pack(engine, &IMAGES[0], "layout", 1, 0o755);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("image");
    layout::write(engine, &packed.reference, &packed.digest, &path).unwrap();
    let index = fs::read_to_string(path.join("index.json")).unwrap();
    assert!(index.contains(&packed.digest), "{index}");
    // Again: the earlier layout is replaced, without leftovers.
    fs::write(path.join("index.json"), "{}").unwrap();
    layout::write(engine, &packed.reference, &packed.digest, &path).unwrap();
    let entries = fs::read_dir(folder.path()).unwrap();
    assert_eq!(entries.count(), 1);
}

#[test]
fn a_missing_image_is_not_found() {
    let Some(engine) = engine() else {
        return;
    };
    let missing = engine.inspect("localhost/atoll-test/missing:0").unwrap();
    assert_eq!(missing, None);
}

#[test]
fn each_input_changes_the_hash() {
    let (programs, deploy) = (ScratchFolder::new().unwrap(), ScratchFolder::new().unwrap());
    let image = &IMAGES[0];
    let containerfile = deploy.path().join(image.name).join("Containerfile");
    fs::create_dir(containerfile.parent().unwrap()).unwrap();
    fs::write(&containerfile, "FROM scratch\n").unwrap();
    let inputs = || {
        let source = ImageSource::new(image, deploy.path(), programs.path(), false);
        source.inputs()
    };
    assert!(inputs().is_err(), "there is no program yet");
    write_program(programs.path(), image, 1, 0o755);
    let first = inputs().unwrap();
    write_program(programs.path(), image, 2, 0o700);
    assert_eq!(inputs().unwrap(), first);
    fs::write(&containerfile, "FROM scratch\nUSER 1\n").unwrap();
    let second = inputs().unwrap();
    assert_ne!(second, first);
    fs::write(programs.path().join(image.name), elf::tests::program(&[2])).unwrap();
    assert_ne!(inputs().unwrap(), second);
}
