//! Validation, rule by rule. Messages begin as opm's do, so that searches find them. Source: operator-registry,
//! `alpha/declcfg/declcfg_to_model.go`, `alpha/model/model.go`.

mod channel;
mod deprecation;
mod names;
mod package;
mod pull_spec;
mod report;

pub(crate) use channel::check_channel;
pub(crate) use deprecation::{Targets, valid_deprecations};
pub(crate) use names::{check_custom, label_flaw};
pub(crate) use package::check_versions;
pub(crate) use pull_spec::pull_spec_flaw;
pub use report::PackageProblems;
pub(crate) use report::ProblemReport;
