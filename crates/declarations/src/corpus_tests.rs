//! Files that others wrote, each with its verdict.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use super::{CurrentState, FileText, parse, plan};
use crate::test_cluster::cluster;

fn corpus(name: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus");
    let entries = fs::read_dir(folder.join(name)).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_none_or(|extension| extension == "yaml"));
    paths.sort();
    paths
}

/// Notes of accepted files; refusals of others.
#[test]
fn sites_have_their_verdicts() {
    let mut verdicts = String::new();
    let mut accepted = 0;
    for folder in corpus("sites") {
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        let files = ["install-config.yaml", "agent-config.yaml"];
        let read = |name: &str| {
            let text = fs::read_to_string(folder.join(name)).ok()?;
            let name = name.to_owned();
            Some(FileText { name, text })
        };
        let texts: Vec<FileText> = files.into_iter().filter_map(read).collect();
        let cluster = cluster(3);
        let state = CurrentState {
            cluster: &cluster,
            infra_env: None,
            expected: None,
        };
        match parse(&texts).and_then(|wanted| plan(&wanted, state, "{}")) {
            Ok(plan) => {
                accepted += 1;
                writeln!(verdicts, "{name}: accepted").unwrap();
                for note in plan.notes {
                    writeln!(verdicts, "    note: {note}").unwrap();
                }
            }
            Err(error) => {
                writeln!(verdicts, "{name}: refused").unwrap();
                for line in error.to_string().lines() {
                    writeln!(verdicts, "    {line}").unwrap();
                }
            }
        }
    }
    writeln!(verdicts, "{accepted} accepted").unwrap();
    insta::assert_snapshot!(verdicts);
}
