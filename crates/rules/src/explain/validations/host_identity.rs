//! Identity validations of hosts: expected machines, and ids and serial numbers that two machines have. They are hidden
//! from clients of other installers, unless there is a list of expected hosts or a conflict.

use super::subject::HostSubject;
use super::verdict::Verdict;
use crate::host::expected_hosts::differences;
use crate::host::identity::{self, mac_addresses, serial_number};

/// Compares the host with the list of its infra-env.
pub(super) fn matches_expected_host(subject: &HostSubject<'_>) -> Verdict {
    let host = subject.host;
    let Some(expectation) = &host.record.expectation else {
        return Verdict::Hidden;
    };
    let Some(entry) = &expectation.expected else {
        let inventory = host.inventory.as_deref();
        let macs = inventory.map(mac_addresses).unwrap_or_default().join(", ");
        let serial = inventory.and_then(serial_number).unwrap_or("unknown");
        return Verdict::fail(format!(
            "Expected hosts: none of {} has serial number {serial} or a MAC address of {macs}; add the machine to the list or remove the host",
            expectation.listed
        ))
        .observed(format_args!("serial number {serial}, MAC addresses {macs}"))
        .required(format_args!("one of {} expected hosts", expectation.listed));
    };
    let found = differences(host, entry);
    let texts: Vec<String> = found.iter().map(ToString::to_string).collect();
    let parts = |part: fn(&crate::host::expected_hosts::Difference) -> &String| {
        let parts: Vec<&str> = found.iter().map(|one| part(one).as_str()).collect();
        parts.join(", ")
    };
    Verdict::of(
        found.is_empty(),
        "The host is as expected",
        format_args!(
            "Expected hosts: {}; correct the host or the list",
            texts.join("; ")
        ),
    )
    .observed(parts(|one| &one.observed))
    .required(parts(|one| &one.required))
}

/// Detects two machines that report under the host's id.
pub(super) fn host_id_unique(subject: &HostSubject<'_>) -> Verdict {
    let record = &subject.host.record;
    let Some(conflict) = identity::conflict(record, subject.now) else {
        return Verdict::Hidden;
    };
    let (one, other) = (
        conflict.mac_addresses.join(", "),
        conflict.other_mac_addresses.join(", "),
    );
    Verdict::fail(format!(
        "Host id {} is used by two machines: one with MAC addresses {one}, one with {other}; give each its own serial number and UUID",
        record.id
    ))
    .observed(format_args!(
        "a machine with MAC addresses {one}, and one with {other}"
    ))
}

/// Detects other hosts of the cluster with the same serial number and other MAC addresses.
pub(super) fn serial_number_unique(subject: &HostSubject<'_>) -> Verdict {
    let (Ok(cluster), Ok(inventory)) = (subject.cluster(), subject.inventory()) else {
        return Verdict::Hidden;
    };
    let Some(serial) = serial_number(inventory) else {
        return Verdict::Hidden;
    };
    let own = mac_addresses(inventory);
    let holders = cluster.serial_numbers.get(serial).into_iter().flatten();
    let others: Vec<String> = holders
        .take(COMPARED)
        .map(|at| &cluster.snapshot.hosts[*at])
        .filter(|other| other.record.id != subject.host.record.id)
        .filter_map(|other| {
            let macs = mac_addresses(other.inventory.as_ref()?);
            let is_other = identity::are_different(&own, &macs);
            is_other.then(|| format!("{} ({})", other.name(), macs.join(", ")))
        })
        .take(SHOWN)
        .collect();
    if others.is_empty() {
        return Verdict::Hidden;
    }
    let (own, others) = (own.join(", "), others.join("; "));
    Verdict::fail(format!(
        "Serial number {serial} of this host ({own}) is that of {others}, too; give each machine its own"
    ))
    .observed(format_args!("{own} and {others}"))
}

/// Hosts of one serial number that are compared with each other: all of a cluster may have the same.
const COMPARED: usize = 64;
/// Other hosts that one message names.
const SHOWN: usize = 8;
