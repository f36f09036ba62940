//! Clusters and hosts as the texts that are sent, kept while they are current.
//!
//! Answers are pieces of the kept bytes, which they share: nothing is copied for a reader. Members that change without a
//! revision, such as heartbeats, are left out of the kept bytes and added to each answer.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use concurrency::BoundedCache;
use model::Error;
use model::cluster::Cluster;
use model::host::Host;
use model::ids::{ClusterId, HostId, InfraEnvId};
use model::time::{DateTime, GoTime};
use rules::HostState;
use serde::Serialize;
use serde_json::Value;
use service::shared_body::BodyPiece;

use super::{StoredSnapshot, render};
use crate::db::RecordVersion;

/// Capacity of the clusters with hosts: more than 5 000 hosts of the largest clusters, since their reports compress
/// well. A larger cluster would be encoded with each request. Units: bytes.
const WHOLE_BYTES: usize = 32 << 20;
/// Capacity of the listed clusters: more than the default of `MAX_CLUSTERS`, of 8.5 KiB each. A listing of more than that
/// would read and encode all of them with each request. Units: bytes.
const LISTED_BYTES: usize = 16 << 20;
/// Members of a host that change with its heartbeats.
const HEARTBEAT: &[&str] = &["checked_in_at", "timestamp"];
/// Texts of a cluster that are kept plain, about those of 100 hosts; the others are compressed. Units: bytes.
const PLAIN_BYTES: usize = 8 << 20;
/// Most characters of a heartbeat, or of an end without hosts. Units: bytes.
const HEARTBEAT_BYTES: usize = 128;
/// Most characters of the members beside a listed record. Units: bytes.
const BESIDE_BYTES: usize = 256;
/// Hosts of a listed cluster that was not deleted, or of a listing without hosts.
const NO_HOSTS: &str = "[]";
/// Members of a listed cluster that are not in its kept bytes.
const BESIDE: &[&str] = &[
    "deleted_at",
    "ready_host_count",
    "enabled_host_count",
    "total_host_count",
    "hosts",
];

/// Keeps a record in JSON, after `before` bytes of other ones. Members that are added to each answer and the closing
/// brace are not in it.
fn head(json: String, before: usize) -> BodyPiece {
    if before + json.len() <= PLAIN_BYTES {
        BodyPiece::Plain(json.into())
    } else {
        BodyPiece::Compressed(json.into())
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
        let beside = BesideRecord::default();
        let (text, head_bytes) = listed_text(json(&record, BESIDE)?.as_bytes(), &beside)?;
        let listed = Arc::new(ListedCluster {
            version,
            text,
            head_bytes,
            beside,
            hosts: serde_json::to_string(&record.hosts).map_err(failed)?,
            user_name: record.user_name,
            org_id: record.org_id,
            subscription: record.ams_subscription_id.map(|id| id.to_string()),
        });
        self.keep(record.id, &listed);
        Ok(listed)
    }

    /// A listed cluster with the members that are stored beside its record.
    pub(super) fn listed_with(
        &self,
        id: ClusterId,
        listed: Arc<ListedCluster>,
        beside: BesideRecord,
    ) -> Result<Arc<ListedCluster>, Error> {
        if listed.beside == beside {
            return Ok(listed);
        }
        let mut changed = ListedCluster::clone(&listed);
        (changed.text, changed.head_bytes) = listed_text(listed.head(), &beside)?;
        changed.beside = beside;
        let changed = Arc::new(changed);
        self.keep(id, &changed);
        Ok(changed)
    }

    fn keep(&self, id: ClusterId, listed: &Arc<ListedCluster>) {
        let size = listed.text.len() + listed.hosts.len() + size_of::<ListedCluster>();
        self.listed.put(id, Arc::clone(listed), size);
    }

    /// Evicts a deleted cluster.
    pub(super) fn remove(&self, id: ClusterId) {
        self.whole.remove(id);
        self.listed.remove(id);
    }
}

/// A cluster in a listing.
#[derive(Debug, Clone)]
pub(super) struct ListedCluster {
    version: RecordVersion,
    /// The cluster without `hosts`.
    text: Bytes,
    /// Length of the text before the members that are stored beside the record.
    head_bytes: usize,
    beside: BesideRecord,
    /// The list of hosts that were deleted with the cluster.
    hosts: String,
    pub(super) user_name: String,
    pub(super) org_id: String,
    pub(super) subscription: Option<String>,
}

/// Members of a listed cluster that are stored beside its record.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(super) struct BesideRecord {
    pub(super) deleted_at: Option<GoTime>,
    #[serde(flatten)]
    pub(super) counts: render::HostCounts,
}

impl ListedCluster {
    fn head(&self) -> &[u8] {
        &self.text[..self.head_bytes]
    }

    /// Prints the cluster; the hosts that were deleted with it only if `with_hosts`.
    pub(super) fn print(&self, with_hosts: bool) -> Result<BodyPiece, Error> {
        if !with_hosts || self.hosts == NO_HOSTS {
            return Ok(BodyPiece::Plain(self.text.clone()));
        }
        let length = self.text.len() + self.hosts.len();
        let text = with_beside(self.head(), &self.hosts, &self.beside, length)?;
        Ok(text.into())
    }
}

/// The text of a listed cluster without hosts, and the length of `head` in it.
fn listed_text(head: &[u8], beside: &BesideRecord) -> Result<(Bytes, usize), Error> {
    let text = with_beside(head, NO_HOSTS, beside, head.len() + BESIDE_BYTES)?;
    Ok((text.into_boxed_slice().into(), head.len()))
}

/// Completes the head of a listed cluster, in a buffer of that capacity.
fn with_beside(
    head: &[u8],
    hosts: &str,
    beside: &BesideRecord,
    capacity: usize,
) -> Result<Vec<u8>, Error> {
    let mut text = Vec::with_capacity(capacity);
    text.extend_from_slice(head);
    text.extend_from_slice(b",\"hosts\":");
    text.extend_from_slice(hosts.as_bytes());
    close(&mut text, beside)?;
    Ok(text)
}

/// A cluster of one snapshot, with its hosts.
#[derive(Debug)]
pub(super) struct EncodedCluster {
    /// Compared by its address, which no other snapshot takes while this reference is kept.
    snapshot: Weak<StoredSnapshot>,
    /// Without `hosts`.
    head: BodyPiece,
    /// In the order of the snapshot.
    hosts: Vec<(HostVersion, BodyPiece)>,
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
        let known: HashMap<&HostVersion, &BodyPiece> = known
            .into_iter()
            .flat_map(|known| &known.hosts)
            .map(|(version, head)| (version, head))
            .collect();
        let record = render::cluster(&stored.snapshot, false);
        let cluster = head(json(&record, &["hosts"])?, 0);
        let mut length = cluster.length();
        let mut hosts = Vec::with_capacity(stored.snapshot.hosts.len());
        for host in &stored.snapshot.hosts {
            let version = HostVersion::of(host);
            let host = match known.get(&version) {
                Some(known) => BodyPiece::clone(known),
                None => head(json(&render::host(host), HEARTBEAT)?, length),
            };
            length += host.length();
            hosts.push((version, host));
        }
        Ok(Self {
            snapshot: Arc::downgrade(stored),
            head: cluster,
            hosts,
        })
    }

    fn is_of(&self, stored: &Arc<StoredSnapshot>) -> bool {
        std::ptr::eq(self.snapshot.as_ptr(), Arc::as_ptr(stored))
    }

    /// Memory that it takes. Units: bytes.
    fn size(&self) -> usize {
        let hosts = self.hosts.iter();
        let hosts =
            hosts.map(|(_, head)| head.memory().len() + size_of::<(HostVersion, BodyPiece)>());
        size_of::<Self>() + self.head.memory().len() + hosts.sum::<usize>()
    }

    /// Prints the cluster without its hosts.
    pub(super) fn print_alone(&self) -> [BodyPiece; 2] {
        let end = Bytes::from_static(b",\"hosts\":[]}");
        [self.head.clone(), BodyPiece::Plain(end)]
    }

    /// Prints the cluster with its hosts, whose heartbeats are those of `hosts`, in the same order.
    pub(super) fn print(&self, hosts: impl Iterator<Item = Host>) -> Result<Vec<BodyPiece>, Error> {
        // The texts between the heads are slices of one buffer.
        let mut texts = Vec::with_capacity((1 + self.hosts.len()) * HEARTBEAT_BYTES);
        texts.extend_from_slice(b",\"hosts\":[");
        let mut ends = Vec::with_capacity(1 + self.hosts.len());
        for ((_, _), host) in self.hosts.iter().zip(hosts) {
            ends.push(texts.len());
            let heartbeat = Heartbeat {
                checked_in_at: host.checked_in_at,
                timestamp: host.timestamp,
            };
            close(&mut texts, &heartbeat)?;
            texts.push(b',');
        }
        if !ends.is_empty() {
            texts.pop();
        }
        texts.extend_from_slice(b"]}");
        ends.push(texts.len());
        let texts = Bytes::from(texts.into_boxed_slice());
        let heads = std::iter::once(&self.head).chain(self.hosts.iter().map(|(_, head)| head));
        let mut pieces = Vec::with_capacity(2 * ends.len());
        let mut start = 0;
        for (head, end) in heads.zip(ends) {
            pieces.push(head.clone());
            pieces.push(BodyPiece::Plain(texts.slice(start..end)));
            start = end;
        }
        Ok(pieces)
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
    use crate::app::known_release::KnownRelease;

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
            release: KnownRelease::default(),
        })
    }

    fn print(clusters: &EncodedClusters, stored: &Arc<StoredSnapshot>) -> Value {
        let hosts = stored.snapshot.hosts.iter();
        let encoded = clusters.whole(ClusterId::default(), stored).unwrap();
        let pieces = encoded.print(hosts.map(|host| host.record.clone()));
        parsed(&pieces.unwrap())
    }

    fn parsed(pieces: &[BodyPiece]) -> Value {
        let texts = pieces.iter().map(BodyPiece::bytes);
        serde_json::from_slice(&texts.collect::<Vec<_>>().concat()).unwrap()
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
            assert_eq!(parsed(&alone.print_alone()), rendered(&stored, false));
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
        let is_shared = |at: usize| {
            let [before, after] = [&before, &after].map(|it| it.hosts[at].1.memory().as_ptr());
            before == after
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
            release: KnownRelease::default(),
        });
        let encoded = clusters.whole(ClusterId::default(), &stored).unwrap();
        let hosts = stored.snapshot.hosts.iter();
        let pieces = encoded
            .print(hosts.map(|host| host.record.clone()))
            .unwrap();
        let length: usize = pieces.iter().map(BodyPiece::length).sum();
        assert!(length > WHOLE_BYTES);
        let shown = parsed(&pieces);
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
        let shown = |beside: &BesideRecord, with_hosts| {
            let listed = clusters.listed_with(id, Arc::clone(&listed), beside.clone());
            parsed(&[listed.unwrap().print(with_hosts).unwrap()])
        };
        let none = BesideRecord::default();
        assert_eq!(
            shown(&none, false),
            serde_json::to_value(&expected).unwrap()
        );
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
        assert_eq!(
            shown(&some, false),
            serde_json::to_value(&expected).unwrap()
        );
        expected.hosts = record.hosts;
        assert_eq!(shown(&some, true), serde_json::to_value(&expected).unwrap());
        let texts = [(); 2].map(|()| clusters.listed(id, version).unwrap().print(false).unwrap());
        let [first, second] = texts.each_ref().map(|text| text.memory().as_ptr());
        assert_eq!(first, second, "readers share the text");
    }
}
