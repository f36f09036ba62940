//! `atoll mirror` on full disks, and on disks that fill up during a run.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::mirror_place::{
    IMAGE, LAYERS, Place, asked, holding, patient, refused, source, succeeds, wait,
};
use crate::server::Server;

/// Set in the mount namespace of the test.
const INSIDE: &str = "ATOLL_TEST_OWN_MOUNTS";
/// Units: bytes. Minimum size of a tmpfs.
const PAGE: u64 = 4096;
const PLENTY: u64 = 64 << 20;

/// Whether the test may mount; otherwise runs it again in a mount namespace, if possible.
fn may_mount(test: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    let unshare = |own: &[&str]| {
        let mut command = Command::new("unshare");
        command.arg("--mount").args(own);
        command
    };
    let ways: [&[&str]; 2] = [&[], &["--map-root-user"]];
    let is_possible = |way: &&&[&str]| {
        let tried = unshare(way)
            .args(["mount", "-t", "tmpfs", "tmpfs", "/mnt"])
            .output();
        tried.is_ok_and(|it| it.status.success())
    };
    let Some(way) = ways.iter().find(is_possible) else {
        testkit::skipped("mounts are not permitted");
        return false;
    };
    let mut again = unshare(way);
    again.arg(std::env::current_exe().unwrap());
    again.args(["--exact", test]).env(INSIDE, "1");
    let done = again.output().unwrap();
    let printed = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success(), "{printed}");
    false
}

/// A tmpfs of a given size.
struct Disk<'a>(&'a Path);

impl<'a> Disk<'a> {
    fn mount(folder: &'a Path, size: u64) -> Self {
        fs::create_dir_all(folder).unwrap();
        let size = format!("size={size}");
        Self::done(
            Command::new("mount")
                .args(["-t", "tmpfs", "-o", &size, "tmpfs"])
                .arg(folder),
        );
        Self(folder)
    }

    fn grow(&self) {
        let size = format!("remount,size={PLENTY}");
        Self::done(Command::new("mount").args(["-o", &size]).arg(self.0));
    }

    /// Fills the disk.
    fn fill(&self) {
        let mut filler = File::create(self.0.join("filler")).unwrap();
        while filler.write_all(&[0; 512]).is_ok() {}
    }

    fn make_room(&self) {
        fs::remove_file(self.0.join("filler")).unwrap();
    }

    fn done(command: &mut Command) {
        assert!(command.status().unwrap().success(), "{command:?}");
    }
}

impl Drop for Disk<'_> {
    fn drop(&mut self) {
        Command::new("umount").arg(self.0).status().ok();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_filled_by_others_is_reported_and_the_run_resumes() {
    if !may_mount("mirror_full::a_disk_filled_by_others_is_reported_and_the_run_resumes") {
        return;
    }
    let server = source().await;
    let blobs = format!("{IMAGE}/blobs/");
    let source = holding(&server, "GET", &blobs, 3).await;
    let place = Place::of_image(&source);
    let out = place.path("out");
    let disk = Disk::mount(&out, 2 << 20);
    let mut command = place.pack();
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut run = command.spawn().unwrap();
    wait(&mut run, || asked(&source, "GET", &blobs) > 3).await;
    disk.fill();
    source.release();
    let failed = tokio::task::spawn_blocking(move || run.wait_with_output().unwrap());
    let failed = failed.await.unwrap();
    let printed = String::from_utf8_lossy(&failed.stderr).into_owned();
    assert_eq!(failed.status.code(), Some(1), "{printed}");
    assert!(
        printed.contains(&format!("{} is full", out.display())),
        "{printed}"
    );
    assert_eq!(place.archives(), Vec::<String>::new());
    disk.make_room();
    let before = asked(&source, "GET", &blobs);
    succeeds(place.pack()).await;
    assert_eq!(place.archives(), ["mirror_seq1_000000.tar"]);
    let again = asked(&source, "GET", &blobs) - before;
    assert!(again <= 5, "fetched blobs are not fetched again: {again}");
    place.verify().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn full_folders_are_reported_and_the_run_resumes() {
    if !may_mount("mirror_full::full_folders_are_reported_and_the_run_resumes") {
        return;
    }
    let server = source().await;
    let source = patient(&server).await;
    let blobs = format!("{IMAGE}/blobs/");

    // The workspace, in which catalogs are read.
    let place = Place::of_catalog(&source);
    let workspace = place.path("workspace");
    let disk = Disk::mount(&workspace, PAGE);
    let printed = refused(place.pack()).await;
    assert!(printed.contains(workspace.to_str().unwrap()), "{printed}");
    assert!(printed.contains("No space left"), "{printed}");
    disk.grow();
    succeeds(place.pack()).await;
    place.verify().await;
    drop(disk);

    // The metadata store.
    let place = Place::of_image(&source);
    let state = place.path("state");
    let disk = Disk::mount(&state, PAGE);
    disk.fill();
    let before = asked(&source, "GET", &blobs);
    let printed = refused(place.pack()).await;
    assert!(
        printed.contains(state.join("publish/.metadata.json").to_str().unwrap()),
        "{printed}"
    );
    disk.make_room();
    succeeds(place.pack()).await;
    let fetched = asked(&source, "GET", &blobs) - before;
    assert_eq!(fetched, LAYERS + 1, "once each");
    place.verify().await;
    drop(disk);

    // The workspace, into which results are written.
    let target = Server::start().await;
    let to = patient(&target).await;
    let workspace = place.path("workspace");
    let disk = Disk::mount(&workspace, PAGE);
    let printed = refused(place.publish(&to)).await;
    let expected = format!("of the results to {}", workspace.display());
    assert!(
        printed.contains(&expected) && printed.contains("No space left"),
        "{printed}"
    );
    disk.grow();
    succeeds(place.publish(&to)).await;
    let results = fs::read_dir(&workspace).unwrap();
    let mut names = results.map(|it| it.unwrap().file_name().into_string().unwrap());
    let results = names.find(|it| it.starts_with("results-")).unwrap();
    assert!(
        workspace
            .join(results)
            .join("imageContentSourcePolicy.yaml")
            .exists()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_error_is_reported_and_the_run_resumes() {
    let server = source().await;
    let source = patient(&server).await;
    let place = Place::of_image(&source);
    // A file size limit returns write errors, the closest to a full disk without privileges.
    let pack = place.pack();
    let mut limited = Command::new("sh");
    limited.args(["-c", "trap '' XFSZ; ulimit -f 100; exec \"$@\"", "sh"]);
    limited.arg(pack.get_program()).args(pack.get_args());
    let printed = refused(limited).await;
    assert!(printed.contains("not possible there"), "{printed}");
    assert_eq!(place.archives(), Vec::<String>::new());
    succeeds(place.pack()).await;
    assert_eq!(place.archives(), ["mirror_seq1_000000.tar"]);
    place.verify().await;
}
