//! Events of category metrics: the hardware of hosts whose installation ended.
//!
//! Source: assisted-service, internal/metrics/metricsManager.go, reportHostMetricsOnInstallationComplete.

use model::events::{EventCategory, EventSeverity};
use model::host::{Host, HostStage};

use crate::event::NewEvent;
use crate::snapshot::host_state::HostState;

/// Name of the event with processors and memory.
pub const HARDWARE: &str = "host.mem.cpu";
const DISK: &str = "disk.size.type";
const NIC: &str = "nic.speed";
/// Disks, and NICs, with an event of their own.
pub const MAX_PARTS: usize = 64;

/// Role in metrics: that of the host, or bootstrap.
pub fn role(host: &Host) -> &'static str {
    match host.role {
        _ if host.bootstrap => "bootstrap",
        Some(role) => role.as_str(),
        None => "",
    }
}

/// Events about the hardware of a host that reached its last stage; `result` is that stage or Failed.
pub(crate) fn of_ended_installation(host: &HostState, result: HostStage) -> Vec<NewEvent> {
    let Some(inventory) = &host.inventory else {
        return Vec::new();
    };
    let about = |name| {
        let mut event = NewEvent::new(name, EventSeverity::Info, name).host(&host.record);
        event.category = EventCategory::Metrics;
        event
            .prop("host_role", role(&host.record))
            .prop("host_result", result)
    };
    let cores = inventory.cpu.as_ref().map_or(0, |cpu| cpu.count);
    let memory = inventory.memory.as_ref();
    let memory = memory.map_or(0, |memory| memory.physical_bytes);
    let hardware = about(HARDWARE)
        .number("core_count", cores)
        .number("mem_bytes", gib(memory));
    let disks = inventory.disks.iter().take(MAX_PARTS).map(|disk| {
        about(DISK)
            .prop("disk_type", disk.known_type())
            .number("disk_size", gib(disk.size_bytes))
    });
    let nics = inventory.interfaces.iter().take(MAX_PARTS);
    let nics = nics.map(|nic| about(NIC).number("nic_speed", nic.speed_mbps));
    std::iter::once(hardware).chain(disks).chain(nics).collect()
}

/// The peer's unit, which differs from the name of the property.
fn gib(bytes: i64) -> i64 {
    bytes >> 30
}

#[cfg(test)]
mod tests {
    use model::inventory::{Disk, Interface};

    use super::*;
    use crate::samples;

    #[test]
    fn the_hardware_of_a_host_is_reported_by_its_parts() {
        let mut snapshot = samples::snapshot();
        let host = &mut snapshot.hosts[0];
        host.record.bootstrap = true;
        let inventory = host.inventory.clone().unwrap();
        let events = of_ended_installation(host, HostStage::Failed);
        assert_eq!(
            events.len(),
            1 + inventory.disks.len() + inventory.interfaces.len()
        );
        for event in &events {
            assert_eq!(event.category, EventCategory::Metrics);
            assert_eq!(event.name, event.message);
            assert_eq!(event.host_id, Some(host.record.id));
            assert_eq!(event.props["host_role"], "bootstrap");
            assert_eq!(event.props["host_result"], "Failed");
        }
        assert_eq!(events[0].name, HARDWARE);
        assert_eq!(
            events[0].props["core_count"],
            inventory.cpu.as_ref().unwrap().count
        );
        host.inventory = None;
        assert!(of_ended_installation(host, HostStage::Done).is_empty());
    }

    // limit: disks or NICs in events of an installation
    #[test]
    fn a_host_with_many_disks_has_few_events() {
        let mut snapshot = samples::snapshot();
        let host = &mut snapshot.hosts[0];
        let mut inventory = (*host.inventory.clone().unwrap()).clone();
        inventory.disks = vec![Disk::default(); MAX_PARTS];
        inventory.interfaces = vec![Interface::default(); MAX_PARTS + 1];
        host.inventory = Some(inventory.into());
        let events = of_ended_installation(host, HostStage::Done);
        let count = |name| events.iter().filter(|event| event.name == name).count();
        assert_eq!((count(DISK), count(NIC)), (MAX_PARTS, MAX_PARTS));
    }
}
