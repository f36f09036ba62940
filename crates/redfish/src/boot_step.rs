//! Steps of procedures, and the power that a stopped one leaves a host with.

use std::fmt;

/// A step of a procedure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum BootStep {
    /// Medium and boot source are there; nothing is changed yet.
    Check,
    /// The host is off.
    PowerOff,
    /// Other images are ejected, and this one is inserted.
    InsertMedium,
    /// The next start boots from the medium.
    SetBootSource,
    /// The host is on.
    PowerOn,
    /// All images are ejected.
    EjectMedium,
    /// No override is left.
    ClearBootSource,
    /// The boot order is read.
    ReadBootOrder,
}

impl BootStep {
    /// Its words, as of a heading.
    pub fn title(self) -> &'static str {
        match self {
            Self::Check => "check medium and boot source",
            Self::PowerOff => "power off",
            Self::InsertMedium => "insert the medium",
            Self::SetBootSource => "set the boot source",
            Self::PowerOn => "power on",
            Self::EjectMedium => "eject the medium",
            Self::ClearBootSource => "clear the boot source",
            Self::ReadBootOrder => "read the boot order",
        }
    }
}

impl fmt::Display for BootStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.title())
    }
}

/// The power that a procedure left a host with when it stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoppedPower {
    /// Seen off.
    Off,
    /// Not readable; it was off before.
    Unknown,
}

impl StoppedPower {
    /// Its words behind an error.
    pub(super) const fn remark(self) -> &'static str {
        match self {
            Self::Off => "; the host is off now: power it on, or boot it again",
            Self::Unknown => "; the host may be off: look at its power",
        }
    }
}
