//! The records of the machines of a replacement: of the cluster, of a file, or as a replacement saved them.

use std::path::Path;

use host_records::check::{CheckSettings, FindingSeverity, check};
use host_records::{MAX_FILE, RecordFile, json_text};
use kubernetes::KubernetesCluster;
use replacement::{KubernetesSide as _, OpenReplacement, ReplacementCase, record_template};
use serde_json::Value;
use service::{Error, ResultExt as _};

use crate::host::input;

/// Records of the machines of a replacement.
pub(super) struct MachineRecords {
    pub(super) old: Vec<Value>,
    pub(super) new: Vec<Value>,
}

impl MachineRecords {
    /// Records of both machines: saved ones, where the cluster may have none any more. `file` has those of the new
    /// machine, where a replacement begins.
    ///
    /// Errors: the folder, the file or the records of the cluster cannot be read.
    pub(super) async fn read(
        cluster: &KubernetesCluster,
        case: &ReplacementCase,
        open: Option<&OpenReplacement>,
        file: Option<&Path>,
    ) -> Result<Self, Error> {
        let doing = || format!("reading the records of {}", case.old.name);
        let (mut old, mut new) = (Vec::new(), Vec::new());
        if let Some(open) = open {
            old = open.saved_records().doing(doing)?;
            new = open.new_records().doing(doing)?;
        } else if let Some(path) = file {
            new = of_file(path)?;
        }
        if old.is_empty() {
            let records = cluster.node_records(case).await;
            let records = records.doing(doing)?;
            old = records.into_iter().map(record_template).collect();
        }
        if new.is_empty() && case.old.name == case.new.name {
            new.clone_from(&old);
        }
        Ok(Self { old, new })
    }
}

/// Secret, BareMetalHost and Machine of a new node, in the order of the file.
///
/// Errors: the file cannot be read; a record has a mistake, the first one with its line.
fn of_file(path: &Path) -> Result<Vec<Value>, Error> {
    let doing = || format!("reading {}", input::name(path));
    let content = input::read(path, MAX_FILE)?;
    let file = RecordFile::read(&input::name(path), &content);
    let report = check(std::slice::from_ref(&file), &CheckSettings::default());
    let is_error = |severity: &FindingSeverity| matches!(severity, FindingSeverity::Error);
    if let Some(finding) = report.findings.iter().find(|it| is_error(&it.severity)) {
        return Err(Error::new(doing(), finding.to_string()));
    }
    let records = file.records().map(|record| {
        let text = json_text(record.root).doing(doing)?;
        serde_json::from_str(&text).doing(doing)
    });
    records.collect()
}
