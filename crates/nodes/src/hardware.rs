//! Machines of nodes by their BMCs: from records to logins, and the power and media of a replacement.
//!
//! [`recorded_bmcs`] reads BareMetalHosts with their Secrets; [`NodeBmcs`] is the
//! [`NodeHardware`](crate::replace::NodeHardware) of a replacement. Neither needs the Kubernetes API.

mod access;
mod node_bmcs;
mod recorded;

pub use access::{BmcRecordError, bmc_access};
pub use node_bmcs::NodeBmcs;
pub use recorded::{BootNicError, RecordedBmc, recorded_bmcs};
