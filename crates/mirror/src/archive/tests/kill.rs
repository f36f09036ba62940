//! A killed writer resumes where it stopped.

use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, ExitStatus};

use rustix::process::{Signal, getpid, kill_process};

use super::*;
use crate::archive::journal::{NAME, Records};

/// Folder of the child process.
const FOLDER: &str = "MIRROR_TEST_FOLDER";
const LIMIT: u64 = 20 << 20;
/// After so many pieces the child is killed: more than there are between two lines of the journal.
const PIECES: usize = 100;

fn sample() -> Sample {
    Sample::of(4, 6 << 20)
}

/// Not a test: the child process of the next one.
#[test]
#[ignore = "runs as a child of the test of killed writers"]
fn child() {
    let Some(folder) = std::env::var_os(FOLDER) else {
        return;
    };
    let sample = sample();
    let writer = ArchiveWriter::open(Path::new(&folder), sample.plan(LIMIT).unwrap()).unwrap();
    let mut left = PIECES;
    for missing in writer.missing() {
        let mut blob = writer.blob(&missing.digest).unwrap().unwrap();
        let written = usize::try_from(blob.written()).unwrap();
        for piece in sample.blobs[&missing.digest][written..].chunks(PIECE) {
            blob.write(piece).unwrap();
            left -= 1;
            if left == 0 {
                kill_process(getpid(), Signal::KILL).unwrap();
            }
        }
        blob.finish().unwrap();
    }
    writer.finish().unwrap();
}

fn run(folder: &Path) -> ExitStatus {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "archive::tests::kill::child", "--ignored"]);
    command.env(FOLDER, folder).status().unwrap()
}

/// Bytes that the journal of the only layout records. Units: bytes.
fn promised(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder.join(".mirror.part")).unwrap();
    let mut layouts = entries.map(|it| it.unwrap().path());
    let layout = layouts.find(|it| it.join(NAME).exists()).unwrap();
    let records = Records::read(&layout).unwrap();
    records.blobs.values().map(|it| it.written).sum()
}

#[test]
fn killed_writers_go_on() {
    let dir = tempfile::tempdir().unwrap();
    let (expected, folder) = (dir.path().join("a"), dir.path().join("b"));
    sample().write(&expected, LIMIT);
    let (mut before, mut kills) = (0, 0);
    loop {
        let status = run(&folder);
        if status.success() {
            break;
        }
        assert_eq!(status.signal(), Some(Signal::KILL.as_raw()));
        // Incomplete files stay hidden, and complete blobs are not written again.
        assert_eq!(names(&folder), [".mirror.part"]);
        let now = promised(&folder);
        assert!(now > before);
        (before, kills) = (now, kills + 1);
    }
    assert!(kills > 3);
    assert_eq!(names(&folder), names(&expected));
    for name in names(&expected) {
        let same = fs::read(folder.join(&name)).unwrap() == fs::read(expected.join(&name)).unwrap();
        assert!(same, "{name}");
    }
}
