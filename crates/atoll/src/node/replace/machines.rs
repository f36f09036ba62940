//! The machines of a replacement, from the records of their hosts.

use host_records::{ApiGroups, RecordFile, recorded_bmcs};
use redfish::BmcAccess;
use replacement::{MachineSide, NodeBmcs, NodePlace};
use serde_json::Value;
use service::Error;

use super::arguments::NodeBootArgs;
use super::records::MachineRecords;
use crate::host::bmcs::connector;
use crate::host::boot::medium;
use crate::terminal;

const DOING: &str = "reading the BMC of";

/// The BMCs of both machines, as far as their records name any.
///
/// Errors: a file of authorities cannot be read; an image is named, and the new machine has no BMC.
pub(super) fn of_records(records: &MachineRecords, boot: &NodeBootArgs) -> Result<NodeBmcs, Error> {
    let mut bmcs = NodeBmcs::new(&connector(boot.bmc_ca.as_deref())?);
    let medium = medium(boot.image.as_ref(), boot.http_boot.as_ref());
    let has_medium = medium.is_some();
    if let Some((_, medium)) = medium {
        bmcs = bmcs.with_medium(medium);
    }
    for (side, records) in [
        (MachineSide::Old, &records.old),
        (MachineSide::New, &records.new),
    ] {
        if let Some(access) = access(side, records) {
            bmcs = bmcs.with_machine(side, access);
        }
    }
    if has_medium && !bmcs.boots() {
        let reason = "its records have no BMC that can boot an image: leave out the image and boot it yourself, or name \
                      other records with --records";
        return Err(Error::new("booting the new machine", reason));
    }
    Ok(bmcs)
}

/// No machines, for the observation that a case is made of.
///
/// Errors: the system's authorities cannot be read.
pub(super) fn none() -> Result<NodeBmcs, Error> {
    Ok(NodeBmcs::new(&connector(None)?))
}

/// Instructions for the boot of a machine without BMC or image.
pub(super) fn instructions(machines: &NodeBmcs, new: &NodePlace) -> Option<String> {
    (!machines.boots()).then(|| {
        format!(
            "Boot {} ({}) with the image of its node now; `atoll node image` makes it. The replacement continues when it \
             asks for its certificates.",
            new.name, new.address
        )
    })
}

/// The access to the BMC of the one host among the records; a host without a usable one is served by a person.
fn access(side: MachineSide, records: &[Value]) -> Option<BmcAccess> {
    let documents: Vec<_> = records.iter().map(Value::to_string).collect();
    let file = RecordFile::read("records", documents.join("\n---\n").as_bytes());
    let found = recorded_bmcs(std::slice::from_ref(&file), &ApiGroups::default());
    let host = found.into_iter().next()?;
    match host.access {
        Ok(access) => Some(access),
        Err(error) => {
            let machine = match side {
                MachineSide::Old => "old",
                MachineSide::New => "new",
            };
            let name = host.name;
            terminal::notice(&format!(
                "{DOING} the {machine} machine, host {name}: {error}"
            ));
            None
        }
    }
}
