//! Support levels of features by platform version, architecture and platform, as tables of data.
//!
//! Source: assisted-service, internal/featuresupport.

mod architectures;
mod availability;
mod feature_support;
mod features;
mod listing;
mod minor_version;
mod platforms;
mod requested_platform;

pub use architectures::{architecture_id, architectures};
pub use availability::{Availability, Levels};
pub use feature_support::FeatureSupport;
pub use features::{FEATURES, feature};
pub use listing::{SupportQuery, features};
pub use minor_version::MinorVersion;
pub use platforms::supported_platforms;
pub use requested_platform::RequestedPlatform;
