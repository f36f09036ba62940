//! Members of the API that refuse a declared value, as places in the files.

use std::collections::BTreeMap;

use located_yaml::Position;
use located_yaml::v1_2::{ConfigNode, NodeValue};
use model::Error;

use super::Declaration;
use super::files::{AGENT, INSTALL};

/// Longest path of a value that is kept: the API has no longer ones, and keys may have any length. Units: bytes.
const PATH_BYTES: usize = 256;

/// Positions of the values of both files, by file and path. They are no part of the wanted state: all are equal.
#[derive(Debug, Clone, Default)]
pub struct MemberPlaces(BTreeMap<(&'static str, String), Position>);

impl PartialEq for MemberPlaces {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl MemberPlaces {
    /// Adds all values of a file.
    pub(super) fn add(&mut self, file: &'static str, node: &ConfigNode) {
        self.add_below(file, node, "");
    }

    fn add_below(&mut self, file: &'static str, node: &ConfigNode, path: &str) {
        if path.len() > PATH_BYTES {
            return;
        }
        self.0.insert((file, path.to_owned()), node.at);
        match &node.value {
            NodeValue::Scalar { .. } => {}
            NodeValue::List(items) => {
                for (at, item) in items.iter().enumerate() {
                    self.add_below(file, item, &format!("{path}[{at}]"));
                }
            }
            NodeValue::Object(members) => {
                for member in members.iter().filter(|one| one.name != "networkConfig") {
                    let name = &member.name;
                    let separator = if path.is_empty() { "" } else { "." };
                    self.add_below(file, &member.node, &format!("{path}{separator}{name}"));
                }
            }
        }
    }

    /// The position of a value, or of the closest one above it.
    fn position(&self, file: &'static str, path: &str) -> Option<Position> {
        let mut path = path;
        loop {
            if let Some(at) = self.0.get(&(file, path.to_owned())) {
                return Some(*at);
            }
            path = path.rfind(['.', '[']).map(|end| &path[..end])?;
        }
    }
}

/// Members of the API by their first name, with file and path; `{}` is the platform.
const MEMBERS: &[(&str, &str, &str)] = &[
    ("name", INSTALL, "metadata.name"),
    ("base_dns_domain", INSTALL, "baseDomain"),
    ("pull_secret", INSTALL, "pullSecret"),
    ("ssh_public_key", INSTALL, "sshKey"),
    ("ssh_authorized_key", INSTALL, "sshKey"),
    ("additional_trust_bundle", INSTALL, "additionalTrustBundle"),
    ("network_type", INSTALL, "networking.networkType"),
    ("machine_networks", INSTALL, "networking.machineNetwork"),
    ("cluster_networks", INSTALL, "networking.clusterNetwork"),
    ("service_networks", INSTALL, "networking.serviceNetwork"),
    ("api_vips", INSTALL, "platform.{}.apiVIPs"),
    ("ingress_vips", INSTALL, "platform.{}.ingressVIPs"),
    ("load_balancer", INSTALL, "platform.{}.loadBalancer"),
    ("platform", INSTALL, "platform"),
    ("user_managed_networking", INSTALL, "platform"),
    ("control_plane_count", INSTALL, "controlPlane.replicas"),
    ("hyperthreading", INSTALL, "controlPlane.hyperthreading"),
    ("http_proxy", INSTALL, "proxy.httpProxy"),
    ("https_proxy", INSTALL, "proxy.httpsProxy"),
    ("no_proxy", INSTALL, "proxy.noProxy"),
    ("install_config_overrides", INSTALL, ""),
    ("additional_ntp_source", AGENT, "additionalNTPSources"),
    ("additional_ntp_sources", AGENT, "additionalNTPSources"),
    ("image_type", AGENT, "minimalISO"),
    ("embedded_agent", AGENT, "embeddedAgent"),
];

/// Members below them that the files spell in another way.
const SPELLINGS: &[(&str, &str)] = &[
    ("host_prefix", "hostPrefix"),
    ("platform_name", "platformName"),
    ("cloud_controller_manager", "cloudControllerManager"),
    ("].ip", "]"),
];

/// File and path of a member of the API; none for one that the files do not have.
pub(super) fn place_of(declaration: &Declaration, field: &str) -> Option<(&'static str, String)> {
    // Refusals of two lists name both.
    let field = field.split(" and ").next().unwrap_or(field);
    let end = field.find(['.', '[']).unwrap_or(field.len());
    let (first, rest) = field.split_at(end);
    let (_, file, path) = MEMBERS.iter().find(|(name, ..)| *name == first)?;
    let platform = declaration.platform.as_ref();
    let platform = platform.map_or("baremetal", |platform| platform.r#type.as_str());
    let mut path = format!("{}{rest}", path.replace("{}", platform));
    for (name, spelling) in SPELLINGS {
        path = path.replace(name, spelling);
    }
    let path = path.trim_start_matches('.');
    let path = path.strip_suffix(".type").unwrap_or(path);
    Some((file, path.to_owned()))
}

impl Declaration {
    /// An error of the API, with the place in the files of the value that it refuses.
    #[must_use]
    pub fn located(&self, error: Error) -> Error {
        let Error::Invalid { field, reason } = &error else {
            return error;
        };
        let prefixed = field.split_once(": ");
        let known = prefixed.filter(|(file, _)| [INSTALL, AGENT].contains(file));
        let place = known.map(|(file, path)| {
            let file = if file == AGENT { AGENT } else { INSTALL };
            (file, path.to_owned())
        });
        let Some((file, path)) = place.or_else(|| place_of(self, field)) else {
            return error;
        };
        match self.places.position(file, &path) {
            Some(at) => Error::invalid(format!("{file}:{at}: {path}"), reason.clone()),
            None => Error::invalid(format!("{file}: {path}"), reason.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use located_yaml::v1_2::documents_from_yaml;

    use super::*;

    #[test]
    fn values_below_long_keys_have_the_place_above_them() {
        for (length, expected) in [(PATH_BYTES, "2:257"), (PATH_BYTES + 1, "2:3")] {
            let key = "k".repeat(length - "pki.".len());
            let document = &documents_from_yaml(&format!("pki:\n  {key}: 1\n")).unwrap()[0];
            let mut places = MemberPlaces::default();
            places.add(INSTALL, document);
            let found = places.position(INSTALL, &format!("pki.{key}"));
            assert_eq!(found.unwrap().to_string(), expected);
        }
    }
}
