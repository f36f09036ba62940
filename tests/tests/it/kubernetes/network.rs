//! NetworkPolicies admit the connections of the services, and no others. No network plug-in is here to enforce them:
//! they are evaluated as the API's reference defines them, as far as ours use it.

use anyhow::{Result, ensure};
use serde_json::Value;

use super::rendered::{is_kind, objects};
use super::{NAME_LABEL, OVERLAYS};

/// Connections between the services: client, server, port.
const NEEDED: [(&str, &str, u16); 12] = [
    ("proxy", "webui", 8080),
    ("proxy", "webui", 8989),
    ("proxy", "api-server", 8090),
    ("proxy", "image-service", 8888),
    ("registry", "api-server", 8090),
    ("proxy", "registry", 5000),
    ("webui", "api-server", 8090),
    ("webui", "registry", 5000),
    ("image-service", "api-server", 8090),
    ("image-service", "registry", 5000),
    ("api-server", "registry", 5000),
    ("catalog", "registry", 5000),
];
/// With PostgreSQL in the cluster.
const DATABASE: (&str, &str, u16) = ("api-server", "db", 5432);
const SERVICES: [&str; 7] = [
    "api-server",
    "catalog",
    "db",
    "image-service",
    "proxy",
    "registry",
    "webui",
];
/// Ports that a compromised service would try.
const TRIED: [u16; 7] = [22, 5000, 5432, 8080, 8090, 8888, 8989];
/// Servers that anybody may connect to, also from outside.
const PUBLIC: [(&str, u16); 5] = [
    ("proxy", 8080),
    ("proxy", 8989),
    ("proxy", 8090),
    ("proxy", 8888),
    ("registry", 5000),
];

/// Whether a selector of pods selects the service. Unknown forms select nothing.
fn selects(selector: &Value, service: &str) -> bool {
    let labels = selector["matchLabels"].as_object();
    let expressions = selector["matchExpressions"].as_array();
    let by_label = labels
        .into_iter()
        .flatten()
        .all(|(key, value)| key == NAME_LABEL && value == service);
    let by_expression = expressions.into_iter().flatten().all(|expression| {
        let values = expression["values"].as_array();
        let is_listed = values.into_iter().flatten().any(|value| value == service);
        expression["key"] == NAME_LABEL && expression["operator"] == "In" && is_listed
    });
    by_label && by_expression
}

/// Whether the policies admit a connection on one side: `own` has the rules, `peer` is the other end.
fn admits(objects: &[Value], direction: &str, own: &str, peer: Option<&str>, port: u16) -> bool {
    let (rules, peers) = match direction {
        "Egress" => ("egress", "to"),
        _ => ("ingress", "from"),
    };
    let mut is_restricted = false;
    let policies = objects
        .iter()
        .filter(|object| is_kind(object, "NetworkPolicy"))
        .map(|object| &object["spec"])
        .filter(|spec| selects(&spec["podSelector"], own));
    for spec in policies {
        let types = spec["policyTypes"].as_array();
        if !types.into_iter().flatten().any(|kind| kind == direction) {
            continue;
        }
        is_restricted = true;
        for rule in spec[rules].as_array().into_iter().flatten() {
            let has_port = rule["ports"]
                .as_array()
                .is_none_or(|ports| ports.iter().any(|it| it["port"] == port));
            let has_peer = rule[peers].as_array().is_none_or(|all| {
                all.iter()
                    .any(|it| peer.is_some_and(|peer| selects(&it["podSelector"], peer)))
            });
            if has_port && has_peer {
                return true;
            }
        }
    }
    !is_restricted
}

fn connects(objects: &[Value], client: &str, server: &str, port: u16) -> bool {
    admits(objects, "Egress", client, Some(server), port)
        && admits(objects, "Ingress", server, Some(client), port)
}

#[test]
fn policies_admit_the_connections_of_the_services_and_no_others() -> Result<()> {
    for overlay in OVERLAYS {
        let Some(objects) = objects(overlay)? else {
            return Ok(());
        };
        let has_database = objects.iter().any(|object| is_kind(object, "StatefulSet"));
        let needed = |edge| NEEDED.contains(&edge) || (has_database && edge == DATABASE);
        for client in SERVICES {
            for server in SERVICES {
                if server == "db" && !has_database {
                    continue;
                }
                for port in TRIED {
                    let edge = (client, server, port);
                    let is_allowed = connects(&objects, client, server, port);
                    // Services that reach addresses of the site reach public ports, too.
                    let is_harmless = PUBLIC.contains(&(server, port));
                    ensure!(
                        is_allowed == needed(edge) || (is_allowed && is_harmless),
                        "{overlay}: {edge:?} is {}",
                        if is_allowed { "admitted" } else { "refused" }
                    );
                }
            }
        }
    }
    Ok(())
}

#[test]
fn only_public_ports_admit_clients_from_outside() -> Result<()> {
    let Some(objects) = objects("single")? else {
        return Ok(());
    };
    let outside = |server, port| admits(&objects, "Ingress", server, None, port);
    for (server, port) in PUBLIC.into_iter().chain([("catalog", 50051)]) {
        ensure!(outside(server, port), "{server} refuses port {port}");
    }
    for server in SERVICES {
        for port in TRIED {
            let is_expected = PUBLIC.contains(&(server, port)) == outside(server, port);
            ensure!(is_expected, "{server}, port {port}");
        }
        // Names of hosts are resolved by the cluster's server, at an address of its own.
        ensure!(
            admits(&objects, "Egress", server, None, 53),
            "{server} resolves no names"
        );
    }
    Ok(())
}
