//! Declarations: the agent-based installer's input files as the wanted state of a cluster, its infra-env and its
//! expected hosts.
//!
//! A member that the files leave out, or that is null, keeps its value. Every member is honoured, refused or noted as
//! one without effect: `schema` has the table. Invariant: the exported files of any state, read again, change nothing.
//!
//! Source: openshift/installer, pkg/types/installconfig.go, pkg/types/agent/agent_config_type.go.

mod agent_file;
mod api_members;
#[cfg(test)]
mod corpus_tests;
mod current;
mod declaration;
mod documents;
mod export;
mod files;
mod hosts;
mod install_file;
mod installer_rules;
#[cfg(test)]
mod installer_rules_tests;
mod members;
mod overrides;
mod places;
mod plan;
mod problems;
mod schema;
pub mod site;
#[cfg(test)]
mod test_cluster;
#[cfg(test)]
mod tests;

pub use current::{CurrentState, declare};
pub use declaration::Declaration;
pub use documents::{decode, documents};
pub use export::print;
pub use files::{FileText, parse};
pub use hosts::{DeclaredHost, DeclaredInterface};
pub use plan::{ApplyPlan, cluster_params, infra_env_params, plan};
