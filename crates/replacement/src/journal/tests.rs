use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use chrono::DateTime;
use etcd::quorum::MemberId;
use faults::{Campaign, DONE, FOLDER};
use model::node_replacement::{ReplacementKind, ReplacementState};
use proptest::prelude::*;

use super::*;
use crate::case::{ReplacementCase, ReplacementRequest};
use crate::progress::{ReplaceStepOutcome, ReplacementEvent, StepIntent};
use crate::step_id::StepId;
use crate::store::ReplacementStore;
use crate::view::NodePlace;

fn request() -> ReplacementRequest {
    ReplacementRequest {
        node: "control-2".to_owned(),
        new: None,
        is_unwanted: false,
        confirmed_off_by: None,
        also_lost: BTreeSet::new(),
        skips_snapshot: false,
    }
}

fn case() -> ReplacementCase {
    let place = NodePlace {
        name: "control-2".to_owned(),
        address: "192.0.2.12".parse().unwrap(),
    };
    ReplacementCase {
        kind: ReplacementKind::Failed,
        old: place.clone(),
        new: place,
        targets: BTreeSet::from([MemberId(7)]),
        lost: BTreeSet::from(["control-2".to_owned()]),
        desired_voters: 3,
        has_machine_api: true,
        is_operator_managed: true,
        machine: Some("machine-2".to_owned()),
        host: Some("host-2".to_owned()),
    }
}

fn entry_of(event: ReplacementEvent) -> ReplacementEntry {
    let at = DateTime::from_timestamp(1_700_000_000, 0).unwrap();
    ReplacementEntry { at, event }
}

fn started(step: StepId) -> ReplacementEntry {
    entry_of(ReplacementEvent::Started {
        step,
        intent: StepIntent {
            was_pool_paused: (step == StepId::PausePool).then_some(true),
            ..StepIntent::default()
        },
    })
}

fn finished(step: StepId) -> ReplacementEntry {
    entry_of(ReplacementEvent::Finished {
        step,
        was_done: false,
        outcome: ReplaceStepOutcome::default(),
    })
}

/// Entries after the first one.
fn entries() -> Vec<ReplacementEntry> {
    vec![
        started(StepId::TakeSnapshot),
        finished(StepId::TakeSnapshot),
        started(StepId::PausePool),
        entry_of(ReplacementEvent::Stopped {
            step: StepId::PausePool,
            reason: "a text with \"quotes\"\nand lines".to_owned(),
        }),
        started(StepId::PausePool),
        finished(StepId::PausePool),
        finished(StepId::RemoveMember),
        finished(StepId::PromoteMember),
        entry_of(ReplacementEvent::Completed),
    ]
}

/// A folder with a journal of all entries. Its bytes, and the length after each entry.
fn whole(root: &Path) -> (Vec<u8>, Vec<usize>) {
    let store = ReplacementStore::open(root).unwrap();
    let now = entry_of(ReplacementEvent::Aborted).at;
    let mut replacement = store.begin(request(), case(), &[], now).unwrap();
    let path = root.join("0001-control-2/journal");
    let length = || usize::try_from(fs::metadata(&path).unwrap().len()).unwrap();
    let mut lengths = vec![length()];
    for entry in entries() {
        replacement.append(&entry).unwrap();
        lengths.push(length());
    }
    assert_eq!(replacement.progress(), &read(&path).unwrap().0);
    (fs::read(&path).unwrap(), lengths)
}

fn replayed(count: usize) -> ReplacementProgress {
    let opened = entry_of(ReplacementEvent::Opened {
        format: 1,
        request: Box::new(request()),
        case: Box::new(case()),
    });
    let mut progress = ReplacementProgress::open(&opened).unwrap();
    entries()
        .iter()
        .take(count)
        .for_each(|it| progress.apply(it));
    progress
}

#[test]
fn a_journal_that_was_cut_at_any_byte_is_that_of_its_complete_lines() {
    let dir = tempfile::tempdir().unwrap();
    let (bytes, lengths) = whole(dir.path());
    let folder = dir.path().join("0001-control-2");
    let path = folder.join(NAME);
    for cut in 0..=bytes.len() {
        fs::write(&path, &bytes[..cut]).unwrap();
        let complete = lengths.iter().filter(|length| **length <= cut).count();
        let opened = ReplacementJournal::open(&folder);
        if complete == 0 {
            assert!(
                matches!(opened, Err(JournalError::NoBeginning { .. })),
                "{cut}"
            );
            continue;
        }
        let (mut journal, progress) = opened.unwrap();
        assert_eq!(progress, replayed(complete - 1), "{cut}");
        // The next entry follows the complete ones.
        journal
            .append(&entry_of(ReplacementEvent::Aborted))
            .unwrap();
        let (progress, _) = read(&path).unwrap();
        assert_eq!(progress.state, ReplacementState::Aborted, "{cut}");
    }
}

#[test]
fn a_damaged_line_before_others_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let (bytes, lengths) = whole(dir.path());
    let path = dir.path().join("0001-control-2").join(NAME);
    let damaged = |at: usize| {
        let mut bytes = bytes.clone();
        bytes[at] ^= 1;
        fs::write(&path, bytes).unwrap();
        read(&path)
    };
    for (number, start) in [0].iter().chain(&lengths).enumerate().take(lengths.len()) {
        let found = damaged(start + 12);
        if number + 1 == lengths.len() {
            assert_eq!(found.unwrap().0, replayed(number - 1));
        } else {
            let offset = *start;
            let error = found.unwrap_err();
            assert!(
                matches!(error, JournalError::Damaged { offset: found, .. } if found == offset),
                "{error}"
            );
        }
    }
    // All replacements count: a damaged one is not taken for finished.
    damaged(lengths[0] + 12).unwrap_err();
    let store = ReplacementStore::open(dir.path()).unwrap();
    store.list().unwrap_err();
}

proptest! {
    #[test]
    fn any_bytes_after_the_entries_are_read_or_refused(tail: Vec<u8>) {
        let dir = tempfile::tempdir().unwrap();
        let (bytes, _) = whole(dir.path());
        let path = dir.path().join("0001-control-2").join(NAME);
        fs::write(&path, [&bytes[..], &tail].concat()).unwrap();
        let (progress, length) = read(&path).unwrap();
        prop_assert_eq!(progress.state, ReplacementState::Completed);
        prop_assert_eq!(length, bytes.len() as u64);
    }

    #[test]
    fn any_bytes_are_no_journal(bytes: Vec<u8>) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(NAME);
        fs::write(&path, bytes).unwrap();
        let is_none = matches!(read(&path), Err(JournalError::NoBeginning { .. }));
        prop_assert!(is_none);
    }
}

#[test]
fn the_first_intent_of_a_step_and_the_last_stop_count() {
    let progress = replayed(4);
    assert_eq!(progress.stopped.as_ref().unwrap().0, StepId::PausePool);
    assert_eq!(progress.was_pool_paused(), Some(true));
    let mut again = replayed(5);
    assert_eq!(again.stopped, None);
    // A later run finds the pool paused by the first one.
    again.apply(&entry_of(ReplacementEvent::Started {
        step: StepId::PausePool,
        intent: StepIntent {
            was_pool_paused: Some(false),
            ..StepIntent::default()
        },
    }));
    assert_eq!(again.was_pool_paused(), Some(true));
    let window = replayed(7).window.unwrap();
    assert_eq!(window.until, None);
    assert!(replayed(8).window.unwrap().until.is_some());
}

#[test]
fn journals_are_bounded_and_later_formats_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (bytes, _) = whole(dir.path());
    let folder = dir.path().join("0001-control-2");
    let path = folder.join(NAME);
    // limit: bytes of a journal of a replacement
    let limit = usize::try_from(MAX_JOURNAL_BYTES).unwrap();
    let mut padded = bytes.clone();
    padded.resize(limit, b'x');
    fs::write(&path, &padded).unwrap();
    read(&path).unwrap();
    padded.push(b'x');
    fs::write(&path, &padded).unwrap();
    read(&path).unwrap_err();
    // An entry that does not fit changes nothing.
    fs::write(&path, &bytes).unwrap();
    let (mut journal, _) = ReplacementJournal::open(&folder).unwrap();
    let reason = "x".repeat(limit);
    let step = StepId::TakeSnapshot;
    let large = entry_of(ReplacementEvent::Stopped { step, reason });
    journal.append(&large).unwrap_err();
    assert_eq!(fs::read(&path).unwrap(), bytes);

    let text = String::from_utf8(bytes).unwrap();
    let first = text.lines().next().unwrap()[CHECKSUM..].replace("\"format\":1", "\"format\":2");
    let line = format!("{:08x} {first}\n", crc32fast::hash(first.as_bytes()));
    fs::write(&path, line).unwrap();
    assert!(matches!(read(&path), Err(JournalError::NoBeginning { .. })));
}

#[test]
fn one_process_has_the_folder_and_unfinished_replacements_are_found() {
    let dir = tempfile::tempdir().unwrap();
    let store = ReplacementStore::open(dir.path()).unwrap();
    let second = ReplacementStore::open(dir.path());
    assert!(
        matches!(second, Err(JournalError::Locked { .. })),
        "{second:?}"
    );
    let now = entry_of(ReplacementEvent::Aborted).at;
    let mut first = store.begin(request(), case(), &[], now).unwrap();
    let second = store.begin(request(), case(), &[], now).unwrap();
    assert_ne!(first.id, second.id);
    assert_eq!(store.unfinished(&first.id).unwrap(), [second.id.as_str()]);
    first.append(&entry_of(ReplacementEvent::Aborted)).unwrap();
    assert!(store.unfinished(&second.id).unwrap().is_empty());
    // A folder from a run that was killed before its first entry.
    fs::create_dir(dir.path().join("0003-x")).unwrap();
    fs::write(dir.path().join("0003-x").join(NAME), "half").unwrap();
    assert_eq!(store.list().unwrap().len(), 2);
    drop(store);
    // A child of another test has the lock, too, until it starts its program.
    let store = loop {
        match ReplacementStore::open(dir.path()) {
            Err(JournalError::Locked { .. }) => std::thread::yield_now(),
            opened => break opened.unwrap(),
        }
    };
    assert_eq!(
        store.begin(request(), case(), &[], now).unwrap().id,
        "0004-control-2"
    );
}

#[test]
fn records_are_private_and_those_of_another_name_are_given() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    let store = ReplacementStore::open(dir.path()).unwrap();
    let now = entry_of(ReplacementEvent::Aborted).at;
    let replacement = store.begin(request(), case(), &[], now).unwrap();
    let saved = [
        serde_json::json!({"kind": "Secret"}),
        serde_json::json!({"kind": "Machine"}),
    ];
    assert!(replacement.new_records().unwrap().is_empty());
    let paths = replacement.save_records(&saved).unwrap();
    assert_eq!(replacement.new_records().unwrap(), saved);
    for path in paths {
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let folder = path.parent().unwrap().metadata().unwrap();
        assert_eq!(folder.permissions().mode() & 0o777, 0o700);
    }
    let mut other = case();
    other.new.name = "control-4".to_owned();
    let given = [serde_json::json!({"kind": "Secret", "a": 1})];
    let replacement = store.begin(request(), other.clone(), &given, now).unwrap();
    replacement.save_records(&saved).unwrap();
    assert_eq!(replacement.new_records().unwrap(), given);
    let none = store.begin(request(), other, &[], now).unwrap();
    none.save_records(&saved).unwrap();
    assert!(none.new_records().unwrap().is_empty());
}

/// Driver of the campaign: appends all entries, each again after a fault, as the next run does.
#[test]
fn driver() {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else {
        return;
    };
    let now = entry_of(ReplacementEvent::Aborted).at;
    let mut caused: Vec<ReplacementEntry> = Vec::new();
    let begin = || {
        let store = ReplacementStore::open(&folder)?;
        match store.list()?.pop() {
            Some((id, _)) => store.resume(&id),
            None => store.begin(request(), case(), &[], now),
        }
    };
    let mut replacement = begin().or_else(|_| begin()).unwrap();
    for entry in entries() {
        if replacement.append(&entry).is_err() {
            drop(replacement);
            replacement = begin().or_else(|_| begin()).unwrap();
            // Nothing that was acknowledged is lost.
            let expected = replayed(caused.len());
            let with_torn = replayed(caused.len() + 1);
            let found = replacement.progress();
            assert!(*found == expected || *found == with_torn, "{found:?}");
            if *found == expected {
                replacement.append(&entry).unwrap();
            }
        }
        caused.push(entry);
    }
    println!("{DONE}");
    std::process::abort();
}

/// Slow: some hundred processes.
#[test]
fn no_entry_is_lost_by_any_fault_of_the_disk() {
    let campaign = Campaign {
        driver: "journal::tests::driver",
        state: |folder: &Path| {
            let store = ReplacementStore::open(folder).unwrap();
            let all = store.list().unwrap();
            let finished = all
                .iter()
                .filter(|(_, it)| it.state == ReplacementState::Completed);
            let progress = finished.map(|(_, it)| serde_json::to_string(it).unwrap());
            progress.collect::<Vec<_>>().join("\n")
        },
        sample: None,
        ends_by_abort: true,
    };
    assert_eq!(
        campaign.unsynced_folders().unwrap(),
        [""; 0].map(PathBuf::from)
    );
    assert!(campaign.run().unwrap() > 20);
}
