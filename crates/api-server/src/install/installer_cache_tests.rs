use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::super::elf;
use super::super::launch::LIBRARIES;
use super::*;
use crate::files::LEFT_BEHIND_AFTER;

/// Something that looks like a program of 300 bytes, with a loader if one is given.
fn program(interpreter: Option<&str>) -> Vec<u8> {
    let mut program = elf::tests::header(interpreter);
    program.resize(300, 0);
    program
}

fn day(number: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_hours(24 * number)
}

/// A program on its way into `cache`.
fn made(cache: &Path) -> Scratch {
    let scratch = Scratch(cache.join(format!(".new-{}", Uuid::new_v4())));
    fs::create_dir_all(&scratch.0).unwrap();
    fs::write(scratch.0.join(KEPT_NAME), program(None)).unwrap();
    scratch
}

/// The same with a loader that has two names, of 50 bytes.
fn made_dynamic(cache: &Path) -> Scratch {
    let scratch = made(cache);
    let libraries = scratch.0.join(LIBRARIES);
    fs::write(scratch.0.join(KEPT_NAME), program(Some("/lib64/ld.so.2"))).unwrap();
    fs::create_dir(&libraries).unwrap();
    fs::write(libraries.join("ld.so.2"), [b'x'; 50]).unwrap();
    fs::hard_link(libraries.join("ld.so.2"), libraries.join("ld-2.so")).unwrap();
    scratch
}

/// Keeps a program of 300 bytes in `cache/name`, used on day `used`.
fn put(cache: &Path, name: &str, used: u64) {
    keep(&made(cache), &cache.join(name), day(used)).unwrap();
}

fn names(cache: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(cache)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn the_longest_unused_give_way() {
    let cache = tempfile::tempdir().unwrap();
    let cache = cache.path();
    for (name, used) in [("a", 3), ("b", 1), ("c", 2)] {
        put(cache, name, used);
    }
    shrink(cache, 0, SystemTime::UNIX_EPOCH).unwrap();
    shrink(cache, 900, SystemTime::UNIX_EPOCH).unwrap();
    assert_eq!(names(cache), ["a", "b", "c"]);
    drop(take(&cache.join("b"), day(4)).unwrap());
    shrink(cache, 899, SystemTime::UNIX_EPOCH).unwrap();
    assert_eq!(names(cache), ["a", "b"]);
    shrink(cache, 1, SystemTime::UNIX_EPOCH).unwrap();
    assert!(names(cache).is_empty());
}

#[test]
fn one_in_use_stays() {
    let cache = tempfile::tempdir().unwrap();
    let cache = cache.path();
    put(cache, "a", 1);
    put(cache, "b", 2);
    let first = take(&cache.join("a"), day(1)).unwrap().unwrap();
    let second = take(&cache.join("a"), day(1)).unwrap().unwrap();
    drop(first);
    shrink(cache, 1, SystemTime::UNIX_EPOCH).unwrap();
    assert_eq!(names(cache), ["a"]);
    assert!(cache.join("a").join(KEPT_NAME).is_file());
    drop(second);
    shrink(cache, 1, SystemTime::UNIX_EPOCH).unwrap();
    assert!(names(cache).is_empty());
}

#[test]
fn what_a_killed_process_left_goes_after_a_day() {
    let cache = tempfile::tempdir().unwrap();
    let cache = cache.path();
    put(cache, "a", 1);
    let left = cache.join(".new-b");
    fs::create_dir(&left).unwrap();
    let made = fs::metadata(&left).unwrap().modified().unwrap();
    shrink(cache, 0, made + LEFT_BEHIND_AFTER).unwrap();
    assert_eq!(names(cache), [".new-b", "a"]);
    shrink(cache, 0, made + LEFT_BEHIND_AFTER * 2).unwrap();
    assert_eq!(names(cache), ["a"]);
}

#[test]
fn what_is_not_whole_is_not_taken() {
    let cache = tempfile::tempdir().unwrap();
    let folder = cache.path().join("a");
    let file = folder.join(KEPT_NAME);
    assert!(take(&folder, day(1)).unwrap().is_none());
    fs::create_dir(&folder).unwrap();
    assert!(take(&folder, day(1)).unwrap().is_none());
    // Empty, cut short, with its loader missing, and for another machine.
    let dynamic = program(Some("/lib64/ld.so.2"));
    let mut foreign = program(None);
    foreign[18] ^= 0xff;
    for content in [&b""[..], &dynamic[..100], &dynamic, &foreign] {
        fs::write(&file, content).unwrap();
        assert!(take(&folder, day(1)).unwrap().is_none());
    }
}

#[test]
fn what_is_of_no_use_is_replaced() {
    let cache = tempfile::tempdir().unwrap();
    let cache = cache.path();
    let folder = cache.join("a");
    fs::create_dir(&folder).unwrap();
    for content in [
        None,
        Some(program(Some("/lib64/ld.so.2"))),
        Some(Vec::new()),
    ] {
        fs::remove_dir_all(&folder).ok();
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("left"), "x").unwrap();
        if let Some(content) = content {
            fs::write(folder.join(KEPT_NAME), content).unwrap();
        }
        keep(&made_dynamic(cache), &folder, day(1)).unwrap();
        assert!(take(&folder, day(2)).unwrap().unwrap().launch().is_whole());
        assert!(!folder.join("left").exists());
        assert_eq!(names(cache), ["a"]);
    }
}

#[test]
fn leftovers_of_the_extraction_are_not_kept() {
    let cache = tempfile::tempdir().unwrap();
    let cache = cache.path();
    let scratch = made_dynamic(cache);
    fs::create_dir(scratch.0.join(".fetch-a")).unwrap();
    fs::write(scratch.0.join(".fetch-a/0"), "x").unwrap();
    fs::write(scratch.0.join("1"), "x").unwrap();
    keep(&scratch, &cache.join("a"), day(1)).unwrap();
    assert_eq!(names(&cache.join("a")), [LIBRARIES, KEPT_NAME]);
}

#[test]
fn libraries_count_once_each() {
    let cache = tempfile::tempdir().unwrap();
    let cache = cache.path();
    keep(&made_dynamic(cache), &cache.join("a"), day(1)).unwrap();
    shrink(cache, 350, day(2)).unwrap();
    assert_eq!(names(cache), ["a"]);
    shrink(cache, 349, day(2)).unwrap();
    assert!(names(cache).is_empty());
}

#[test]
fn a_second_copy_changes_nothing() {
    let cache = tempfile::tempdir().unwrap();
    let cache = cache.path();
    let first = keep(&made(cache), &cache.join("a"), day(1)).unwrap();
    let known = fs::metadata(cache.join("a").join(KEPT_NAME)).unwrap();
    put(cache, "a", 2);
    assert_eq!(names(cache), ["a"]);
    assert!(is_same(&cache.join("a").join(KEPT_NAME), &known));
    drop(first);
}

/// Locks belong to open files, so threads meet as processes do.
#[test]
fn whoever_has_one_keeps_it_while_others_come_and_go() {
    let cache = tempfile::tempdir().unwrap();
    let cache = cache.path();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    shrink(cache, 1, day(3)).unwrap();
                }
            });
        }
        let users: Vec<_> = (0..4)
            .map(|user| {
                scope.spawn(move || {
                    let folder = cache.join(if user % 2 == 0 { "a" } else { "b" });
                    for _ in 0..50 {
                        let kept = match take(&folder, day(1)).unwrap() {
                            Some(kept) => kept,
                            None => keep(&made_dynamic(cache), &folder, day(2)).unwrap(),
                        };
                        std::thread::yield_now();
                        assert!(kept.launch().is_whole());
                        assert!(folder.join(KEPT_NAME).exists());
                    }
                })
            })
            .collect();
        let outcomes: Vec<_> = users
            .into_iter()
            .map(std::thread::ScopedJoinHandle::join)
            .collect();
        is_over.store(true, Ordering::Relaxed);
        for outcome in outcomes {
            outcome.unwrap();
        }
    });
}
