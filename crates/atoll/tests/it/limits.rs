//! The documented limits match those that the servers print.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

const SERVERS: [&str; 6] = [
    "api-server",
    "image-service",
    "registry",
    "catalog-server",
    "webui",
    "proxy",
];

/// Output of `atoll serve SERVER settings ARGUMENTS` with default settings.
fn printed(server: &str, arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_atoll"));
    command.env_clear().args(["serve", server, "settings"]);
    let output = command.args(arguments).output().unwrap();
    assert!(output.status.success(), "{server}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The cells of a table's rows, without its head.
fn rows(table: &str) -> Vec<Vec<String>> {
    let cells = |line: &str| {
        line.split(" | ")
            .map(|cell| cell.trim_matches(['|', ' ']).to_owned())
            .collect()
    };
    table.lines().skip(2).map(cells).collect()
}

#[test]
fn the_documented_limits_are_the_printed_ones() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/limits.md");
    let documented = std::fs::read_to_string(path).unwrap();
    for server in SERVERS {
        let section = format!("\n## {server}\n\n{}", printed(server, &["--limits"]));
        assert!(
            documented.contains(&section),
            "docs/limits.md is stale: run `cargo xtask codegen`. It should contain:\n{section}"
        );
    }
}

#[test]
fn limits_have_unique_names_settings_that_exist_and_shares() {
    for server in SERVERS {
        let reference = printed(server, &[]);
        let mut names = BTreeSet::new();
        for row in rows(&printed(server, &["--limits"])) {
            let [name, _value, per, setting, _answer, share] = &row[..] else {
                panic!("{server}: {row:?}");
            };
            assert!(names.insert(name.clone()), "{server} has {name:?} twice");
            let of_share = share.split('`').nth(1).map(|name| format!("`{name}`"));
            for setting in [setting, &of_share.unwrap_or_default()] {
                assert!(
                    setting.is_empty() || reference.contains(&format!("| {setting} |")),
                    "{server}: {name:?} names {setting}, which is no setting"
                );
            }
            let is_shared = ["server", "replica", "queue", "upstream"].contains(&per.as_str());
            assert!(
                !is_shared || !share.is_empty(),
                "{server}: {name:?} is per {per}: state the share of one client or owner, or why it has none"
            );
        }
    }
}
