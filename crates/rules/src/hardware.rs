//! Hardware of hosts: requirements, and disks that an installation may take.

pub(crate) mod check_outcome;
pub mod disks;
pub mod requirements;
