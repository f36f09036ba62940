//! The status page for people.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use service::clock::Timestamp;
use service::forward::ReplicaStatus;
use service::tls::{CertificateState, CertificateStates, PassthroughStatus};

use super::report::{ReloadOutcome, RouteStatus, StatusReport};
use crate::files::PAGE_STYLE;

/// Rows of one table; `status.json` has all.
const MAX_ROWS: usize = 256;

/// The page of `report`.
pub(super) fn page(report: &StatusReport) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { "Status of the reverse proxy" }
                style { (PreEscaped(PAGE_STYLE)) }
            }
            body {
                h1 { "Reverse proxy" }
                (summary(report))
                @for route in &report.routes { (route_section(route)) }
                @if let Some(registry) = &report.registry { (passed(registry)) }
                @if let Some(states) = &report.certificates { (certificates(report, states)) }
                p { "Programs read " a href="/status.json" { "status.json" } "; metrics are on the port of /ready." }
            }
        }
    }
}

fn summary(report: &StatusReport) -> Markup {
    let connections = &report.connections;
    html! {
        p { "Version " (report.version) ", started " (time(report.started)) ", now " (time(report.now)) "." }
        p { (connections.open) " of " (connections.max) " connections are open." }
        @match &report.last_reload {
            None => p { "No reload of the settings since the start." },
            Some(outcome) => { (last_reload(outcome)) },
        }
    }
}

fn last_reload(outcome: &ReloadOutcome) -> Markup {
    html! {
        p {
            "Last reload of the settings: " (time(outcome.at))
            @if outcome.problems.is_empty() { ", taken over." } @else { ", refused, the old settings are in force." }
        }
        @if !outcome.problems.is_empty() {
            ul { @for (variable, reason) in &outcome.problems { li { (variable) ": " (reason) } } }
        }
        @if !outcome.needs_restart.is_empty() {
            p { "Changed settings that take effect after a restart: " (outcome.needs_restart.join(", ")) "." }
        }
    }
}

fn route_section(route: &RouteStatus) -> Markup {
    let replicas = &route.upstream.replicas;
    html! {
        h2 { (route.upstream.origin) }
        p { "Serves " (route.requests.join(", ")) "." }
        @if let Some(reason) = &route.upstream.unready { p { strong { "Not ready: it " (reason) "." } } }
        table {
            thead { tr { th { "Replica" } th { "In flight" } th { "Failures" } th { "Health check" } } }
            tbody { @for one in replicas.iter().take(MAX_ROWS) { (replica(one)) } }
        }
        (left_out(replicas.len()))
    }
}

fn replica(replica: &ReplicaStatus) -> Markup {
    html! {
        tr {
            td { (replica.address) }
            td { (replica.requests_in_flight) }
            td { (replica.failures) }
            td {
                (replica.health)
                @if let Some(until) = replica.ejected_until {
                    ", " strong { "ejected" } " until " (time(until)) ": requests fail"
                }
            }
        }
    }
}

fn passed(registry: &PassthroughStatus) -> Markup {
    html! {
        h2 { "Passed TLS connections" }
        p {
            "Of " (registry.server_name) " to " (registry.address) ": " (registry.connections) " are open. "
            @match registry.is_reachable {
                None => "There was none before.",
                Some(true) => "The last one reached the server.",
                Some(false) => { strong { "The server cannot be reached" } ": clients get a TLS alert." }
            }
        }
    }
}

fn certificates(report: &StatusReport, states: &CertificateStates) -> Markup {
    let all = &states.certificates;
    html! {
        h2 { "Certificates" }
        @if let Some(problem) = &states.problem {
            p { strong { "The list is not followed, the old certificates are in force: " (problem) } }
        }
        table {
            thead { tr { th { "File" } th { "Expires" } th { "State" } th { "Names" } } }
            tbody { @for one in all.iter().take(MAX_ROWS) { (certificate(report, one)) } }
        }
        (left_out(all.len()))
    }
}

fn certificate(report: &StatusReport, state: &CertificateState) -> Markup {
    let is_expired = state.expires.is_some_and(|expires| expires <= report.now);
    html! {
        tr {
            td { (state.file.display()) }
            td { @if let Some(expires) = state.expires { (time(expires)) } }
            td {
                @if state.is_in_force { "in force" } @else { strong { "not in force" } }
                @if is_expired { ", " strong { "expired" } }
                @if let Some(problem) = &state.problem {
                    @if state.is_in_force { ", an earlier version" }
                    ": " (problem)
                }
            }
            td { (state.names.join(", ")) }
        }
    }
}

fn left_out(rows: usize) -> Markup {
    html! { @if rows > MAX_ROWS { p { (rows - MAX_ROWS) " more are in status.json." } } }
}

fn time(time: Timestamp) -> Markup {
    let text = time.format("%Y-%m-%d %H:%M:%S UTC").to_string();
    html! { time datetime=(time.to_rfc3339()) { (text) } }
}
