//! Machines of nodes by their BMCs: from records to logins, and the power and media of a replacement.
//!
//! [`recorded_bmcs`] reads BareMetalHosts with their Secrets; [`NodeBmcs`] is the
//! [`NodeHardware`](crate::replace::NodeHardware) of a replacement. Neither needs the Kubernetes API.

mod access;
mod node_bmcs;
mod recorded;

#[cfg(feature = "kubernetes")]
pub(crate) use access::endpoint as bmc_endpoint;
pub use access::{BmcRecordError, bmc_access};
pub use node_bmcs::NodeBmcs;
#[cfg(feature = "kubernetes")]
pub(crate) use node_bmcs::observation_timing;
pub use recorded::{BootNicError, RecordedBmc, recorded_bmcs};
