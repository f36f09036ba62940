//! Integration tests: the router over HTTP, with PostgreSQL.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod access;
mod audit;
mod bad_bodies;
mod binding;
mod campaign;
mod clusters;
mod contract;
mod database;
mod day2;
mod declarations;
mod dry_run;
mod errors;
mod event_stream;
mod events;
mod expected_hosts;
mod explain;
mod faults;
mod full_disk;
mod harness;
mod hosts;
mod infra_envs;
mod installation;
mod limits;
mod links;
mod manifests;
mod measurements;
mod neighbours;
mod openapi;
mod operators;
mod process;
mod reclaim;
mod replicas;
mod scale;
mod secrets;
mod secured;
mod signatures;
mod site_checks;
mod state;
mod support;
mod tenancy;
mod tokens;
mod versions;
mod vip_leases;
mod web_ui;
