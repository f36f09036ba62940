//! Fault campaign: the cache while any one call to its file system fails.

use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use catalog::cache::{BuildError, CatalogCache, prepare};
use faults::{Campaign, DONE, FOLDER};

const TWO: NonZeroUsize = NonZeroUsize::new(2).unwrap();
/// Long after every file was written. Units: seconds since 1970.
const LATER: i64 = 1 << 40;
/// Attempts to prepare the cache.
const ATTEMPTS: usize = 5;

const CATALOG: &str = r#"
{"schema":"olm.package","name":"a","defaultChannel":"stable"}
{"schema":"olm.channel","package":"a","name":"stable","entries":[{"name":"a.v1"}]}
{"schema":"olm.bundle","package":"a","name":"a.v1","image":"quay.io/x/a:1","properties":[
  {"type":"olm.package","value":{"packageName":"a","version":"1.0.0"}}]}
"#;

/// Its folder is created, too.
fn cache(folder: &Path) -> PathBuf {
    folder.join("caches/one/cache")
}

/// Prepares the cache; returns its package count.
fn prepared(configs: &Path, cache: &Path) -> u32 {
    for _ in 0..ATTEMPTS {
        match prepare(configs, cache, TWO, LATER) {
            Ok(prepared) => return prepared.cache.package_count(),
            Err(BuildError::Io { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
    panic!("no recovery");
}

/// Runs in a child process; passes at once without a folder.
#[test]
fn driver() {
    let given = std::env::var_os(FOLDER).map(PathBuf::from);
    let own = tempfile::tempdir().unwrap();
    let folder = given.clone().unwrap_or_else(|| own.path().join("data"));
    // Outside the folder: reads do not fail here.
    let configs = folder.with_file_name("configs");
    fs::create_dir(&configs).unwrap();
    let write = |text: &str| fs::write(configs.join("catalog.json"), text).unwrap();
    write(CATALOG);
    let first = prepared(&configs, &cache(&folder));
    // Another package, in place of the first cache.
    write(&format!("{CATALOG}{}", CATALOG.replace("\"a", "\"b")));
    let second = prepared(&configs, &cache(&folder));
    assert!(second > first, "{first} {second}");
    assert_eq!(prepared(&configs, &cache(&folder)), second);
    if given.is_some() {
        println!("{DONE}");
        std::process::abort();
    }
}

/// All documents, verified as they are read.
fn state(folder: &Path) -> String {
    let cache = CatalogCache::open_any(&cache(folder)).unwrap();
    let json = cache.slice(cache.json()).unwrap();
    String::from_utf8(json.to_vec()).unwrap()
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
fn the_cache_is_whole_after_sampled_faults() {
    assert!(campaign(Some(3)).run().unwrap() > 0);
}

#[test]
#[ignore = "every fault of the cache; the sample runs always"]
fn the_cache_is_whole_after_any_single_fault() {
    let hits = campaign(None).run().unwrap();
    println!("{hits} faults");
    assert!(hits > 20);
}

#[test]
fn folders_are_durable_in_their_parents() {
    let none: [PathBuf; 0] = [];
    assert_eq!(campaign(None).unsynced_folders().unwrap(), none);
}
