//! Operators of the platform's lifecycle manager (OLM) that a cluster can be installed with, their bundles,
//! and where they and other features are supported.
//!
//! Source: assisted-service, internal/operators.

mod bundles;
mod catalogue;
mod compatibility;
mod detailed_features;
mod requirements;
mod selection;
mod storage;
pub mod support;

pub use bundles::{BUNDLES, BundleContent, OperatorBundle, bundle, bundles};
pub use catalogue::{OPERATORS, OlmOperator, dependency_features, operator, operator_names};
pub(crate) use compatibility::{check as check_compatibility, check_networking};
pub use detailed_features::detailed_features;
pub use requirements::{HostResources, OperatorRequirements, requirements};
pub(crate) use selection::{OperatorRequest, select};
pub(crate) use storage::{
    ODF_DISK_GB, ODF_DISKS, ODF_HOSTS, OdfMode, has_known_role, spare_disks, spare_disks_of,
};
