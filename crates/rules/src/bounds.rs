//! Bounds on one reply of an agent: bytes and counts, as data.
//!
//! Agents are not authenticated. Their replies are stored, shown, repeated in events, and read at every refresh
//! of their cluster, so each list has a bound well above real machines.

use model::Error;
use model::inventory::Inventory;
use model::steps::{StepReply, StepType};

/// Units: bytes. A machine with 2000 disks sends about 1.5 MB.
pub const INVENTORY_BYTES: usize = 2 << 20;
/// Units: bytes. A host that tries 1000 others on four networks sends about 3 MB.
pub const CONNECTIVITY_BYTES: usize = 8 << 20;
/// Units: bytes. The free addresses of a /16 take about 1 MB.
pub const FREE_ADDRESSES_BYTES: usize = 4 << 20;
/// Units: bytes, of every other step.
pub const OUTPUT_BYTES: usize = 256 << 10;
/// Units: bytes of one text in an inventory. SMART data of a disk is the longest that agents send, below 32 KiB.
pub const TEXT_BYTES: usize = 64 << 10;
/// Units: bytes of a host's name, which every event about it repeats.
pub const HOSTNAME_BYTES: usize = 1 << 10;
/// Units: bytes of a stored message of a failed step or installer.
pub const MESSAGE_BYTES: usize = 4 << 10;
/// Units: bytes of a DHCP lease of a virtual address. One with every usual option takes about 600.
pub const LEASE_BYTES: usize = 4 << 10;
/// Stored container images, tested disks, time sources or names of a host.
pub const RESULTS: usize = 256;

/// Hosts with a static network in an infra-env. More do not fit into the embed area of an image.
pub const NETWORKS: usize = 1000;
/// Units: bytes of the network configuration of one host. One with 20 bonds of VLANs has 20 KiB.
pub const NETWORK_YAML_BYTES: usize = 64 << 10;
/// NICs of one host that a static network names.
pub const NETWORK_NICS: usize = 256;
/// Units: bytes of the logical name of a NIC. The kernel's own names have at most 15.
pub const NIC_NAME_BYTES: usize = 64;

/// A bound on one list of an inventory.
#[derive(Debug)]
pub struct Count {
    /// Noun of the list's items, in the plural.
    pub name: &'static str,
    /// Most items.
    pub limit: usize,
    of: fn(&Inventory) -> usize,
}

/// The bounds on lists of an inventory.
pub static INVENTORY_COUNTS: &[Count] = &[
    Count {
        name: "disks of an inventory",
        limit: 2048,
        of: |inventory| inventory.disks.len(),
    },
    Count {
        name: "interfaces of an inventory",
        limit: 1024,
        of: |inventory| inventory.interfaces.len(),
    },
    Count {
        name: "addresses of one interface of an inventory",
        limit: 256,
        of: |inventory| addresses(inventory).max().unwrap_or(0),
    },
    Count {
        name: "addresses of an inventory",
        limit: 2048,
        of: |inventory| addresses(inventory).sum(),
    },
    Count {
        name: "routes of an inventory",
        limit: 4096,
        of: |inventory| inventory.routes.len(),
    },
    Count {
        name: "GPUs of an inventory",
        limit: 256,
        of: |inventory| inventory.gpus.len(),
    },
    Count {
        name: "CPU flags of an inventory",
        limit: 1024,
        of: |inventory| inventory.cpu.as_ref().map_or(0, |cpu| cpu.flags.len()),
    },
];

fn addresses(inventory: &Inventory) -> impl Iterator<Item = usize> {
    let of_each = inventory.interfaces.iter();
    of_each.map(|nic| nic.ipv4_addresses.len() + nic.ipv6_addresses.len())
}

/// Longest output of a step. Units: bytes.
pub fn output_bytes(step: StepType) -> usize {
    match step {
        StepType::Inventory => INVENTORY_BYTES,
        StepType::ConnectivityCheck => CONNECTIVITY_BYTES,
        StepType::FreeNetworkAddresses => FREE_ADDRESSES_BYTES,
        _ => OUTPUT_BYTES,
    }
}

/// Refuses an output before it is parsed.
///
/// Errors: `TooLarge`.
pub(crate) fn check_output(step: StepType, reply: &StepReply) -> Result<(), Error> {
    let limit = output_bytes(step);
    if reply.output.len() > limit {
        return Err(Error::TooLarge {
            what: "the output of a step",
            limit: limit as u64,
        });
    }
    Ok(())
}

/// Refuses an inventory before it is parsed.
///
/// Errors: its reason.
pub(crate) fn check_inventory_text(json: &str) -> Result<(), String> {
    if json.len() > INVENTORY_BYTES {
        return Err(format!(
            "it has {} bytes; at most {INVENTORY_BYTES} are accepted",
            json.len()
        ));
    }
    if longest_text(json) > TEXT_BYTES {
        return Err(format!(
            "one of its texts is longer than {TEXT_BYTES} bytes"
        ));
    }
    Ok(())
}

/// Refuses an inventory with longer lists than machines have.
///
/// Errors: `Invalid`, naming the list.
pub(crate) fn check_inventory(inventory: &Inventory) -> Result<(), Error> {
    for bound in INVENTORY_COUNTS {
        let found = (bound.of)(inventory);
        if found > bound.limit {
            return Err(Error::invalid(
                "output",
                format!(
                    "there are {found} {}; at most {} are accepted",
                    bound.name, bound.limit
                ),
            ));
        }
    }
    check_text("the hostname", &inventory.hostname, HOSTNAME_BYTES)
}

/// Refuses a text that is stored and shown.
///
/// Errors: `Invalid`.
pub(crate) fn check_text(what: &str, text: &str, limit: usize) -> Result<(), Error> {
    if text.len() <= limit {
        return Ok(());
    }
    Err(Error::invalid(
        "output",
        format!("{what} is longer than {limit} bytes"),
    ))
}

/// Refuses a list that is stored.
///
/// Errors: `Invalid`.
pub(crate) fn check_results(what: &str, count: usize) -> Result<(), Error> {
    if count <= RESULTS {
        return Ok(());
    }
    Err(Error::invalid(
        "output",
        format!("there are {count} {what}; at most {RESULTS} are accepted"),
    ))
}

/// Prefix of a message, of at most [`MESSAGE_BYTES`].
pub(crate) fn cut(message: &str) -> &str {
    &message[..message.floor_char_boundary(MESSAGE_BYTES)]
}

/// The length of the longest string literal in a JSON text, in one pass.
fn longest_text(json: &str) -> usize {
    let mut longest = 0;
    let mut start = None;
    let mut escaped = false;
    for (at, byte) in json.bytes().enumerate() {
        match (start, byte) {
            (Some(_), _) if escaped => escaped = false,
            (Some(_), b'\\') => escaped = true,
            (Some(begin), b'"') => {
                longest = longest.max(at - begin - 1);
                start = None;
            }
            (None, b'"') => start = Some(at),
            _ => {}
        }
    }
    longest
}

#[cfg(test)]
mod tests {
    use model::inventory::{Cpu, Disk, Gpu, Interface, Route};

    use super::*;

    fn with(name: &str, count: usize) -> Inventory {
        let nic = |addresses| Interface {
            ipv4_addresses: vec!["192.0.2.1/24".to_owned(); addresses],
            ..Interface::default()
        };
        let mut inventory = Inventory::default();
        match name {
            "disks of an inventory" => inventory.disks = vec![Disk::default(); count],
            "interfaces of an inventory" => inventory.interfaces = vec![nic(0); count],
            "addresses of one interface of an inventory" => inventory.interfaces = vec![nic(count)],
            "addresses of an inventory" => {
                inventory.interfaces = vec![nic(256); count / 256];
                inventory.interfaces.push(nic(count % 256));
            }
            "routes of an inventory" => inventory.routes = vec![Route::default(); count],
            "GPUs of an inventory" => inventory.gpus = vec![Gpu::default(); count],
            "CPU flags of an inventory" => {
                inventory.cpu = Some(Cpu {
                    flags: vec![String::new(); count],
                    ..Cpu::default()
                });
            }
            other => panic!("make an inventory with many {other}"),
        }
        inventory
    }

    // limit: disks of an inventory
    // limit: interfaces of an inventory
    // limit: addresses of one interface of an inventory
    // limit: addresses of an inventory
    // limit: routes of an inventory
    // limit: GPUs of an inventory
    // limit: CPU flags of an inventory
    #[test]
    fn every_list_is_accepted_up_to_its_bound() {
        for bound in INVENTORY_COUNTS {
            check_inventory(&with(bound.name, bound.limit)).unwrap();
            let error = check_inventory(&with(bound.name, bound.limit + 1)).unwrap_err();
            assert!(error.to_string().contains(bound.name), "{error}");
        }
    }

    // limit: hostname of an inventory
    // limit: text of an inventory
    #[test]
    fn texts_are_accepted_up_to_their_bound() {
        let mut inventory = Inventory {
            hostname: "x".repeat(HOSTNAME_BYTES),
            ..Inventory::default()
        };
        check_inventory(&inventory).unwrap();
        inventory.hostname.push('x');
        assert!(check_inventory(&inventory).is_err());
        let text = |length| format!(r#"{{"a\"b":"{}"}}"#, "\\\"".repeat(length / 2));
        check_inventory_text(&text(TEXT_BYTES)).unwrap();
        check_inventory_text(&text(TEXT_BYTES + 2)).unwrap_err();
    }

    // limit: output of an inventory step
    #[test]
    fn inventories_are_accepted_up_to_their_bound() {
        let text = |length| " ".repeat(length);
        check_inventory_text(&text(INVENTORY_BYTES)).unwrap();
        check_inventory_text(&text(INVENTORY_BYTES + 1)).unwrap_err();
    }

    // limit: output of a connectivity step
    // limit: output of a free addresses step
    // limit: output of another step
    #[test]
    fn outputs_are_accepted_up_to_their_bound() {
        for step in [
            StepType::ConnectivityCheck,
            StepType::FreeNetworkAddresses,
            StepType::NtpSynchronizer,
        ] {
            let reply = |length| StepReply {
                output: " ".repeat(length),
                ..StepReply::default()
            };
            check_output(step, &reply(output_bytes(step))).unwrap();
            let error = check_output(step, &reply(output_bytes(step) + 1)).unwrap_err();
            assert!(matches!(error, Error::TooLarge { .. }), "{error}");
        }
    }

    #[test]
    fn messages_are_cut_between_characters() {
        assert_eq!(cut("short"), "short");
        assert_eq!(cut(&"ä".repeat(MESSAGE_BYTES)).len(), MESSAGE_BYTES);
        assert_eq!(
            cut(&format!("x{}", "ä".repeat(MESSAGE_BYTES))).len(),
            MESSAGE_BYTES - 1
        );
    }
}
