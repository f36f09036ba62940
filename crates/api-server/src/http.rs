//! Handlers by noun: extract, call, respond.

pub(crate) mod access;
pub(crate) mod agent;
mod archive;
pub(crate) mod audit;
pub(crate) mod clusters;
pub(crate) mod declarations;
pub(crate) mod download;
pub(crate) mod dry_run;
mod encoded_json;
pub(crate) mod error;
pub(crate) mod events;
pub(crate) mod expected_hosts;
pub(crate) mod explain;
pub(crate) mod extract;
pub(crate) mod files;
pub(crate) mod hosts;
pub(crate) mod infra_envs;
pub(crate) mod installation;
pub(crate) mod jobs;
pub(crate) mod logs;
pub(crate) mod manifests;
pub(crate) mod operators;
mod patterns;
pub(crate) mod query;
pub(crate) mod site_checks;
pub(crate) mod support;
pub(crate) mod versions;
