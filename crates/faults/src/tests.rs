//! Campaign of a minimal store, whose calls come from several libraries.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::NamedTempFile;

use crate::{Campaign, DONE, FOLDER};

/// Stores a file that is renamed by a raw system call, which bypasses the C library.
fn put(folder: &Path, keeps: bool) -> io::Result<()> {
    let place = folder.join("place");
    if let Err(error) = fs::create_dir(&place)
        && error.kind() != io::ErrorKind::AlreadyExists
    {
        return Err(error);
    }
    let mut file = NamedTempFile::new_in(&place)?;
    if keeps {
        file.disable_cleanup(true);
    }
    file.write_all(b"content")?;
    file.as_file().sync_all()?;
    file.persist(place.join("name"))?;
    File::open(&place)?.sync_all()
}

fn run(keeps: bool) {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else {
        return;
    };
    // The retry succeeds.
    if put(&folder, keeps).is_err() {
        put(&folder, keeps).unwrap();
    }
    println!("{DONE}");
    std::process::abort();
}

#[test]
fn driver() {
    run(false);
}

#[test]
fn leaking_driver() {
    run(true);
}

/// Driver whose child runs without the shim.
#[test]
fn spawning_driver() {
    if std::env::var_os(FOLDER).is_some() {
        let mut child = Command::new("sh");
        let child = child
            .args(["-c", "echo it writes"])
            .env_remove("LD_PRELOAD");
        let output = child.output().unwrap();
        assert_eq!(output.stdout, b"it writes\n", "{}", output.status);
        run(false);
    }
}

fn state(folder: &Path) -> String {
    let names = fs::read_dir(folder.join("place")).unwrap();
    let names: Vec<_> = names.map(|it| it.unwrap().file_name()).collect();
    format!(
        "{names:?} {}",
        fs::read_to_string(folder.join("place/name")).unwrap()
    )
}

fn campaign(driver: &'static str) -> Campaign<impl Fn(&Path) -> String> {
    Campaign {
        driver,
        state,
        sample: None,
        ends_by_abort: true,
    }
}

#[test]
fn folders_without_synced_parent_are_named() {
    let campaign = campaign("tests::driver");
    // The folder itself is synced, its parent is not.
    assert_eq!(campaign.unsynced_folders().unwrap(), [Path::new("place")]);
}

#[test]
fn each_call_fails_once_with_each_error() {
    // One mkdir, create, write and rename each, and two fsync.
    assert_eq!(campaign("tests::driver").run().unwrap(), 12);
}

#[test]
fn children_run_without_the_shim() {
    assert_eq!(campaign("tests::spawning_driver").run().unwrap(), 12);
}

#[test]
fn left_over_files_are_found() {
    let error = campaign("tests::leaking_driver").run().unwrap_err();
    let error = format!("{error:?}");
    for fault in ["write 1", "fsync 1", "rename 1"] {
        assert!(error.contains(fault), "{error}");
    }
    assert!(error.contains("6 of 12"), "{error}");
}
