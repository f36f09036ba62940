//! The table of faults that a machine may have: name, time, and effect on its replies.

/// Fault of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostFault {
    /// 4 GiB of memory.
    Ram,
    /// One processor.
    Cpu,
    /// A 20 GB disk.
    Disk,
    /// A disk that syncs slowly.
    Speed,
    /// No time source answers.
    Ntp,
    /// Cannot pull any image.
    Images,
    /// Other hosts do not answer it.
    Network,
    /// The identity of another machine.
    Identity,
    /// Boots the discovery image after the installation.
    BootOrder,
    /// The medium of the discovery image is unplugged.
    Medium,
    /// Writing the image fails.
    Write,
    /// Restarts while it writes the image.
    Power,
    /// A part of its requests gets lost.
    Replies,
    /// Boots later than the others.
    Late,
    /// Its clock is wrong.
    Clock,
}

/// A fault as a row.
#[derive(Debug, Clone, Copy)]
pub struct HostFaultKind {
    /// The fault.
    pub fault: HostFault,
    /// Name on command lines.
    pub name: &'static str,
    /// Time at which it shows.
    pub when: &'static str,
    /// Effect on the machine's replies.
    pub effect: &'static str,
}

/// All faults.
pub static FAULTS: &[HostFaultKind] = &[
    row(HostFault::Ram, "ram", "inventory", "4 GiB of memory"),
    row(HostFault::Cpu, "cpu", "inventory", "one processor"),
    row(HostFault::Disk, "disk", "inventory", "disks of 20 GB"),
    row(
        HostFault::Speed,
        "speed",
        "disk check",
        "a sync of the disk takes 47 ms",
    ),
    row(HostFault::Ntp, "ntp", "checks", "no time source answers"),
    row(
        HostFault::Images,
        "images",
        "image check",
        "no image can be pulled",
    ),
    row(
        HostFault::Network,
        "network",
        "checks",
        "other hosts do not answer",
    ),
    row(
        HostFault::Identity,
        "identity",
        "registration",
        "the serial number and host id of another machine",
    ),
    row(
        HostFault::BootOrder,
        "boot-order",
        "after the installation",
        "the discovery image boots in place of the disk",
    ),
    row(
        HostFault::Medium,
        "medium",
        "after the inventory",
        "steps fail: the medium of the discovery image is unplugged",
    ),
    row(
        HostFault::Write,
        "write",
        "installation",
        "writing the image fails at 50 %",
    ),
    row(
        HostFault::Power,
        "power",
        "installation",
        "the machine restarts at 50 % of the image",
    ),
    row(
        HostFault::Replies,
        "replies",
        "always",
        "a third of polls and replies gets lost",
    ),
    row(
        HostFault::Late,
        "late",
        "start",
        "boots 5 minutes after the others",
    ),
    row(
        HostFault::Clock,
        "clock",
        "always",
        "the clock is an hour slow",
    ),
];

const fn row(
    fault: HostFault,
    name: &'static str,
    when: &'static str,
    effect: &'static str,
) -> HostFaultKind {
    HostFaultKind {
        fault,
        name,
        when,
        effect,
    }
}

impl HostFault {
    /// Parses the name of a fault. Errors: a text with all names.
    pub fn parse(name: &str) -> Result<Self, String> {
        let kind = FAULTS.iter().find(|kind| kind.name == name);
        kind.map(|kind| kind.fault).ok_or_else(|| {
            let names: Vec<&str> = FAULTS.iter().map(|kind| kind.name).collect();
            format!("{name:?} is none of {}", names.join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_found_by_its_name() {
        for kind in FAULTS {
            assert_eq!(HostFault::parse(kind.name), Ok(kind.fault));
        }
        assert!(HostFault::parse("fan").unwrap_err().contains("boot-order"));
    }
}
