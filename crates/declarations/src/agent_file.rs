//! agent-config.yaml, read into a declaration.

use std::net::IpAddr;

use rules::input;

use crate::declaration::Declaration;
use crate::documents::AGENT;
use crate::hosts::{self, HostSource};
use crate::members::FileMembers;
use crate::problems::SiteProblems;

/// Versions of the file; the installer rewrites the older one.
const API_VERSIONS: [&str; 2] = ["v1beta1", "v1alpha1"];
const RENDEZVOUS: &str = "has no effect: this service runs the installation, and chooses the host that becomes the first member of the control plane";

/// Adds the members of the file to a declaration. Of members that are refused, it gets the rest.
pub(crate) fn read(
    members: &FileMembers,
    problems: &mut SiteProblems,
    declaration: &mut Declaration,
) {
    let text = |path: &str| members.text(path).filter(|text| !text.is_empty());
    match text("apiVersion") {
        None => {
            let reason = "apiVersion is missing: write apiVersion: v1beta1";
            members.refuse(problems, "", reason);
        }
        Some(version) if !API_VERSIONS.contains(&version.as_str()) => {
            let remedy = "is unknown: write v1beta1";
            members.refuse_value(problems, "apiVersion", (&version, remedy));
        }
        Some(_) => {}
    }
    if let Some(address) = text("rendezvousIP") {
        let checked = input::ip("", &address);
        let parsed: Option<IpAddr> = members.check(problems, "rendezvousIP", checked);
        if parsed.is_some() {
            problems.note(AGENT, "rendezvousIP", RENDEZVOUS);
        }
    }
    let sources = members.texts("additionalNTPSources");
    for (index, source) in sources.iter().flatten().enumerate() {
        let checked = input::additional_ntp_source("", source);
        let path = format!("additionalNTPSources[{index}]");
        members.check(problems, &path, checked);
    }
    declaration.infra_env_name = text("metadata.name");
    declaration.ntp_sources = sources;
    declaration.minimal_iso = members.bool("minimalISO");
    declaration.embedded_agent = members.bool("embeddedAgent");
    if members.node("hosts").is_some() {
        declaration.hosts = Some(hosts::read(members, HostSource::AgentConfig, problems));
    }
}
