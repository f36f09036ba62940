//! Conclusions from verdicts: stored entries, blocking messages, events.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use model::validations::{ClusterValidationId, HostValidationId};
use serde::{Deserialize, Serialize};

use super::cluster;
use super::subject::{ClusterSubject, HostSubject};
use super::validation::{Category, ClusterBlock, HostBlock, HostValidation, Status, Unbound};
use super::verdict::Verdict;
use crate::network::networking;

/// Validations of hosts that cannot be ignored. Source: assisted-service, internal/common/validations.go.
pub const NEVER_IGNORED_HOST: &[HostValidationId] = &[
    HostValidationId::Connected,
    HostValidationId::HasInventory,
    HostValidationId::InventoryNotFullyTruncated,
    HostValidationId::MachineCidrDefined,
    HostValidationId::HostnameUnique,
    HostValidationId::HostnameValid,
];
/// Validations of clusters that cannot be ignored. Source: as above.
pub const NEVER_IGNORED_CLUSTER: &[ClusterValidationId] = &[
    ClusterValidationId::ApiVipsDefined,
    ClusterValidationId::IngressVipsDefined,
    ClusterValidationId::AllHostsAreReadyToInstall,
    ClusterValidationId::SufficientMastersCount,
    ClusterValidationId::PullSecretSet,
];

/// Most characters of an entry without its message: growing the text step by step would copy it several times. Units:
/// bytes.
const ENTRY_BYTES: usize = 128;

/// An entry of `validations_info`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct ValidationEntry {
    id: &'static str,
    status: &'static str,
    message: Cow<'static, str>,
}

/// Stored part of an entry.
#[derive(Deserialize)]
struct StoredStatus {
    id: String,
    status: String,
}

/// A validation whose outcome changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Flip {
    pub(crate) id: String,
    pub(crate) fixed: bool,
    /// Status before.
    pub(crate) was: String,
    pub(crate) message: String,
}

/// Results of a host's validations.
#[derive(Debug, Clone, Default)]
pub(crate) struct HostJudgement {
    pub(crate) text: String,
    pub(crate) connected: bool,
    pub(crate) hardware_ok: bool,
    pub(crate) input_ok: bool,
    pub(crate) disk_ids_ok: bool,
    pub(crate) sufficient: bool,
    pub(crate) blocking: String,
}

/// Results of a cluster's validations.
#[derive(Debug, Clone, Default)]
pub(crate) struct ClusterJudgement {
    pub(crate) text: String,
    pub(crate) input_missing: bool,
    pub(crate) ready: bool,
    pub(crate) blocking: String,
}

/// Entries by category, and the blocking messages.
#[derive(Default)]
struct ValidationReport {
    entries: BTreeMap<&'static str, Vec<ValidationEntry>>,
    failing: BTreeSet<Cow<'static, str>>,
    pending: BTreeSet<String>,
}

impl ValidationReport {
    /// Adds a verdict. Returns whether it passes.
    fn add(
        &mut self,
        id: &'static str,
        category: Category,
        verdict: Verdict,
        options: CheckOptions,
    ) -> bool {
        let (status, message): (_, Cow<'static, str>) = match verdict {
            Verdict::Hidden => return true,
            _ if options.disabled => (Status::Disabled, "This validation is disabled".into()),
            Verdict::Success(message) => (Status::Success, message),
            Verdict::Failure(finding) => (Status::Failure, finding.message.into()),
            Verdict::Error(finding) => (Status::Error, finding.message.into()),
            Verdict::Pending(what) => (Status::Pending, what.into()),
        };
        let passes = options.ignored || matches!(status, Status::Success | Status::Disabled);
        if !passes && options.blocks {
            match status {
                Status::Pending => self.pending.insert(message.clone().into_owned()),
                _ => self.failing.insert(message.clone()),
            };
        }
        let message = match status {
            Status::Pending => format!("Waiting for {message}").into(),
            _ => message,
        };
        self.entries
            .entry(category.as_str())
            .or_default()
            .push(ValidationEntry {
                id,
                status: status.as_str(),
                message,
            });
        passes
    }

    /// Exactly the blocking messages: failures first, then pending inputs.
    fn blocking(&self) -> String {
        let failing = self.failing.iter().map(ToString::to_string);
        let mut parts: Vec<String> = failing.collect();
        if !self.pending.is_empty() {
            let pending: Vec<&str> = self.pending.iter().map(String::as_str).collect();
            parts.push(format!("Waiting for {}", pending.join(", ")));
        }
        parts.join(" ; ")
    }

    fn text(&self) -> String {
        let entries = self.entries.values().flatten();
        let length: usize = entries.map(|entry| ENTRY_BYTES + entry.message.len()).sum();
        let mut json = Vec::with_capacity(length);
        // Maps of texts cannot fail to be printed, and are printed as text.
        let printed = serde_json::to_writer(&mut json, &self.entries);
        printed
            .ok()
            .and_then(|()| String::from_utf8(json).ok())
            .unwrap_or_default()
    }
}

#[derive(Clone, Copy)]
struct CheckOptions {
    disabled: bool,
    ignored: bool,
    blocks: bool,
}

/// Validations of a host, with the effect of their failure.
pub(crate) fn applicable(
    is_unbound: bool,
) -> impl Iterator<Item = (&'static HostValidation, HostBlock)> {
    super::host_validations()
        .filter(move |one| !(is_unbound && one.unbound == Unbound::Hidden))
        .map(move |one| {
            let blocks = match one.unbound {
                Unbound::Shown if is_unbound => HostBlock::Nothing,
                _ => one.blocks,
            };
            (one, blocks)
        })
}

/// Judges a host.
pub(crate) fn judge_host(subject: &HostSubject<'_>, ignored: &Ignored) -> HostJudgement {
    let mut sheet = ValidationReport::default();
    let mut judgement = HostJudgement {
        connected: true,
        hardware_ok: true,
        input_ok: true,
        disk_ids_ok: true,
        sufficient: true,
        ..HostJudgement::default()
    };
    for (validation, blocks) in applicable(subject.cluster.is_none()) {
        let options = CheckOptions {
            disabled: subject
                .policy
                .disabled_host_validations
                .contains(&validation.id),
            ignored: ignored.host(validation.id),
            blocks: matches!(
                blocks,
                HostBlock::Hardware | HostBlock::Input | HostBlock::Sufficient | HostBlock::DiskIds
            ),
        };
        let verdict = (validation.check)(subject);
        let passes = sheet.add(
            validation.id.as_str(),
            validation.category,
            verdict,
            options,
        );
        let condition = match blocks {
            HostBlock::Connection => &mut judgement.connected,
            HostBlock::Hardware => &mut judgement.hardware_ok,
            HostBlock::Input => &mut judgement.input_ok,
            HostBlock::DiskIds => &mut judgement.disk_ids_ok,
            HostBlock::Sufficient => &mut judgement.sufficient,
            HostBlock::Preparing | HostBlock::Nothing => continue,
        };
        *condition &= passes;
    }
    if let Some(operators) = sheet.entries.get_mut(Category::Operators.as_str()) {
        operators.sort_by_key(|entry| entry.id);
    }
    judgement.text = sheet.text();
    judgement.blocking = sheet.blocking();
    judgement
}

/// Judges a cluster.
pub(crate) fn judge_cluster(subject: &ClusterSubject<'_>, ignored: &Ignored) -> ClusterJudgement {
    let mut sheet = ValidationReport::default();
    let mut judgement = ClusterJudgement {
        ready: true,
        ..ClusterJudgement::default()
    };
    for validation in cluster::cluster_validations() {
        let options = CheckOptions {
            disabled: subject
                .policy
                .disabled_cluster_validations
                .contains(&validation.id),
            ignored: ignored.cluster(validation.id),
            blocks: validation.blocks != ClusterBlock::Nothing,
        };
        let verdict = (validation.check)(subject);
        let passes = sheet.add(
            validation.id.as_str(),
            validation.category,
            verdict,
            options,
        );
        match validation.blocks {
            ClusterBlock::VipInput if networking::uses_dhcp(subject.cluster) => {
                judgement.ready &= passes;
            }
            ClusterBlock::Input | ClusterBlock::VipInput => judgement.input_missing |= !passes,
            ClusterBlock::Install => judgement.ready &= passes,
            ClusterBlock::Nothing => {}
        }
    }
    for entries in sheet.entries.values_mut() {
        entries.sort_by_key(|entry| entry.id);
    }
    judgement.text = sheet.text();
    judgement.blocking = sheet.blocking();
    judgement
}

/// The validations that the user ignores.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ignored {
    host: BTreeSet<String>,
    cluster: BTreeSet<String>,
}

impl Ignored {
    pub(crate) fn of(cluster: &model::cluster::Cluster) -> Self {
        let parse = |text: &str| serde_json::from_str(text).unwrap_or_default();
        Self {
            host: parse(&cluster.ignored_host_validations),
            cluster: parse(&cluster.ignored_cluster_validations),
        }
    }

    pub(crate) fn host(&self, id: HostValidationId) -> bool {
        !NEVER_IGNORED_HOST.contains(&id) && names(&self.host, id.as_str())
    }

    pub(crate) fn cluster(&self, id: ClusterValidationId) -> bool {
        !NEVER_IGNORED_CLUSTER.contains(&id) && names(&self.cluster, id.as_str())
    }
}

fn names(set: &BTreeSet<String>, id: &str) -> bool {
    set.contains(id) || set.contains("all")
}

/// Changes between two texts: new failures, and fixes.
pub(crate) fn flips(before: &str, after: &str) -> Vec<Flip> {
    #[derive(Deserialize)]
    struct StoredEntry {
        id: String,
        status: String,
        message: String,
    }
    if before == after || before.is_empty() {
        return Vec::new();
    }
    let before: HashMap<String, Vec<StoredStatus>> =
        serde_json::from_str(before).unwrap_or_default();
    let after: BTreeMap<String, Vec<StoredEntry>> = serde_json::from_str(after).unwrap_or_default();
    let old: HashMap<&str, &str> = before
        .values()
        .flatten()
        .map(|one| (one.id.as_str(), one.status.as_str()))
        .collect();
    let is_bad =
        |status: &str| status == Status::Failure.as_str() || status == Status::Error.as_str();
    after
        .into_values()
        .flatten()
        .filter_map(|one| {
            let was = *old.get(one.id.as_str())?;
            let broken = is_bad(&one.status) && !is_bad(was);
            let fixed = one.status == Status::Success.as_str() && is_bad(was);
            (broken || fixed).then_some(Flip {
                was: was.to_owned(),
                id: one.id,
                fixed,
                message: one.message,
            })
        })
        .collect()
}
