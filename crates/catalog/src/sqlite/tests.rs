//! `fixtures/index_db/index.db` was made by the loader of operator-registry 1.73.0, plus dependencies, a property and a
//! deprecated bundle. `catalog.jsonl` is the output of `opm migrate` 1.73.0 for it.

use std::convert::Infallible;

use super::*;
use crate::content::PackageModel;

const MIGRATED: &str = include_str!("../../fixtures/index_db/catalog.jsonl");

fn fixture() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/index_db/index.db")
}

type Packages = Vec<(String, Vec<Document>)>;

fn imported(database: &Path) -> Result<(Import, Packages), String> {
    let mut packages = Vec::new();
    let import = import(database, |name, documents| {
        packages.push((name.to_owned(), documents));
        Ok::<_, Infallible>(())
    });
    import
        .map(|import| (import, packages))
        .map_err(|e| e.to_string())
}

#[test]
fn documents_equal_those_of_opm_migrate() {
    let (import, packages) = imported(&fixture()).unwrap();
    assert_eq!(import.packages, 1);
    assert_eq!(import.left_out, ["acme.v0.9.0"]);
    assert!(import.notice.contains("deprecated"));
    let [(name, documents)] = packages.as_slice() else {
        panic!("{packages:?}");
    };
    assert_eq!(name, "acme");
    let jsons: Vec<&str> = documents.iter().map(|it| it.json.as_str()).collect();
    assert_eq!(jsons, MIGRATED.lines().collect::<Vec<_>>());
    assert!(PackageModel::assemble(documents).unwrap().is_some());
}

/// A database of migration version 5: no properties, dependencies or deprecations, and APIs of entries.
fn old(folder: &Path, version: i64) -> std::path::PathBuf {
    let file = folder.join(format!("{version}.db"));
    let connection = Connection::open(&file).unwrap();
    connection
        .execute_batch(
            r#"
            create table schema_migrations (version bigint, timestamp datetime);
            create table operatorbundle (name text primary key, csv text, bundle text, bundlepath text, skiprange text, version text);
            create table package (name text primary key, default_channel text);
            create table channel (name text, package_name text, head_operatorbundle_name text);
            create table channel_entry (entry_id integer primary key, channel_name text, package_name text, operatorbundle_name text, replaces integer, depth integer);
            create table api_provider (group_name text, version text, kind text, channel_entry_id integer);
            create table api_requirer (group_name text, version text, kind text, channel_entry_id integer);
            create table related_image (image text, operatorbundle_name text);
            insert into operatorbundle values
                ('p.v2', '', '', 'quay.io/p/bundle:2', '<2.0.0', '2.0.0'),
                ('p.v1', '{"kind":"ClusterServiceVersion"}', '{"kind":"ClusterServiceVersion","spec":{"version":"1.0.0"}} {"kind":"Service"}', null, null, null),
                ('p.v0', null, null, null, null, null);
            insert into package values ('p', 'stable');
            insert into channel values ('stable', 'p', 'p.v2');
            insert into channel_entry values
                (1, 'stable', 'p', 'p.v2', 2, 0), (2, 'stable', 'p', 'p.v1', 4, 2),
                (3, 'stable', 'p', 'p.v2', 4, 1), (4, 'stable', 'p', 'p.v0', null, 3);
            insert into api_provider values ('g', 'v1', 'K', 1), ('g', 'v1', 'K', 3);
            insert into api_requirer values ('g', 'v1', 'R', 2);
            insert into related_image values ('quay.io/p/server:2', 'p.v2');
            "#,
        )
        .unwrap();
    connection
        .execute("insert into schema_migrations values (?1, null)", [version])
        .unwrap();
    file
}

#[test]
fn older_migration_versions_are_read() {
    let temp = tempfile::tempdir().unwrap();
    let (import, packages) = imported(&old(temp.path(), 5)).unwrap();
    assert_eq!(import.left_out, [""; 0]);
    let documents = &packages[0].1;
    let package = PackageModel::assemble(documents).unwrap().unwrap();
    let channel = package.channel("stable").unwrap();
    let head = channel.head();
    assert_eq!((&*head.name, &*head.replaces), ("p.v2", "p.v1"));
    assert_eq!(head.skips, ["p.v0"]);
    assert_eq!(head.skip_range, "<2.0.0");
    assert_eq!(channel.entry("p.v1").unwrap().replaces, "p.v0");
    assert!(channel.entry("p.v0").is_none());
    let new = package.bundle("p.v2").unwrap();
    assert_eq!(new.provided_apis.len(), 1);
    assert_eq!(new.related_images[0].image, "quay.io/p/server:2");
    let old = package.bundle("p.v1").unwrap();
    assert_eq!(old.version_text, "1.0.0");
    assert_eq!(old.required_apis[0].kind, "R");
    let objects = old.properties.iter();
    let objects = objects.filter(|property| property.kind == "olm.bundle.object");
    assert_eq!(objects.count(), 2);
}

#[test]
fn unknown_migration_versions_are_refused() {
    let temp = tempfile::tempdir().unwrap();
    for version in [4, 14] {
        let wrong = imported(&old(temp.path(), version)).unwrap_err();
        assert!(
            wrong.contains(&format!("migration version {version}")),
            "{wrong}"
        );
    }
}

#[test]
fn other_files_are_refused_and_unchanged() {
    let temp = tempfile::tempdir().unwrap();
    let file = temp.path().join("index.db");
    assert!(imported(&file).is_err());
    assert!(!file.exists());
    for content in [&b""[..], b"schema: olm.package"] {
        std::fs::write(&file, content).unwrap();
        let wrong = imported(&file).unwrap_err();
        assert_eq!(wrong, "not a catalog database");
        assert_eq!(std::fs::read(&file).unwrap(), content);
    }
}

#[test]
fn malformed_bundles_are_named() {
    let temp = tempfile::tempdir().unwrap();
    let file = old(temp.path(), 5);
    let connection = Connection::open(&file).unwrap();
    let sql = "update operatorbundle set bundle = '{} {' where name = 'p.v1'";
    connection.execute(sql, []).unwrap();
    let wrong = imported(&file).unwrap_err();
    assert!(
        wrong.starts_with("bundle \"p.v1\": its objects are not JSON"),
        "{wrong}"
    );
}

#[test]
fn errors_of_the_callback_are_returned() {
    let failed = import(&fixture(), |_, _| Err("full")).unwrap_err();
    assert_eq!(failed.to_string(), "full");
}
