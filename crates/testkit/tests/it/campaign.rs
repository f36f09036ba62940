//! The cache of installers while one file system call fails.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use cluster_files::FileStore;
use faults::{Campaign, DONE, FOLDER};
use oci::Digest;
use preparation::{InstallContext, prepare};
use testkit::release::{InstallerProgram, Userland, publish_with};

use crate::prepare::{input, options};
use crate::registry::Registry;

/// A preparation is tried again this often.
const ATTEMPTS: usize = 5;
/// Longer than the grace period of leftovers.
const LONG_AGO: Duration = Duration::from_hours(48);

/// A release whose installer is linked dynamically and says `text`; it writes nothing else.
async fn publish(registry: &Registry, beside: &Path, version: &str, text: &str) -> String {
    let (source, program) = (beside.join("installer.c"), beside.join(text));
    let code = format!(
        "#include <stdio.h>\nint main(void) {{ fputs(\"level=fatal msg={text}\\n\", stderr); return 1; }}\n"
    );
    fs::write(&source, code).unwrap();
    let mut compiler = Command::new("cc");
    compiler.arg("-s").arg("-o").args([&program, &source]);
    assert!(compiler.status().unwrap().success());
    let installer = InstallerProgram {
        userland: Userland::of(&program).unwrap(),
        program,
    };
    let (client, address) = (registry.client(), &registry.address);
    let published = publish_with(&client, address, text, &installer, version).await;
    published.unwrap().release
}

/// Retries until the installer of `release` has started: earlier failures are the file system's.
async fn start(ctx: &InstallContext, registry: &Registry, release: &str, text: &str) {
    let mut last = String::new();
    for _ in 0..ATTEMPTS {
        let failure = prepare(ctx, input(registry, release)).await.unwrap_err();
        if failure.reason.ends_with(text) {
            return;
        }
        last = failure.reason;
    }
    panic!("no recovery: {last}");
}

async fn open(folder: &Path) -> FileStore {
    for _ in 0..ATTEMPTS {
        if let Ok(store) = FileStore::open(folder).await {
            return store;
        }
    }
    panic!("no recovery");
}

/// Where installers run: empty when none does.
const WORK_FOLDERS: &str = "install-config-generate";

/// The cache, and where installers run. The files of clusters have a campaign of their own.
fn folders(folder: &Path) -> [PathBuf; 2] {
    ["installercache", WORK_FOLDERS].map(|name| folder.join(name))
}

/// Leftovers of additions and removals, with an old modification time.
fn leftovers(folder: &Path) -> Vec<PathBuf> {
    let folders = folders(folder);
    let entries = folders.iter().flat_map(|it| fs::read_dir(it).unwrap());
    let paths = entries.map(|entry| entry.unwrap().path());
    let is_left = |path: &PathBuf| {
        let is_hidden = path.file_name().unwrap().as_encoded_bytes()[0] == b'.';
        is_hidden || path.parent().unwrap().ends_with(WORK_FOLDERS)
    };
    paths
        .filter(is_left)
        .inspect(|path| {
            let then = SystemTime::now() - LONG_AGO;
            File::open(path).unwrap().set_modified(then).unwrap();
        })
        .collect()
}

/// Runs in a process of its own.
#[tokio::test]
async fn driver() {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else {
        return;
    };
    let registry = Registry::start().await;
    let beside = tempfile::tempdir().unwrap();
    let first = publish(&registry, beside.path(), "4.18.7", "first").await;
    let second = publish(&registry, beside.path(), "4.18.8", "second").await;
    let mut options = options(open(&folder).await, &registry);
    options.cache_capacity_bytes = 1;
    let ctx = InstallContext::new(options);
    // Extracted, and taken from the cache; it gives way to the other one.
    for (release, text) in [(&first, "first"), (&first, "first"), (&second, "second")] {
        start(&ctx, &registry, release, text).await;
    }
    // The next preparation repeats failed removals, once their leftovers are old.
    for _ in 0..ATTEMPTS {
        leftovers(&folder);
        start(&ctx, &registry, &second, "second").await;
        if leftovers(&folder).is_empty() {
            break;
        }
    }
    println!("{DONE}");
    // As a crash does.
    std::process::abort();
}

/// All that is kept.
fn state(folder: &Path) -> String {
    let mut lines = Vec::new();
    for folder in folders(folder) {
        collect(&folder, &mut lines);
    }
    lines.sort();
    lines.join("\n").replace(&folder.display().to_string(), "")
}

fn collect(folder: &Path, lines: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            lines.push(path.display().to_string());
            collect(&path, lines);
        } else {
            let digest = Digest::sha256(&fs::read(&path).unwrap());
            lines.push(format!("{} {digest}", path.display()));
        }
    }
}

fn campaign(sample: Option<usize>) -> Campaign<impl Fn(&Path) -> String> {
    Campaign {
        driver: "campaign::driver",
        state,
        sample,
        ends_by_abort: true,
    }
}

#[test]
fn installers_are_whole_after_one_failed_call_of_each_kind() {
    assert!(campaign(Some(2)).run().unwrap() > 0);
}

#[test]
#[ignore = "every fault of the cache of installers: minutes; the sample runs always"]
fn installers_are_whole_after_any_failed_call() {
    let hits = campaign(None).run().unwrap();
    println!("{hits} faults");
    assert!(hits > 100);
}
