//! The connectivity report of a host, reduced to the inputs of decisions.
//!
//! Reports grow with the square of the number of hosts. Each is parsed once and cached beside its record.

use std::net::IpAddr;

use model::ids::HostId;
use model::steps::{ConnectivityRemoteHost, ConnectivityReport};

use crate::hardware::NetworkLimits;

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

/// Reachability of another host. The lists have no spare capacity: every pair of hosts of a cluster has one of these.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Reach {
    pub(crate) host: HostId,
    /// Layer 2 probes by address: success, and the MAC that answered.
    pub(crate) layer2: Box<[(IpAddr, bool, Option<Mac>)]>,
    /// Layer 3 probes (ping) by address: success.
    pub(crate) layer3: Box<[(IpAddr, bool)]>,
    /// Mean round trip of the addresses that answered. Units: ms.
    pub(crate) rtt_ms: Option<f64>,
    /// Worst loss among the addresses that answered. Units: percent.
    pub(crate) loss: f64,
    /// Interfaces and addresses between which packets of full size get lost.
    pub(crate) narrow: Box<[(String, String)]>,
}

impl Reach {
    /// Whether both lead to the same decisions: measurements within the limits differ in every report.
    fn is_equivalent(&self, other: &Self, limits: NetworkLimits) -> bool {
        let slow = |it: &Self| it.rtt_ms.filter(|rtt| *rtt > limits.latency_ms);
        let lossy = |it: &Self| Some(it.loss).filter(|loss| *loss > limits.packet_loss_percent);
        self.host == other.host
            && self.layer2 == other.layer2
            && self.layer3 == other.layer3
            && self.narrow == other.narrow
            && slow(self) == slow(other)
            && lossy(self) == lossy(other)
    }
}

/// Whether two reports lead to the same decisions, under the lowest limits of any role.
pub(crate) fn are_equivalent(before: &[Reach], after: &[Reach], limits: NetworkLimits) -> bool {
    let mut pairs = before.iter().zip(after);
    before.len() == after.len() && pairs.all(|(one, other)| one.is_equivalent(other, limits))
}

/// Parses a report; none when it is empty or malformed.
pub(crate) fn read(text: &str) -> Option<Vec<Reach>> {
    if text.is_empty() {
        return None;
    }
    serde_json::from_str(text).ok().map(|report| of(&report))
}

/// Reduces a report. Agents probe concurrently and report in any order: the result is sorted.
pub(crate) fn of(report: &ConnectivityReport) -> Vec<Reach> {
    let mut reaches: Vec<Reach> = report.remote_hosts.iter().filter_map(summarise).collect();
    for reach in &mut reaches {
        reach.layer2.sort_unstable();
        reach.layer3.sort_unstable();
        reach.narrow.sort_unstable();
    }
    reaches.sort_by_key(|reach| reach.host);
    reaches
}

fn summarise(remote: &ConnectivityRemoteHost) -> Option<Reach> {
    let answered = || remote.l3_connectivity.iter().filter(|link| link.successful);
    let count = u32::try_from(answered().count()).unwrap_or(u32::MAX);
    let sum: f64 = answered().map(|link| link.average_rtt_ms).sum();
    Some(Reach {
        host: remote.host_id?,
        layer2: remote
            .l2_connectivity
            .iter()
            .filter_map(|link| {
                let address = link.remote_ip_address.parse().ok()?;
                Some((address, link.successful, Mac::parse(&link.remote_mac)))
            })
            .collect(),
        layer3: remote
            .l3_connectivity
            .iter()
            .filter_map(|link| Some((link.remote_ip_address.parse().ok()?, link.successful)))
            .collect(),
        rtt_ms: (count > 0).then(|| sum / f64::from(count)),
        loss: answered()
            .map(|link| link.packet_loss_percentage)
            .fold(0.0, f64::max),
        narrow: remote
            .mtu_report
            .iter()
            .filter(|report| !report.mtu_successful)
            .map(|report| {
                (
                    report.outgoing_nic.clone(),
                    report.remote_ip_address.clone(),
                )
            })
            .collect(),
    })
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
        let reach = read(text).unwrap();
        assert_eq!(reach[0].rtt_ms, Some(3.0));
        assert!((reach[0].loss - 5.0).abs() < f64::EPSILON);
        assert_eq!(reach[0].layer3.len(), 3);
        assert_eq!(read(""), None);
        assert_eq!(read("{"), None);
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
            read(&format!(
                r#"{{"remote_hosts":[{{"host_id":"00000000-0000-0000-0000-000000000001","l3_connectivity":[{}]}}]}}"#,
                links.join(",")
            ))
            .unwrap()
        };
        let before = report(0.2, 0.0, [1, 2], true);
        let is_equivalent = |after: Vec<Reach>| are_equivalent(&before, &after, limits);
        assert!(is_equivalent(report(100.0, 0.0, [1, 2], true)));
        assert!(is_equivalent(report(0.2, 0.0, [2, 1], true)), "order");
        assert!(!is_equivalent(report(100.1, 0.0, [1, 2], true)));
        assert!(!is_equivalent(report(0.2, 0.1, [1, 2], true)));
        assert!(!is_equivalent(report(0.2, 0.0, [1, 3], true)), "addresses");
        assert!(!is_equivalent(report(0.2, 0.0, [1, 2], false)));
        assert!(!is_equivalent(Vec::new()));
    }
}
