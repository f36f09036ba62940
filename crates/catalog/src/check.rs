//! What a catalog has to keep to, rule by rule. Texts begin as the peer's do, so that people find them.

mod channel;
mod deprecation;
mod names;
mod package;
mod pull_spec;
mod report;

pub(crate) use channel::check_channel;
pub(crate) use deprecation::{Targets, check_deprecations};
pub(crate) use names::{check_custom, label_flaw};
pub(crate) use package::check_versions;
pub(crate) use pull_spec::pull_spec_flaw;
pub(crate) use report::ProblemReport;
