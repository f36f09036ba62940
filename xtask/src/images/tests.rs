//! Packing with a real engine.

use std::fs::{self, File};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use super::context::{ImageSource, SourceFolders};
use super::engine::{ImageBuild, ImageEngine, Stored};
use super::list::{AGENT, BASE, IMAGES, SERVICES, ServiceImage, agent_name};
use super::{elf, layout};
use crate::cargo::root;
use crate::scratch::ScratchFolder;

/// An image in the engine, removed on drop.
struct Packed {
    engine: ImageEngine,
    reference: String,
    stored: Stored,
}

static NUMBER: AtomicU64 = AtomicU64::new(0);

impl Drop for Packed {
    fn drop(&mut self) {
        if let Err(error) = self.engine.remove(&self.reference) {
            eprintln!("{error:#}");
        }
    }
}

/// One test at a time has the engine: equal layers of images that are packed and saved at the same time are one to it, and
/// the form in which it has them is part of digests.
static ENGINE: Mutex<()> = Mutex::new(());

/// The engine, for this test alone; `None`, and a skipped test, where none can pack.
fn engine() -> Option<(ImageEngine, MutexGuard<'static, ()>)> {
    let guard = ENGINE.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(engine) = ImageEngine::find() else {
        testkit::skipped("neither podman nor buildah works here");
        return None;
    };
    Some((engine, guard))
}

/// Writes a program with its own mtime and mode.
fn write_program(folder: &Path, name: &str, hours: u64, mode: u32) {
    use std::os::unix::fs::PermissionsExt as _;
    let path = folder.join(name);
    fs::write(&path, elf::tests::program(&[1])).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    let time = SystemTime::now() - Duration::from_hours(hours);
    File::open(&path).unwrap().set_modified(time).unwrap();
}

/// Programs of the tests, with the instructions in `deploy`.
fn folders<'a>(deploy: &'a Path, programs: &'a Path) -> SourceFolders<'a> {
    SourceFolders {
        deploy,
        programs,
        is_shipped: false,
        pages: None,
    }
}

/// Packs `image` upon `base`, with programs of their own mtime and mode.
fn pack(
    engine: ImageEngine,
    image: &'static ServiceImage,
    base: Option<&Packed>,
    version: &str,
    (hours, mode): (u64, u32),
) -> Packed {
    let (programs, context) = (ScratchFolder::new().unwrap(), ScratchFolder::new().unwrap());
    for package in [SERVICES, AGENT] {
        write_program(programs.path(), package.program, hours, mode);
    }
    let deploy = root().join("deploy");
    let below = base.map(|base| &base.stored);
    let source = ImageSource::new(image, below, folders(&deploy, programs.path()));
    let containerfile = source.fill(context.path()).unwrap();
    let name = image.name;
    let pid = std::process::id();
    // Names of their own: tests run at the same time.
    let number = NUMBER.fetch_add(1, Relaxed);
    let reference = format!("localhost/atoll-test-{pid}/{name}:{version}-{number}");
    let stored = engine
        .pack(ImageBuild {
            reference: &reference,
            version,
            base: base.map(|base| base.reference.as_str()),
            containerfile: &containerfile,
            context: context.path(),
        })
        .unwrap();
    assert!(stored.size_bytes > 0);
    Packed {
        engine,
        reference,
        stored,
    }
}

/// The image below those of services.
fn pack_base(engine: ImageEngine) -> Packed {
    pack(engine, &BASE, None, "1.2.3", (1, 0o755))
}

#[test]
fn the_same_input_gives_the_same_digest() {
    let Some((engine, _guard)) = engine() else {
        return;
    };
    let below = pack_base(engine);
    for image in std::iter::once(&BASE).chain(IMAGES) {
        if image.program().is_none() {
            continue;
        }
        let base = image.is_service().then_some(&below);
        let pack = |version, program| pack(engine, image, base, version, program);
        let first = pack("1.2.3", (1, 0o755));
        let second = pack("1.2.3", (700, 0o700));
        let digest = &first.stored.digest;
        assert_eq!(digest, &second.stored.digest, "{}", image.name);
        assert_eq!(
            &engine.inspect(&first.reference).unwrap().unwrap().digest,
            digest
        );
        let other = pack("1.2.4", (1, 0o755));
        assert_ne!(digest, &other.stored.digest, "{}", image.name);
    }
}

#[test]
fn images_of_services_share_the_layer_of_their_program() {
    let Some((engine, _guard)) = engine() else {
        return;
    };
    let base = pack_base(engine);
    let shared = &base.stored.layers;
    assert_eq!(shared.len(), 1);
    let services: Vec<_> = IMAGES.iter().filter(|image| image.is_service()).collect();
    assert_eq!(services.len(), 6);
    for image in services {
        let packed = pack(engine, image, Some(&base), "1.2.3", (1, 0o755));
        let layers = &packed.stored.layers;
        // As few as possible: some storages copy all files for each.
        assert_eq!(layers.len(), 2, "{}", image.name);
        assert_eq!(&layers[..1], shared, "{}", image.name);
    }
    // The layer depends on the program alone.
    let later = pack(engine, &BASE, None, "1.2.4", (700, 0o700));
    assert_eq!(&later.stored.layers, shared);
}

#[test]
fn the_shipped_image_service_has_the_agent() {
    let (programs, context) = (ScratchFolder::new().unwrap(), ScratchFolder::new().unwrap());
    let image = IMAGES.iter().find(|image| image.has_agent).unwrap();
    let deploy = root().join("deploy");
    let folders = SourceFolders {
        is_shipped: true,
        ..folders(&deploy, programs.path())
    };
    let source = ImageSource::new(image, None, folders);
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
fn the_pages_are_in_the_image_of_the_web_ui() {
    let (pages, context) = (ScratchFolder::new().unwrap(), ScratchFolder::new().unwrap());
    let folder = pages.path().join("assets");
    fs::create_dir(&folder).unwrap();
    fs::write(pages.path().join("index.html"), "index").unwrap();
    fs::write(folder.join("a.js"), "one").unwrap();
    let deploy = root().join("deploy");
    let programs = ScratchFolder::new().unwrap();
    let source = |name: &str| {
        let image = IMAGES.iter().find(|image| image.name == name).unwrap();
        let folders = SourceFolders {
            pages: Some(pages.path()),
            ..folders(&deploy, programs.path())
        };
        ImageSource::new(image, None, folders)
    };
    let inputs = source("webui").inputs().unwrap();
    source("webui").fill(context.path()).unwrap();
    let script = context.path().join("root/app/assets/a.js");
    assert_eq!(fs::read_to_string(script).unwrap(), "one");
    let other = source("proxy").inputs().unwrap();
    fs::write(folder.join("a.js"), "two").unwrap();
    assert_ne!(source("webui").inputs().unwrap(), inputs);
    assert_eq!(source("proxy").inputs().unwrap(), other);
}

#[test]
fn a_layout_keeps_the_digest() {
    let Some((engine, _guard)) = engine() else {
        return;
    };
    let base = pack_base(engine);
    let packed = pack(engine, &IMAGES[0], Some(&base), "layout", (1, 0o755));
    let digest = &packed.stored.digest;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("image");
    layout::write(engine, &packed.reference, digest, &path).unwrap();
    let index = fs::read_to_string(path.join("index.json")).unwrap();
    assert!(index.contains(digest), "{index}");
    // Again: the earlier layout is replaced, without leftovers.
    fs::write(path.join("index.json"), "{}").unwrap();
    layout::write(engine, &packed.reference, digest, &path).unwrap();
    let entries = fs::read_dir(folder.path()).unwrap();
    assert_eq!(entries.count(), 1);
}

#[test]
fn a_missing_image_is_not_found() {
    let Some((engine, _guard)) = engine() else {
        return;
    };
    let missing = engine.inspect("localhost/atoll-test/missing:0").unwrap();
    assert_eq!(missing, None);
}

#[test]
fn each_input_changes_the_hash() {
    let (programs, deploy) = (ScratchFolder::new().unwrap(), ScratchFolder::new().unwrap());
    let containerfile = deploy.path().join(BASE.name).join("Containerfile");
    fs::create_dir(containerfile.parent().unwrap()).unwrap();
    fs::write(&containerfile, "FROM scratch\n").unwrap();
    let folders = folders(deploy.path(), programs.path());
    let inputs = || ImageSource::new(&BASE, None, folders).inputs();
    assert!(inputs().is_err(), "there is no program yet");
    write_program(programs.path(), SERVICES.program, 1, 0o755);
    let first = inputs().unwrap();
    write_program(programs.path(), SERVICES.program, 2, 0o700);
    assert_eq!(inputs().unwrap(), first);
    fs::write(&containerfile, "FROM scratch\nUSER 1\n").unwrap();
    let second = inputs().unwrap();
    assert_ne!(second, first);
    let program = programs.path().join(SERVICES.program);
    fs::write(program, elf::tests::program(&[2])).unwrap();
    assert_ne!(inputs().unwrap(), second);
}

#[test]
fn another_program_of_all_services_changes_the_hash() {
    let deploy = root().join("deploy");
    let inputs = |digest: &str| {
        let base = Stored::of_test(digest);
        let folders = folders(&deploy, Path::new("/none"));
        ImageSource::new(&IMAGES[0], Some(&base), folders)
            .inputs()
            .unwrap()
    };
    assert_eq!(inputs("sha256:1f"), inputs("sha256:1f"));
    assert_ne!(inputs("sha256:1f"), inputs("sha256:2e"));
}

#[test]
fn a_service_has_links_to_the_program_of_all() {
    let deploy = root().join("deploy");
    for image in IMAGES.iter().filter(|image| image.is_service()) {
        let context = ScratchFolder::new().unwrap();
        let source = ImageSource::new(image, None, folders(&deploy, Path::new("/none")));
        source.fill(context.path()).unwrap();
        let link = |path: &str| fs::read_link(context.path().join("root").join(path)).unwrap();
        assert_eq!(link(image.name), Path::new("atoll-services"));
        for name in image.aliases {
            let target = link(&format!("bin/{name}"));
            assert_eq!(target, Path::new("../atoll-services"));
        }
    }
}
