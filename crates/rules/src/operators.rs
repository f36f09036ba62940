//! Operators of the platform's lifecycle manager (OLM) that a cluster can be installed with, and their bundles.
//!
//! Source: assisted-service, internal/operators.

mod bundles;
mod catalogue;
mod compatibility;
mod selection;

pub use bundles::{BUNDLES, BundleContent, OperatorBundle, bundle, bundles};
pub use catalogue::{OPERATORS, OlmOperator, dependency_features, operator, operator_names};
pub(crate) use compatibility::check as check_compatibility;
pub(crate) use selection::{OperatorRequest, select};
