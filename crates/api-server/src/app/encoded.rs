//! Clusters and hosts as the texts that are sent, kept while they are current.
//!
//! Members that change without a revision, such as heartbeats, are left out of the kept bytes and added to each answer.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use concurrency::BoundedCache;
use model::cluster::Cluster;
use model::host::Host;
use model::ids::{ClusterId, HostId, InfraEnvId};
use model::time::{DateTime, GoTime};
use model::{Error, LargeText};
use rules::HostState;
use serde::Serialize;
use serde_json::Value;

use super::{StoredSnapshot, render};
use crate::db::RecordVersion;

/// Capacity of the clusters with hosts: more than 5 000 hosts of the largest clusters, since their reports compress
/// well. A larger cluster would be encoded with each request. Units: bytes.
const WHOLE_BYTES: usize = 32 << 20;
/// Capacity of the listed clusters. Units: bytes.
const LISTED_BYTES: usize = 8 << 20;
/// Members of a host that change with its heartbeats.
const HEARTBEAT: &[&str] = &["checked_in_at", "timestamp"];
/// Texts of a cluster that are kept plain, about those of 100 hosts; the others are compressed. Units: bytes.
const PLAIN_BYTES: usize = 8 << 20;
/// Most characters of a heartbeat, or of an end without hosts. Units: bytes.
const HEARTBEAT_BYTES: usize = 128;
/// Most characters of the members beside a listed record. Units: bytes.
const BESIDE_BYTES: usize = 256;
/// Members of a listed cluster that are not in its kept bytes.
const BESIDE: &[&str] = &[
    "deleted_at",
    "ready_host_count",
    "enabled_host_count",
    "total_host_count",
    "hosts",
];

/// A record in JSON, without the members that are added to each answer and without the closing brace.
#[derive(Debug, Clone)]
enum Head {
    Plain(Arc<str>),
    Compressed(LargeText),
}

impl Head {
    /// Keeps `json` after `before` bytes of other heads.
    fn new(json: &str, before: usize) -> Self {
        if before + json.len() <= PLAIN_BYTES {
            Self::Plain(json.into())
        } else {
            Self::Compressed(json.into())
        }
    }

    /// Units: bytes.
    fn text_bytes(&self) -> usize {
        match self {
            Self::Plain(text) => text.len(),
            Self::Compressed(text) => text.text_bytes(),
        }
    }

    /// Units: bytes.
    fn memory_bytes(&self) -> usize {
        match self {
            Self::Plain(text) => text.len(),
            Self::Compressed(text) => text.compressed_bytes(),
        }
    }

    fn append_to(&self, buffer: &mut Vec<u8>) {
        match self {
            Self::Plain(text) => buffer.extend_from_slice(text.as_bytes()),
            Self::Compressed(text) => text.append_to(buffer),
        }
    }
}

/// Encoded clusters.
#[derive(Debug)]
pub(super) struct EncodedClusters {
    whole: BoundedCache<ClusterId, Arc<EncodedCluster>>,
    listed: BoundedCache<ClusterId, Arc<ListedCluster>>,
}

impl Default for EncodedClusters {
    fn default() -> Self {
        Self {
            whole: BoundedCache::new(WHOLE_BYTES),
            listed: BoundedCache::new(LISTED_BYTES),
        }
    }
}

impl EncodedClusters {
    /// The encoded form of a snapshot. Hosts that did not change since the last one are not encoded again.
    pub(super) fn whole(
        &self,
        id: ClusterId,
        stored: &Arc<StoredSnapshot>,
    ) -> Result<Arc<EncodedCluster>, Error> {
        let known = self.whole.get(id);
        if let Some(known) = known.as_ref().filter(|known| known.is_of(stored)) {
            return Ok(Arc::clone(known));
        }
        let new = Arc::new(EncodedCluster::new(stored, known.as_deref())?);
        self.whole.put(id, Arc::clone(&new), new.size());
        Ok(new)
    }

    /// Whether the encoded form of a snapshot is kept.
    pub(super) fn has(&self, id: ClusterId, stored: &Arc<StoredSnapshot>) -> bool {
        self.whole.get(id).is_some_and(|known| known.is_of(stored))
    }

    /// The encoded form of a listed cluster, if its record has that version.
    pub(super) fn listed(
        &self,
        id: ClusterId,
        version: RecordVersion,
    ) -> Option<Arc<ListedCluster>> {
        let known = self.listed.get(id);
        known.filter(|known| known.version == version)
    }

    /// Encodes a cluster for listings.
    pub(super) fn list(
        &self,
        record: Cluster,
        version: RecordVersion,
    ) -> Result<Arc<ListedCluster>, Error> {
        let record = render::listed_cluster(record);
        let listed = Arc::new(ListedCluster {
            version,
            head: Head::new(&json(&record, BESIDE)?, 0),
            hosts: serde_json::to_string(&record.hosts).map_err(failed)?,
            user_name: record.user_name,
            org_id: record.org_id,
            subscription: record.ams_subscription_id.map(|id| id.to_string()),
        });
        let size = listed.head.memory_bytes() + listed.hosts.len() + size_of::<ListedCluster>();
        self.listed.put(record.id, Arc::clone(&listed), size);
        Ok(listed)
    }

    /// Evicts a deleted cluster.
    pub(super) fn remove(&self, id: ClusterId) {
        self.whole.remove(id);
        self.listed.remove(id);
    }
}

/// A cluster in a listing.
#[derive(Debug)]
pub(super) struct ListedCluster {
    version: RecordVersion,
    /// Without `hosts`.
    head: Head,
    /// The list of hosts that were deleted with the cluster.
    hosts: String,
    pub(super) user_name: String,
    pub(super) org_id: String,
    pub(super) subscription: Option<String>,
}

/// Members of a listed cluster that are stored beside its record.
#[derive(Debug, Default, Serialize)]
pub(super) struct BesideRecord {
    pub(super) deleted_at: Option<GoTime>,
    #[serde(flatten)]
    pub(super) counts: render::HostCounts,
}

impl ListedCluster {
    /// Prints the cluster; the hosts that were deleted with it only if `with_hosts`.
    pub(super) fn print(&self, beside: &BesideRecord, with_hosts: bool) -> Result<Vec<u8>, Error> {
        let hosts = if with_hosts { &self.hosts } else { "[]" };
        let length = self.head.text_bytes() + hosts.len() + BESIDE_BYTES;
        let mut json = Vec::with_capacity(length);
        self.head.append_to(&mut json);
        json.extend_from_slice(b",\"hosts\":");
        json.extend_from_slice(hosts.as_bytes());
        close(&mut json, beside)?;
        Ok(json)
    }
}

/// A cluster of one snapshot, with its hosts.
#[derive(Debug)]
pub(super) struct EncodedCluster {
    /// Compared by its address, which no other snapshot takes while this reference is kept.
    snapshot: Weak<StoredSnapshot>,
    /// Without `hosts`.
    head: Head,
    /// In the order of the snapshot.
    hosts: Vec<(HostVersion, Head)>,
}

/// Identity of a host's record, apart from its heartbeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct HostVersion {
    infra_env: InfraEnvId,
    id: HostId,
    revision: i64,
    updated_at: GoTime,
}

impl HostVersion {
    fn of(host: &HostState) -> Self {
        Self {
            infra_env: host.record.infra_env_id,
            id: host.record.id,
            revision: host.revision,
            updated_at: host.record.updated_at,
        }
    }
}

/// Members of a host that change with its heartbeats.
#[derive(Debug, Serialize)]
struct Heartbeat {
    checked_in_at: DateTime,
    #[serde(skip_serializing_if = "render::is_zero")]
    timestamp: i64,
}

impl EncodedCluster {
    fn new(stored: &Arc<StoredSnapshot>, known: Option<&Self>) -> Result<Self, Error> {
        let known: HashMap<&HostVersion, &Head> = known
            .into_iter()
            .flat_map(|known| &known.hosts)
            .map(|(version, head)| (version, head))
            .collect();
        let record = render::cluster(&stored.snapshot, false);
        let head = Head::new(&json(&record, &["hosts"])?, 0);
        let mut length = head.text_bytes();
        let mut hosts = Vec::with_capacity(stored.snapshot.hosts.len());
        for host in &stored.snapshot.hosts {
            let version = HostVersion::of(host);
            let head = match known.get(&version) {
                Some(head) => Head::clone(head),
                None => Head::new(&json(&render::host(host), HEARTBEAT)?, length),
            };
            length += head.text_bytes();
            hosts.push((version, head));
        }
        Ok(Self {
            snapshot: Arc::downgrade(stored),
            head,
            hosts,
        })
    }

    fn is_of(&self, stored: &Arc<StoredSnapshot>) -> bool {
        std::ptr::eq(self.snapshot.as_ptr(), Arc::as_ptr(stored))
    }

    /// Memory that it takes. Units: bytes.
    fn size(&self) -> usize {
        let hosts = self.hosts.iter();
        let hosts = hosts.map(|(_, head)| head.memory_bytes() + size_of::<(HostVersion, Head)>());
        size_of::<Self>() + self.head.memory_bytes() + hosts.sum::<usize>()
    }

    /// Length of its text with hosts, rounded up. Units: bytes.
    fn length(&self) -> usize {
        let hosts = self.hosts.iter();
        let hosts = hosts.map(|(_, head)| head.text_bytes() + HEARTBEAT_BYTES);
        self.head.text_bytes() + hosts.sum::<usize>() + HEARTBEAT_BYTES
    }

    /// Prints the cluster without its hosts.
    pub(super) fn print_alone(&self) -> Vec<u8> {
        let mut json = Vec::with_capacity(self.head.text_bytes() + HEARTBEAT_BYTES);
        self.head.append_to(&mut json);
        json.extend_from_slice(b",\"hosts\":[]}");
        json
    }

    /// Prints the cluster with its hosts, whose heartbeats are those of `hosts`, in the same order.
    pub(super) fn print(&self, hosts: impl Iterator<Item = Host>) -> Result<Vec<u8>, Error> {
        let mut json = Vec::with_capacity(self.length());
        self.head.append_to(&mut json);
        json.extend_from_slice(b",\"hosts\":[");
        for (at, ((_, head), host)) in self.hosts.iter().zip(hosts).enumerate() {
            if at > 0 {
                json.push(b',');
            }
            head.append_to(&mut json);
            let heartbeat = Heartbeat {
                checked_in_at: host.checked_in_at,
                timestamp: host.timestamp,
            };
            close(&mut json, &heartbeat)?;
        }
        json.extend_from_slice(b"]}");
        Ok(json)
    }
}

/// Encodes a record without some of its members and without the closing brace.
fn json(record: &impl Serialize, left_out: &[&str]) -> Result<String, Error> {
    let mut json = serde_json::to_value(record).map_err(failed)?;
    if let Value::Object(members) = &mut json {
        members.retain(|name, _| !left_out.contains(&name.as_str()));
    }
    let mut json = serde_json::to_string(&json).map_err(failed)?;
    json.pop();
    Ok(json)
}

/// Adds members, of which at least one is always printed, to the head of a record, and its closing brace.
fn close(json: &mut Vec<u8>, members: &impl Serialize) -> Result<(), Error> {
    let brace = json.len();
    serde_json::to_writer(&mut *json, members).map_err(failed)?;
    json[brace] = b',';
    Ok(())
}

fn failed(error: serde_json::Error) -> Error {
    Error::internal("printing a cluster", error)
}

#[cfg(test)]
mod tests {
    use rules::Snapshot;
    use uuid::Uuid;

    use super::*;

    fn stored(revision: i64, names: &[&str]) -> Arc<StoredSnapshot> {
        let host = |(number, name): (u128, &&str)| {
            let mut host = HostState::new(Host {
                id: HostId(Uuid::from_u128(number)),
                requested_hostname: (*name).to_owned(),
                checked_in_at: service::clock::now().into(),
                timestamp: 7,
                ..Host::default()
            });
            host.revision = revision;
            host
        };
        let hosts: Vec<HostState> = (1..).zip(names).map(host).collect();
        Arc::new(StoredSnapshot {
            revision,
            snapshot: Snapshot::new(Cluster::default(), hosts),
            release_info: None,
        })
    }

    fn print(clusters: &EncodedClusters, stored: &Arc<StoredSnapshot>) -> Value {
        let hosts = stored.snapshot.hosts.iter();
        let encoded = clusters.whole(ClusterId::default(), stored).unwrap();
        let json = encoded.print(hosts.map(|host| host.record.clone()));
        serde_json::from_slice(&json.unwrap()).unwrap()
    }

    fn rendered(stored: &StoredSnapshot, with_hosts: bool) -> Value {
        serde_json::to_value(render::cluster(&stored.snapshot, with_hosts)).unwrap()
    }

    #[test]
    fn encoded_clusters_equal_their_records() {
        let clusters = EncodedClusters::default();
        for names in [&[][..], &["a"], &["a", "b"]] {
            let stored = stored(1, names);
            assert_eq!(print(&clusters, &stored), rendered(&stored, true));
            let alone = clusters.whole(ClusterId::default(), &stored).unwrap();
            let alone: Value = serde_json::from_slice(&alone.print_alone()).unwrap();
            assert_eq!(alone, rendered(&stored, false));
        }
    }

    #[test]
    fn only_changed_hosts_are_encoded_again() {
        let clusters = EncodedClusters::default();
        let first = stored(1, &["a", "b"]);
        let before = clusters.whole(ClusterId::default(), &first).unwrap();
        let again = clusters.whole(ClusterId::default(), &first).unwrap();
        assert!(Arc::ptr_eq(&before, &again));
        let mut second = StoredSnapshot::clone(&first);
        second.revision = 2;
        second.snapshot.hosts[1].revision = 2;
        second.snapshot.hosts[1].record.requested_hostname = "c".to_owned();
        let second = Arc::new(second);
        assert_eq!(
            print(&clusters, &second)["hosts"][1]["requested_hostname"],
            "c"
        );
        let after = clusters.whole(ClusterId::default(), &second).unwrap();
        let is_shared = |at: usize| match (&before.hosts[at].1, &after.hosts[at].1) {
            (Head::Plain(before), Head::Plain(after)) => Arc::ptr_eq(before, after),
            _ => false,
        };
        assert_eq!((is_shared(0), is_shared(1)), (true, false));
        clusters.remove(ClusterId::default());
        assert_eq!(clusters.whole.size(), 0);
    }

    #[test]
    fn a_cluster_of_5000_hosts_is_kept() {
        let clusters = EncodedClusters::default();
        let report = format!(
            "[{}]",
            vec![r#"{"outgoing_nic":"eth0","remote_ip_address":"192.0.2.1"}"#; 150].join(",")
        );
        let host = |number: u128| {
            HostState::new(Host {
                id: HostId(Uuid::from_u128(number)),
                connectivity: report.as_str().into(),
                ..Host::default()
            })
        };
        let hosts: Vec<HostState> = (0..5000).map(host).collect();
        let stored = Arc::new(StoredSnapshot {
            revision: 1,
            snapshot: Snapshot::new(Cluster::default(), hosts),
            release_info: None,
        });
        let encoded = clusters.whole(ClusterId::default(), &stored).unwrap();
        assert!(encoded.length() > WHOLE_BYTES);
        let hosts = stored.snapshot.hosts.iter();
        let json = encoded
            .print(hosts.map(|host| host.record.clone()))
            .unwrap();
        assert!(json.len() <= encoded.length(), "the buffer is not grown");
        let shown: Value = serde_json::from_slice(&json).unwrap();
        for at in [0, 4999] {
            assert_eq!(shown["hosts"][at]["connectivity"], report, "{at}");
        }
        assert!(clusters.has(ClusterId::default(), &stored));
        assert!(clusters.whole.size() < WHOLE_BYTES);
    }

    #[test]
    fn listed_clusters_equal_their_records() {
        let clusters = EncodedClusters::default();
        let version = RecordVersion {
            revision: 3,
            updated_at: service::clock::now(),
        };
        let record = Cluster {
            hosts: vec![Host::default()],
            ..Cluster::default()
        };
        let listed = clusters.list(record.clone(), version).unwrap();
        let id = ClusterId::default();
        assert!(clusters.listed(id, version).is_some());
        let newer = RecordVersion {
            revision: 4,
            ..version
        };
        assert!(clusters.listed(id, newer).is_none());
        let mut expected = render::listed_cluster(Cluster::default());
        let shown = |beside: &BesideRecord| -> Value {
            serde_json::from_slice(&listed.print(beside, false).unwrap()).unwrap()
        };
        let none = BesideRecord::default();
        assert_eq!(shown(&none), serde_json::to_value(&expected).unwrap());
        expected.total_host_count = 3;
        expected.ready_host_count = 1;
        expected.enabled_host_count = 2;
        expected.deleted_at = Some(service::clock::now().into());
        let some = BesideRecord {
            deleted_at: expected.deleted_at,
            counts: render::HostCounts {
                ready: 1,
                enabled: 2,
                total: 3,
            },
        };
        assert_eq!(shown(&some), serde_json::to_value(&expected).unwrap());
        expected.hosts = record.hosts;
        let whole: Value = serde_json::from_slice(&listed.print(&some, true).unwrap()).unwrap();
        assert_eq!(whole, serde_json::to_value(&expected).unwrap());
    }
}
