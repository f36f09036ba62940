//! A writer that is killed goes on where it was.

use std::process::{Child, Command};

use super::*;
use crate::archive::journal::{NAME, Records};

/// Tells the child where to write.
const FOLDER: &str = "MIRROR_TEST_FOLDER";
const LIMIT: u64 = 20 << 20;

fn sample() -> Sample {
    Sample::of(4, 6 << 20)
}

/// Not a test: what the next one kills.
#[test]
#[ignore = "runs as a child of the test of killed writers"]
fn child() {
    let Some(folder) = std::env::var_os(FOLDER) else {
        return;
    };
    let sample = sample();
    let writer = Writer::open(Path::new(&folder), sample.plan(LIMIT).unwrap()).unwrap();
    sample.fetch_all(&writer);
    writer.finish().unwrap();
}

fn start(folder: &Path) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "archive::tests::kill::child", "--ignored"]);
    command.env(FOLDER, folder).spawn().unwrap()
}

/// How much the journals below `folder` promise.
fn promised(folder: &Path) -> usize {
    let layouts = fs::read_dir(folder.join(".mirror.part"))
        .into_iter()
        .flatten();
    let whole = layouts.map(|layout| {
        let layout = layout.unwrap().path();
        let records = layout
            .join(NAME)
            .exists()
            .then(|| Records::read(&layout).unwrap());
        records.map_or(0, |it| it.blobs.len())
    });
    whole.sum()
}

#[test]
fn killed_writers_go_on() {
    let dir = tempfile::tempdir().unwrap();
    let (expected, folder) = (dir.path().join("a"), dir.path().join("b"));
    let sample = sample();
    sample.write(&expected, LIMIT);
    let mut kills = 0;
    loop {
        let before = promised(&folder);
        let mut child = start(&folder);
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break Some(status);
            }
            if promised(&folder) > before {
                break None;
            }
            std::thread::yield_now();
        };
        if let Some(status) = status {
            assert!(status.success());
            break;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        kills += 1;
        // Nothing is visible that is not whole.
        let visible = names(&folder);
        let whole = names(&expected);
        if visible.contains(&whole[0]) {
            assert!(whole.iter().all(|name| visible.contains(name)));
        }
        assert!(
            promised(&folder) >= before || visible.len() > 1,
            "what was whole is whole"
        );
    }
    assert!(kills > 1, "it was too fast to be killed");
    assert_eq!(names(&folder), names(&expected));
    for name in names(&expected) {
        assert!(
            fs::read(folder.join(&name)).unwrap() == fs::read(expected.join(&name)).unwrap(),
            "{name}"
        );
    }
}
