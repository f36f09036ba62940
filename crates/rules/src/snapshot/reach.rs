//! The connectivity report of a host, reduced to the inputs of decisions.
//!
//! Reports grow with the square of the number of hosts. Each is parsed once and cached beside its record.

use std::net::IpAddr;

use model::ids::HostId;
use model::steps::{ConnectivityRemoteHost, ConnectivityReport, L3Connectivity, MtuReport};

/// Limits of measurements between two hosts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct NetworkLimits {
    pub(crate) latency_ms: f64,
    pub(crate) packet_loss_percent: f64,
}

/// A hardware address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Mac([u8; 6]);

impl Mac {
    /// Parses six bytes in hexadecimal, separated by colons or hyphens.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut bytes = [0; 6];
        let mut parts = text.split([':', '-']);
        for byte in &mut bytes {
            *byte = u8::from_str_radix(parts.next()?, 16).ok()?;
        }
        parts.next().is_none().then_some(Self(bytes))
    }
}

impl std::fmt::Display for Mac {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (at, byte) in self.0.iter().enumerate() {
            let separator = if at == 0 { "" } else { ":" };
            write!(f, "{separator}{byte:02x}")?;
        }
        Ok(())
    }
}

/// A layer 2 probe of an address: success, and the MAC that answered.
type Layer2 = (IpAddr, bool, Option<Mac>);
/// A layer 3 probe (ping) of an address: success.
type Layer3 = (IpAddr, bool);
/// An interface and an address between which packets of full size get lost.
type NarrowLink = (String, String);

/// Reachability of the other hosts, sorted by host. Every pair of hosts of a cluster is in one of these: links are in
/// three lists, rather than in three of each pair.
#[derive(Debug, PartialEq)]
pub(crate) struct Reaches {
    hosts: Box<[ReachSummary]>,
    layer2: Box<[Layer2]>,
    layer3: Box<[Layer3]>,
    narrow: Box<[NarrowLink]>,
}

/// A host, and the ends of its parts of the lists.
#[derive(Debug, PartialEq)]
struct ReachSummary {
    host: HostId,
    rtt_ms: Option<f64>,
    loss: f64,
    layer2: usize,
    layer3: usize,
    narrow: usize,
}

/// Reachability of another host.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Reach<'a> {
    pub(crate) host: HostId,
    pub(crate) layer2: &'a [Layer2],
    pub(crate) layer3: &'a [Layer3],
    pub(crate) narrow: &'a [NarrowLink],
    /// Mean round trip of the addresses that answered. Units: ms.
    pub(crate) rtt_ms: Option<f64>,
    /// Worst loss among the addresses that answered. Units: percent.
    pub(crate) loss: f64,
}

impl Reaches {
    /// Reduces a report. Agents probe concurrently and report in any order: the result is sorted.
    pub(crate) fn of(report: &ConnectivityReport) -> Self {
        let mut remotes: Vec<(HostId, &ConnectivityRemoteHost)> = report
            .remote_hosts
            .iter()
            .filter_map(|remote| Some((remote.host_id?, remote)))
            .collect();
        remotes.sort_by_key(|(host, _)| *host);
        let mut hosts = Vec::with_capacity(remotes.len());
        let (mut layer2, mut layer3, mut narrow) = (Vec::new(), Vec::new(), Vec::new());
        for (host, remote) in remotes {
            append_sorted(&mut layer2, layer2_links(remote));
            append_sorted(&mut layer3, layer3_links(remote));
            append_sorted(&mut narrow, narrow_links(remote));
            hosts.push(ReachSummary {
                host,
                rtt_ms: mean_rtt_ms(remote),
                loss: worst_loss(remote),
                layer2: layer2.len(),
                layer3: layer3.len(),
                narrow: narrow.len(),
            });
        }
        Self {
            hosts: hosts.into(),
            layer2: layer2.into(),
            layer3: layer3.into(),
            narrow: narrow.into(),
        }
    }

    /// Parses a report; none when it is empty or malformed.
    pub(crate) fn read(text: &str) -> Option<Self> {
        if text.is_empty() {
            return None;
        }
        serde_json::from_str(text)
            .ok()
            .map(|report| Self::of(&report))
    }

    /// The hosts, sorted by id.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Reach<'_>> {
        let (mut layer2, mut layer3, mut narrow) = (0, 0, 0);
        self.hosts.iter().map(move |one| Reach {
            host: one.host,
            layer2: &self.layer2[std::mem::replace(&mut layer2, one.layer2)..one.layer2],
            layer3: &self.layer3[std::mem::replace(&mut layer3, one.layer3)..one.layer3],
            narrow: &self.narrow[std::mem::replace(&mut narrow, one.narrow)..one.narrow],
            rtt_ms: one.rtt_ms,
            loss: one.loss,
        })
    }

    /// The layer 2 probes of all hosts.
    pub(crate) fn layer2(&self) -> &[Layer2] {
        &self.layer2
    }

    /// The lossy links to all hosts.
    pub(crate) fn narrow(&self) -> &[NarrowLink] {
        &self.narrow
    }

    /// Whether both lead to the same decisions, under the lowest limits of any role: measurements within the limits
    /// differ in every report.
    pub(crate) fn are_equivalent(&self, other: &Self, limits: NetworkLimits) -> bool {
        let slow = |it: &ReachSummary| it.rtt_ms.filter(|rtt| *rtt > limits.latency_ms);
        let lossy =
            |it: &ReachSummary| Some(it.loss).filter(|loss| *loss > limits.packet_loss_percent);
        let mut pairs = self.hosts.iter().zip(&other.hosts);
        self.hosts.len() == other.hosts.len()
            && pairs.all(|(one, other)| {
                one.host == other.host
                    && (one.layer2, one.layer3, one.narrow)
                        == (other.layer2, other.layer3, other.narrow)
                    && slow(one) == slow(other)
                    && lossy(one) == lossy(other)
            })
            && self.layer2 == other.layer2
            && self.layer3 == other.layer3
            && self.narrow == other.narrow
    }
}

fn append_sorted<T: Ord>(list: &mut Vec<T>, part: impl Iterator<Item = T>) {
    let start = list.len();
    list.extend(part);
    list[start..].sort_unstable();
}

fn layer2_links(remote: &ConnectivityRemoteHost) -> impl Iterator<Item = Layer2> {
    remote.l2_connectivity.iter().filter_map(|link| {
        let address = link.remote_ip_address.parse().ok()?;
        Some((address, link.successful, Mac::parse(&link.remote_mac)))
    })
}

fn layer3_links(remote: &ConnectivityRemoteHost) -> impl Iterator<Item = Layer3> {
    remote
        .l3_connectivity
        .iter()
        .filter_map(|link| Some((link.remote_ip_address.parse().ok()?, link.successful)))
}

fn narrow_links(remote: &ConnectivityRemoteHost) -> impl Iterator<Item = NarrowLink> {
    let lost = |report: &&MtuReport| !report.mtu_successful;
    remote.mtu_report.iter().filter(lost).map(|report| {
        (
            report.outgoing_nic.clone(),
            report.remote_ip_address.clone(),
        )
    })
}

fn answered(remote: &ConnectivityRemoteHost) -> impl Iterator<Item = &L3Connectivity> {
    remote.l3_connectivity.iter().filter(|link| link.successful)
}

fn mean_rtt_ms(remote: &ConnectivityRemoteHost) -> Option<f64> {
    let count = u32::try_from(answered(remote).count()).unwrap_or(u32::MAX);
    let sum: f64 = answered(remote).map(|link| link.average_rtt_ms).sum();
    (count > 0).then(|| sum / f64::from(count))
}

fn worst_loss(remote: &ConnectivityRemoteHost) -> f64 {
    answered(remote)
        .map(|link| link.packet_loss_percentage)
        .fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hardware_addresses_are_read_and_printed() {
        let mac = Mac::parse("52:54:00:AB:cd:0f").unwrap();
        assert_eq!(mac.to_string(), "52:54:00:ab:cd:0f");
        assert_eq!(Mac::parse("52-54-00-ab-cd-0f"), Some(mac));
        for text in [
            "",
            "52:54:00:ab:cd",
            "52:54:00:ab:cd:0f:01",
            "zz:54:00:ab:cd:0f",
        ] {
            assert_eq!(Mac::parse(text), None, "{text}");
        }
    }

    #[test]
    fn only_answers_count_for_round_trips() {
        let text = r#"{"remote_hosts":[{"host_id":"00000000-0000-0000-0000-000000000001","l3_connectivity":[
            {"remote_ip_address":"10.0.0.1","successful":true,"average_rtt_ms":2,"packet_loss_percentage":5},
            {"remote_ip_address":"10.0.0.2","successful":true,"average_rtt_ms":4},
            {"remote_ip_address":"10.0.0.3","packet_loss_percentage":100}]}]}"#;
        let reaches = Reaches::read(text).unwrap();
        let reach = reaches.iter().next().unwrap();
        assert_eq!(reach.rtt_ms, Some(3.0));
        assert!((reach.loss - 5.0).abs() < f64::EPSILON);
        assert_eq!(reach.layer3.len(), 3);
        assert_eq!(Reaches::read(""), None);
        assert_eq!(Reaches::read("{"), None);
    }

    #[test]
    fn only_measurements_beyond_a_limit_make_a_difference() {
        let limits = NetworkLimits {
            latency_ms: 100.0,
            packet_loss_percent: 0.0,
        };
        let report = |rtt: f64, loss: f64, order: [u8; 2], is_reached: bool| {
            let links = order.map(|last| {
                format!(
                    r#"{{"remote_ip_address":"10.0.0.{last}","successful":{is_reached},"average_rtt_ms":{rtt},
                        "packet_loss_percentage":{loss}}}"#
                )
            });
            Reaches::read(&format!(
                r#"{{"remote_hosts":[{{"host_id":"00000000-0000-0000-0000-000000000001","l3_connectivity":[{}]}}]}}"#,
                links.join(",")
            ))
            .unwrap()
        };
        let before = report(0.2, 0.0, [1, 2], true);
        let is_equivalent = |after: Reaches| before.are_equivalent(&after, limits);
        assert!(is_equivalent(report(100.0, 0.0, [1, 2], true)));
        assert!(is_equivalent(report(0.2, 0.0, [2, 1], true)), "order");
        assert!(!is_equivalent(report(100.1, 0.0, [1, 2], true)));
        assert!(!is_equivalent(report(0.2, 0.1, [1, 2], true)));
        assert!(!is_equivalent(report(0.2, 0.0, [1, 3], true)), "addresses");
        assert!(!is_equivalent(report(0.2, 0.0, [1, 2], false)));
        assert!(!is_equivalent(Reaches::of(&ConnectivityReport::default())));
    }

    #[test]
    fn hosts_are_sorted_and_keep_their_links() {
        let remote = |host: u128, links: &str| {
            let id = uuid::Uuid::from_u128(host);
            format!(r#"{{"host_id":"{id}",{links}}}"#)
        };
        let text = [
            remote(
                2,
                r#""l2_connectivity":[{"remote_ip_address":"10.0.0.4","successful":true},
                    {"remote_ip_address":"10.0.0.3","successful":true}],"mtu_report":[{"outgoing_nic":"eth0"}]"#,
            ),
            remote(3, r#""l3_connectivity":[{"remote_ip_address":"10.0.0.5"}]"#),
            remote(
                1,
                r#""l2_connectivity":[{"remote_ip_address":"10.0.0.2"},{"remote_ip_address":"x"}]"#,
            ),
        ];
        let text = format!(r#"{{"remote_hosts":[{}]}}"#, text.join(","));
        let reaches = Reaches::read(&text).unwrap();
        let seen: Vec<_> = reaches
            .iter()
            .map(|reach| {
                let addresses = reach.layer2.iter().map(|(address, ..)| address.to_string());
                (
                    reach.host.0.as_u128(),
                    addresses.collect::<Vec<_>>().join(" "),
                    reach.layer3.len(),
                    reach.narrow.len(),
                )
            })
            .collect();
        let expected = [
            (1, "10.0.0.2".to_owned(), 0, 0),
            (2, "10.0.0.3 10.0.0.4".to_owned(), 0, 1),
            (3, String::new(), 1, 0),
        ];
        assert_eq!(seen, expected);
        assert_eq!((reaches.layer2().len(), reaches.narrow().len()), (3, 1));
    }
}
