//! Runs of the mirroring tool while any one call to their file systems fails.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use faults::{Campaign, DONE, FOLDER};
use mirror::archive::{self, ArchiveFormat, Contents, METADATA, MemberKind, Set, SetPlan};
use mirror::history::{MetadataStore, PreviousRuns};
use mirror::progress::RunProgress;
use mirror::results::{self, Forms};
use mirror::run::{self, PlannedArchives};
use mirror::workspace::Workspace;
use model::Error;
use model::image_set::ImageSet;
use oci::Digest;
use serde_json::json;

use crate::content::{push, push_catalog};
use crate::runs::{additional, image_set, setup};
use crate::server::Server;

/// A run is tried again this often; the second one succeeds.
const ATTEMPTS: usize = 3;
/// Units: bytes.
const LAYER: usize = 100_000;
/// Size of an archive, so that a set has several. Units: bytes.
const LIMIT: u64 = 130_000;
const ARCHIVES: &str = "deep/archives";
const STATE: &str = "deep/state";
const WORKSPACE: &str = "deep/workspace";

/// A source on a disk without faults.
async fn source() -> (Server, ImageSet) {
    let source = Server::start().await;
    push_catalog(&source, 1).await;
    let mut set = image_set(&source);
    for (number, name) in ["acme/a:v1", "acme/b:v1"].into_iter().enumerate() {
        let layer = vec![u8::try_from(number).unwrap(); LAYER];
        push(&source, name, layer, json!({})).await;
    }
    let images = additional(&source, &["acme/a:v1", "acme/b:v1"]);
    set.mirror
        .additional_images
        .extend(images.mirror.additional_images);
    (source, set)
}

/// From the source to archives, as the command does it.
async fn pack(source: &Server, set: &ImageSet, folder: &Path) -> Result<(), Error> {
    let (workspace, progress) = (folder.join(WORKSPACE), RunProgress::default());
    let _entered = Workspace::enter(&workspace)?;
    let setup = setup(source, set, &workspace, &progress);
    let store = MetadataStore::Folder(folder.join(STATE));
    let previous = PreviousRuns::new(store.read().await?);
    let prepared = setup.prepare(&previous, None).await?;
    let PlannedArchives::Archives(mut archives) =
        setup.plan_archives(&prepared, &previous, None)?
    else {
        // The metadata was written before.
        return archive::forget_finished(&folder.join(ARCHIVES));
    };
    archives.plan = split(&archives.plan, &prepared.content);
    let out = folder.join(ARCHIVES);
    setup.write_archives(*archives, Some(&store), &out).await?;
    Ok(())
}

/// The plan with smaller files than an image set can ask for.
fn split(plan: &SetPlan, content: &mirror::content::ImageContent) -> SetPlan {
    let members = plan.files.iter().flat_map(|file| &file.members);
    let mut extras = Vec::new();
    let mut metadata = None;
    for member in members {
        let path = &member.path;
        match &member.kind {
            MemberKind::Inline(bytes) if *path == METADATA => metadata = Some(bytes.clone()),
            MemberKind::Local(file) => {
                extras.push(archive::Extra::local(path, file.clone()).unwrap());
            }
            MemberKind::Blob(digest) if path.starts_with("catalogs/") => {
                extras.push(archive::Extra::blob(path, digest.clone(), member.size));
            }
            MemberKind::Inline(bytes) if path.starts_with("catalogs/") => {
                extras.push(archive::Extra::inline(path, bytes.clone()));
            }
            _ => {}
        }
    }
    let contents = Contents {
        format: ArchiveFormat::V1,
        metadata: metadata.unwrap(),
        extras,
        content,
        local: &BTreeMap::new(),
        carried: &BTreeSet::new(),
    };
    SetPlan::new(contents, LIMIT, None).unwrap()
}

/// The message of a failed run.
fn check_message(error: &Error, folder: &Path) {
    let text = error.chain();
    let causes = ["No space left on device", "is full", "Input/output error"];
    assert!(
        causes.iter().any(|it| text.contains(it)),
        "no cause: {text}"
    );
    assert!(text.contains(folder.to_str().unwrap()), "no file: {text}");
}

/// Named archives are complete, also where the first one is missing.
fn check_named(out: &Path) {
    for (name, bytes) in files(out) {
        if Path::new(&name).extension().is_none_or(|it| it != "tar") {
            continue;
        }
        let mut tar = tar::Archive::new(&bytes[..]);
        for entry in tar.entries().unwrap() {
            let mut entry = entry.unwrap();
            let path = entry.path().unwrap().display().to_string();
            let Some((_, blob)) = path.split_once("/blobs/sha256:") else {
                continue;
            };
            let mut content = Vec::new();
            entry.read_to_end(&mut content).unwrap();
            assert_eq!(Digest::sha256(&content).hex(), blob, "{name}");
        }
    }
}

/// All files below a folder, by their paths in it.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() {
            let below = files(&path).into_iter();
            found.extend(below.map(|(below, bytes)| (format!("{name}/{below}"), bytes)));
        } else {
            found.insert(name, fs::read(&path).unwrap());
        }
    }
    found
}

fn folder() -> Option<PathBuf> {
    std::env::var_os(FOLDER).map(PathBuf::from)
}

#[tokio::test]
async fn packing_driver() {
    let Some(folder) = folder() else {
        return;
    };
    let (source, set) = source().await;
    for _ in 0..ATTEMPTS {
        let Err(error) = pack(&source, &set, &folder).await else {
            println!("{DONE}");
            // As a kill does.
            std::process::abort();
        };
        println!("{}", error.chain());
        check_message(&error, &folder);
        check_named(&folder.join(ARCHIVES));
    }
    panic!("no recovery");
}

/// Files of a run for users and later runs. The source has another address in each.
fn packed(folder: &Path) -> String {
    drop(Workspace::enter(&folder.join(WORKSPACE)).unwrap());
    let out = folder.join(ARCHIVES);
    let report = archive::verify(&out, None, &RunProgress::default()).unwrap();
    let images = Set::open(&out).unwrap().content().unwrap().images;
    let metadata = fs::read(folder.join(STATE).join(METADATA)).unwrap();
    let metadata: serde_json::Value = serde_json::from_slice(&metadata).unwrap();
    let mut lines = vec![format!("{:?}", report.faults)];
    lines.extend(files(folder).into_keys());
    let images = images.into_iter().map(|it| it.wanted);
    lines.extend(images.map(|it| it.repository.to_string()));
    lines.push(metadata["pastMirror"]["sequence"].to_string());
    lines.join("\n")
}

#[tokio::test]
async fn publishing_driver() {
    let Some(folder) = folder() else {
        return;
    };
    let (source, set) = source().await;
    let beside = folder.with_file_name("beside");
    pack(&source, &set, &beside).await.unwrap();
    let target = Server::start().await;
    let undisturbed = publish(&source, &target, &beside, &beside).await.unwrap();
    let other = Server::start().await;
    for _ in 0..ATTEMPTS {
        match publish(&source, &other, &beside, &folder).await {
            Ok(results) => {
                let text = |results: &Path, server: &Server| {
                    let files = files(results).into_iter();
                    let files =
                        files.map(|(name, bytes)| (name, String::from_utf8(bytes).unwrap()));
                    let files =
                        files.map(|(name, text)| (name, text.replace(&server.address, "target")));
                    files.collect::<BTreeMap<_, _>>()
                };
                assert_eq!(text(&results, &other), text(&undisturbed, &target));
                println!("{DONE}");
                // As a kill does.
                std::process::abort();
            }
            Err(error) => {
                println!("{}", error.chain());
                check_message(&error, &folder);
            }
        }
    }
    panic!("no recovery");
}

/// From archives to a target, as the command does it: where the results are.
async fn publish(
    source: &Server,
    target: &Server,
    archives: &Path,
    folder: &Path,
) -> Result<PathBuf, Error> {
    let (set, progress) = (ImageSet::default(), RunProgress::default());
    let workspace = folder.join(WORKSPACE);
    let _entered = Workspace::enter(&workspace)?;
    let setup = setup(source, &set, &workspace, &progress);
    let (archives, to) = (Set::open(&archives.join(ARCHIVES))?, target.target());
    let run::PlannedPublication::Publish(publication) =
        run::plan_publication(archives, &to, true).await?
    else {
        panic!("a run that failed was remembered");
    };
    let mut outcome = run::publish(setup.context, *publication, &to).await?;
    let files = results::files(&outcome.results, &Forms::default())?;
    let time = u64::try_from(setup.context.now).unwrap();
    let results = results::write(&workspace, time, &files, &outcome.results.charts)?;
    outcome.record(&to).await?;
    Ok(results)
}

/// Only results are left, of one run or several.
fn published(folder: &Path) -> String {
    let workspace = folder.join(WORKSPACE);
    drop(Workspace::enter(&workspace).unwrap());
    let names = files(folder).into_keys();
    let mut names: Vec<_> = names
        .map(|name| match name.split_once("/results-") {
            Some((above, below)) => {
                let (_, below) = below.split_once('/').unwrap();
                format!("{above}/results/{below}")
            }
            None => name,
        })
        .collect();
    names.sort();
    names.dedup();
    names.join("\n")
}

fn packing(sample: Option<usize>) -> Campaign<impl Fn(&Path) -> String> {
    Campaign {
        driver: "campaign::packing_driver",
        state: packed,
        sample,
        ends_by_abort: true,
    }
}

fn publishing(sample: Option<usize>) -> Campaign<impl Fn(&Path) -> String> {
    Campaign {
        driver: "campaign::publishing_driver",
        state: published,
        sample,
        ends_by_abort: true,
    }
}

#[test]
fn archives_are_complete_after_each_fault() {
    assert!(packing(Some(1)).run().unwrap() > 0);
}

#[test]
fn results_are_complete_after_each_fault() {
    assert!(publishing(Some(1)).run().unwrap() > 0);
}

#[test]
#[ignore = "every fault of the archives; the sample runs always"]
fn archives_are_complete_after_a_fault_of_each_call() {
    let hits = packing(None).run().unwrap();
    println!("{hits} faults");
    assert!(hits > 100);
}

#[test]
#[ignore = "every fault of the workspace; the sample runs always"]
fn results_are_complete_after_a_fault_of_each_call() {
    let hits = publishing(None).run().unwrap();
    println!("{hits} faults");
    assert!(hits > 50);
}

#[test]
fn folders_are_durable_in_their_parents() {
    let none: [PathBuf; 0] = [];
    assert_eq!(packing(None).unsynced_folders().unwrap(), none);
    assert_eq!(publishing(None).unsynced_folders().unwrap(), none);
}
