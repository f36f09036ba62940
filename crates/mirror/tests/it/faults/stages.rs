//! Stages of a run that can fail, with their requests.

use crate::faulty::{Fault, Rule};

/// Count of a lasting fault.
pub(crate) const ALWAYS: usize = usize::MAX;

/// Requests of one kind.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stage {
    pub(crate) name: &'static str,
    pub(crate) method: &'static str,
    pub(crate) path: &'static str,
    /// Lasting faults that a run survives.
    pub(crate) borne: &'static [Fault],
}

impl Stage {
    pub(crate) const fn new(name: &'static str, method: &'static str, path: &'static str) -> Self {
        let borne = &[];
        Self {
            name,
            method,
            path,
            borne,
        }
    }

    pub(crate) const fn bears(self, borne: &'static [Fault]) -> Self {
        Self { borne, ..self }
    }

    pub(crate) fn rule(&self, times: usize, fault: Fault) -> Rule {
        Rule {
            method: self.method,
            path: self.path.to_owned(),
            times,
            fault,
        }
    }

    /// The repository of the requests.
    pub(crate) fn repository(&self) -> &'static str {
        let known = [
            "acme/index",
            "acme/tool",
            "acme/twin",
            "own/state",
            "ns/oc-mirror",
        ];
        known.into_iter().find(|it| self.path.contains(it)).unwrap()
    }

    /// Lasting faults of the stage.
    pub(crate) fn lasting(&self) -> Vec<Fault> {
        let mut faults = vec![
            Fault::Status(401),
            Fault::Status(403),
            Fault::Status(404),
            Fault::Busy(3600),
            Fault::Status(500),
            Fault::Reset,
        ];
        if self.method == "GET" {
            faults.extend([Fault::Short, Fault::Wrong]);
        }
        faults
    }

    /// Transient faults of the stage.
    pub(crate) fn passing(&self) -> Vec<Fault> {
        let mut faults = vec![Fault::Status(500), Fault::Busy(0), Fault::Reset];
        if self.path.ends_with("/blobs/") {
            faults.push(Fault::Short);
        }
        if self.method != "GET" {
            faults.push(Fault::Lost);
        }
        faults
    }
}

/// Optional requests: attached artifacts.
pub(crate) const REFUSALS: &[Fault] = &[Fault::Status(401), Fault::Status(403), Fault::Status(404)];

/// Stages of packing.
pub(crate) const PACKING: [Stage; 11] = [
    Stage::new("previous run", "HEAD", "own/state/manifests/").bears(&[Fault::Status(404)]),
    Stage::new("name of the catalog", "HEAD", "acme/index/manifests/v1"),
    Stage::new("catalog", "GET", "acme/index/manifests/sha256:"),
    Stage::new("files of the catalog", "GET", "acme/index/blobs/"),
    Stage::new("resolve", "GET", "acme/tool/manifests/v1"),
    Stage::new("tags of what is attached", "GET", "acme/tool/tags/list").bears(&[
        Fault::Status(401),
        Fault::Status(403),
        Fault::Status(404),
        Fault::Status(500),
        Fault::Busy(3600),
        Fault::Reset,
        Fault::Short,
        Fault::Wrong,
    ]),
    Stage::new("lists of what is attached", "GET", "acme/tool/referrers/").bears(REFUSALS),
    Stage::new("what is attached", "GET", "acme/tool/manifests/sha256-").bears(REFUSALS),
    Stage::new("blobs", "GET", "acme/tool/blobs/"),
    Stage::new("metadata", "PUT", "own/state/blobs/uploads/"),
    Stage::new("image of the metadata", "PUT", "own/state/manifests/"),
];

/// Stages of publishing.
pub(crate) const PUBLISHING: [Stage; 10] = [
    Stage::new("previous run", "HEAD", "ns/oc-mirror/manifests/").bears(&[Fault::Status(404)]),
    // An empty list is a valid answer, and cannot be damaged.
    Stage::new("tags", "GET", "ns/acme/tool/tags/list").bears(&[
        Fault::Status(404),
        Fault::Short,
        Fault::Wrong,
    ]),
    Stage::new("blobs that are there", "HEAD", "ns/acme/tool/blobs/").bears(&[Fault::Status(404)]),
    Stage::new("uploads", "POST", "ns/acme/tool/blobs/uploads/"),
    Stage::new("mounts", "POST", "ns/acme/twin/blobs/uploads/"),
    Stage::new("blobs", "PUT", "ns/acme/tool/blobs/uploads/"),
    Stage::new("images", "PUT", "ns/acme/tool/manifests/"),
    Stage::new("catalog", "PUT", "ns/acme/index/manifests/"),
    Stage::new("metadata", "PUT", "ns/oc-mirror/blobs/uploads/"),
    Stage::new("image of the metadata", "PUT", "ns/oc-mirror/manifests/"),
];
