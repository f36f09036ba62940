use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cluster_files::STALE_AFTER;

use super::*;
use crate::elf;
use crate::launch::LIBRARIES;

/// A program header padded to 300 bytes, with a loader if one is given.
fn program(interpreter: Option<&str>) -> Vec<u8> {
    let mut program = elf::tests::header(interpreter);
    program.resize(300, 0);
    program
}

fn day(number: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_hours(24 * number)
}

/// A program before its insertion.
fn made(cache: &Path) -> ScratchFolder {
    let scratch = ScratchFolder(cache.join(format!(".new-{}", Uuid::new_v4())));
    fs::create_dir_all(&scratch.0).unwrap();
    fs::write(scratch.0.join(INSTALLER_NAME), program(None)).unwrap();
    scratch
}

/// The same with a loader of 50 bytes under two names.
fn made_dynamic(cache: &Path) -> ScratchFolder {
    let scratch = made(cache);
    let libraries = scratch.0.join(LIBRARIES);
    fs::write(
        scratch.0.join(INSTALLER_NAME),
        program(Some("/lib64/ld.so.2")),
    )
    .unwrap();
    fs::create_dir(&libraries).unwrap();
    fs::write(libraries.join("ld.so.2"), [b'x'; 50]).unwrap();
    fs::hard_link(libraries.join("ld.so.2"), libraries.join("ld-2.so")).unwrap();
    scratch
}

/// Inserts a program of 300 bytes as `cache/name`, last used on day `used`.
fn put(cache: &Path, name: &str, used: u64) {
    insert(&made(cache), &cache.join(name), day(used)).unwrap();
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
fn least_recently_used_programs_are_evicted() {
    let cache = tempfile::tempdir().unwrap();
    let cache = cache.path();
    for (name, used) in [("a", 3), ("b", 1), ("c", 2)] {
        put(cache, name, used);
    }
    shrink(cache, 0, SystemTime::UNIX_EPOCH, |_| {}).unwrap();
    shrink(cache, 900, SystemTime::UNIX_EPOCH, |_| {}).unwrap();
    assert_eq!(names(cache), ["a", "b", "c"]);
    drop(get(&cache.join("b"), day(4)).unwrap());
    shrink(cache, 899, SystemTime::UNIX_EPOCH, |_| {}).unwrap();
    assert_eq!(names(cache), ["a", "b"]);
    shrink(cache, 1, SystemTime::UNIX_EPOCH, |_| {}).unwrap();
    assert!(names(cache).is_empty());
}

#[test]
fn programs_in_use_are_not_evicted() {
    let cache = tempfile::tempdir().unwrap();
    let cache = cache.path();
    put(cache, "a", 1);
    put(cache, "b", 2);
    let first = get(&cache.join("a"), day(1)).unwrap().unwrap();
    let second = get(&cache.join("a"), day(1)).unwrap().unwrap();
    drop(first);
    shrink(cache, 1, SystemTime::UNIX_EPOCH, |_| {}).unwrap();
    assert_eq!(names(cache), ["a"]);
    assert!(cache.join("a").join(INSTALLER_NAME).is_file());
    drop(second);
    shrink(cache, 1, SystemTime::UNIX_EPOCH, |_| {}).unwrap();
    assert!(names(cache).is_empty());
}

#[test]
fn stale_folders_are_removed() {
    let cache = tempfile::tempdir().unwrap();
    let cache = cache.path();
    put(cache, "a", 1);
    let left = cache.join(".new-b");
    fs::create_dir(&left).unwrap();
    let made = fs::metadata(&left).unwrap().modified().unwrap();
    shrink(cache, 0, made + STALE_AFTER, |_| {}).unwrap();
    assert_eq!(names(cache), [".new-b", "a"]);
    shrink(cache, 0, made + STALE_AFTER * 2, |_| {}).unwrap();
    assert_eq!(names(cache), ["a"]);
}

#[test]
fn incomplete_programs_are_not_used() {
    let cache = tempfile::tempdir().unwrap();
    let folder = cache.path().join("a");
    let file = folder.join(INSTALLER_NAME);
    assert!(get(&folder, day(1)).unwrap().is_none());
    fs::create_dir(&folder).unwrap();
    assert!(get(&folder, day(1)).unwrap().is_none());
    // Empty, truncated, without its loader, and for another machine.
    let dynamic = program(Some("/lib64/ld.so.2"));
    let mut foreign = program(None);
    foreign[18] ^= 0xff;
    for content in [&b""[..], &dynamic[..100], &dynamic, &foreign] {
        fs::write(&file, content).unwrap();
        assert!(get(&folder, day(1)).unwrap().is_none());
    }
}

#[test]
fn incomplete_programs_are_replaced() {
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
            fs::write(folder.join(INSTALLER_NAME), content).unwrap();
        }
        insert(&made_dynamic(cache), &folder, day(1)).unwrap();
        assert!(
            get(&folder, day(2))
                .unwrap()
                .unwrap()
                .launch()
                .is_complete()
        );
        assert!(!folder.join("left").exists());
        assert_eq!(names(cache), ["a"]);
    }
}

#[test]
fn leftovers_of_the_extraction_are_removed() {
    let cache = tempfile::tempdir().unwrap();
    let cache = cache.path();
    let scratch = made_dynamic(cache);
    fs::create_dir(scratch.0.join(".fetch-a")).unwrap();
    fs::write(scratch.0.join(".fetch-a/0"), "x").unwrap();
    fs::write(scratch.0.join("1"), "x").unwrap();
    insert(&scratch, &cache.join("a"), day(1)).unwrap();
    assert_eq!(names(&cache.join("a")), [LIBRARIES, INSTALLER_NAME]);
}

#[test]
fn hard_links_count_once() {
    let cache = tempfile::tempdir().unwrap();
    let cache = cache.path();
    insert(&made_dynamic(cache), &cache.join("a"), day(1)).unwrap();
    shrink(cache, 350, day(2), |_| {}).unwrap();
    assert_eq!(names(cache), ["a"]);
    shrink(cache, 349, day(2), |_| {}).unwrap();
    assert!(names(cache).is_empty());
}

#[test]
fn second_insertion_keeps_the_first() {
    let cache = tempfile::tempdir().unwrap();
    let cache = cache.path();
    let first = insert(&made(cache), &cache.join("a"), day(1)).unwrap();
    let known = fs::metadata(cache.join("a").join(INSTALLER_NAME)).unwrap();
    put(cache, "a", 2);
    assert_eq!(names(cache), ["a"]);
    assert!(is_same(&cache.join("a").join(INSTALLER_NAME), &known));
    drop(first);
}

/// File locks belong to open files, so threads contend like processes.
#[test]
fn programs_in_use_survive_concurrent_eviction() {
    let cache = tempfile::tempdir().unwrap();
    let cache = cache.path();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    shrink(cache, 1, day(3), |_| {}).unwrap();
                }
            });
        }
        let users: Vec<_> = (0..4)
            .map(|user| {
                scope.spawn(move || {
                    let folder = cache.join(if user % 2 == 0 { "a" } else { "b" });
                    for _ in 0..50 {
                        let installer = match get(&folder, day(1)).unwrap() {
                            Some(installer) => installer,
                            None => insert(&made_dynamic(cache), &folder, day(2)).unwrap(),
                        };
                        std::thread::yield_now();
                        assert!(installer.launch().is_complete());
                        assert!(folder.join(INSTALLER_NAME).exists());
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
