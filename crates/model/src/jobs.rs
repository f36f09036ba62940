//! Jobs: long work of the site that a person starts, and that continues without them. No other installer has them.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::ids::JobId;
use crate::time::DateTime;
use crate::wire::wire_enum;

wire_enum! {
    /// Kind of a job.
    pub enum JobKind {
        VerifyArchives = "verify-archives",
        PublishArchives = "publish-archives",
        Rehearsal = "rehearsal",
    }
}

wire_enum! {
    /// State of a job.
    pub enum JobState {
        Queued = "queued",
        Running = "running",
        Succeeded = "succeeded",
        Failed = "failed",
        Cancelled = "cancelled",
    }
}

/// Body that creates a job.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobCreateParams {
    pub kind: JobKind,
    /// Name of an archive set, as the list of archives has it.
    #[serde(default)]
    pub archives: String,
    /// Consent to prune many images from the registry.
    #[serde(default)]
    pub prune: bool,
    /// Of a rehearsal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rehearsal: Option<RehearsalParams>,
}

/// A rehearsal: a site file, or a profile of machines.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RehearsalParams {
    /// install-config.yaml and agent-config.yaml as documents of one text; may be empty with a profile.
    pub site: String,
    pub profile: String,
    /// `NAME@HOST`, or `NAME` for a host that the seed chooses.
    pub faults: Vec<String>,
    pub seed: String,
    /// Version of the release; empty: the default.
    pub release: String,
}

impl fmt::Debug for RehearsalParams {
    /// Without the site, which has secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RehearsalParams")
            .field("site_bytes", &self.site.len())
            .field("profile", &self.profile)
            .field("faults", &self.faults)
            .finish_non_exhaustive()
    }
}

/// A job.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Job {
    pub id: JobId,
    pub kind: JobKind,
    pub state: JobState,
    /// Its archive set.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub archives: String,
    /// Name of the user.
    pub created_by: String,
    pub created_at: DateTime,
    pub started_at: DateTime,
    pub ended_at: DateTime,
    /// While it is running.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<JobProgress>,
    /// Reason of a failure, with its remedy.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verification: Option<ArchiveVerification>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub publication: Option<ArchivePublication>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rehearsal: Option<RehearsalResult>,
}

/// Progress of a job.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct JobProgress {
    pub phase: String,
    pub items: u64,
    pub items_total: u64,
    /// Units: bytes.
    pub bytes: u64,
    /// Units: bytes.
    pub bytes_total: u64,
    /// Simulated hosts by their status and stage.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub hosts: BTreeMap<String, u64>,
}

/// Result of the verification of an archive set.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ArchiveVerification {
    pub files: u64,
    pub members: u64,
    /// Content that was compared with its digest. Units: bytes.
    pub hashed_bytes: u64,
    /// Whether the set is signed, by any key.
    pub is_signed: bool,
    /// The first faults, each with its file or member.
    pub faults: Vec<String>,
    pub fault_count: u64,
}

/// Result of the publication of an archive set.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ArchivePublication {
    /// The registry had this sequence already.
    pub is_unchanged: bool,
    pub images: u64,
    pub catalogs: u64,
    /// Blobs that were sent; the others were there.
    pub sent_blobs: u64,
    /// Units: bytes.
    pub sent_bytes: u64,
    /// Images that were pruned.
    pub pruned: u64,
    /// Images whose pruning needs consent; nothing was published.
    pub unconfirmed_prunes: u64,
    /// Manifests for clusters, and other files of the results.
    pub files: Vec<JobFile>,
}

/// Result of a rehearsal.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RehearsalResult {
    /// Name of the cluster, or of the profile.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub subject: String,
    /// The result in a few words.
    pub verdict: String,
    /// Whether it was installed without a mistake.
    pub good: bool,
    /// The first ones, except in lists.
    pub findings: Vec<RehearsalFinding>,
}

/// A mistake that a rehearsal found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RehearsalFinding {
    /// Name of the mistake, or id of the validation.
    pub id: String,
    /// Empty for the cluster.
    pub host: String,
    pub observed: String,
    pub required: String,
    /// The remedy, as one sentence.
    pub fix: String,
}

/// Profiles and faults of rehearsals.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RehearsalOptions {
    pub profiles: Vec<RehearsalProfile>,
    pub faults: Vec<RehearsalFault>,
}

/// Kind of installation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RehearsalProfile {
    pub name: String,
    pub purpose: String,
    pub control_plane: u64,
    pub arbiters: u64,
    pub workers: u64,
}

/// Fault of a simulated host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RehearsalFault {
    pub name: String,
    pub when: String,
    pub effect: String,
}

/// A file of a job's results.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct JobFile {
    pub name: String,
    /// Units: bytes.
    pub size: u64,
}

/// The archives that can be carried in.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ArchiveList {
    /// The folder of the server that is searched; empty: none is set.
    pub folder: String,
    /// The registry that archives are published to; empty: none is set.
    pub registry: String,
    pub sets: Vec<ArchiveSet>,
    /// Sets of the folder beyond the longest list.
    pub omitted_sets: u64,
    /// Reason why the registry could not be asked for its sequences.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub registry_reason: String,
}

wire_enum! {
    /// Place of an archive set in the order of its sequences.
    pub enum ArchiveStep {
        Unknown = "unknown",
        Next = "next",
        Published = "published",
        OutOfOrder = "out-of-order",
        Damaged = "damaged",
    }
}

/// An archive set.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ArchiveSet {
    /// Path of its first file below the folder.
    pub name: String,
    /// Id of the image set over all its runs.
    pub uid: Uuid,
    pub sequence: u64,
    /// Whether the set is mirrored once, without history.
    pub single_use: bool,
    pub created_at: DateTime,
    pub files: Vec<JobFile>,
    /// Most bytes that its publication sends. Units: bytes.
    pub bytes: u64,
    /// Release channels, each with its lowest version.
    pub releases: Vec<String>,
    /// Releases with an image of their own, as `4.18.30-x86_64`.
    pub release_images: Vec<String>,
    pub catalogs: Vec<String>,
    /// Images of this run.
    pub images: u64,
    pub step: ArchiveStep,
    /// Sequence of the set in the registry; 0: none.
    pub published_sequence: u64,
    /// Reason of a step that is neither next nor published, with its remedy.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
}
