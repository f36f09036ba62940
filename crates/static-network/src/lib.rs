//! Static networks of hosts: nmstate configurations, in the form that a discovery image applies.
//!
//! Newer images have nmstate's service, which takes the configuration as a policy. Older ones, and nodes, only read keyfiles
//! of NetworkManager, which are rendered here; parts that these cannot express are refused with their positions. The crate `nmstate`
//! renders them, too, but needs an archived YAML parser, D-Bus types, and members of JSON objects in insertion order, which it
//! would switch on for the whole workspace. The tests' golden files are its output.

mod check;
mod check_table;
mod connection;
mod distribute;
mod dns;
mod ethernet;
mod ip;
mod ipsec;
mod keyfile;
mod link;
mod options;
mod ovs;
mod parts;
mod policy;
mod profile;
mod routes;
mod scalar;
mod state;
mod unrenderable;

use std::collections::BTreeMap;

use located_yaml::v1_2::{ConfigNode, from_yaml};
use model::Error;
use model::infra_env::HostStaticNetworkConfig;
use serde_json::Value;

use state::NetworkState;
use unrenderable::Unrenderable;

pub use check::{NetworkProblem, problems};
pub use scalar::{boolean, integer};

/// Form in which an image applies the network of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetworkForm {
    /// Keyfiles of NetworkManager.
    Keyfiles,
    /// A policy of nmstate, applied by its service.
    Policy,
}

/// A network file of a host, below its folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkFile {
    /// File name.
    pub name: String,
    /// Text.
    pub content: String,
}

/// The network files of the host at `index`: its configuration, then the names of its NICs by MAC address.
///
/// Errors: `Invalid` naming the host – the configuration does not parse, or keyfiles cannot express it.
pub fn files(
    index: usize,
    host: &HostStaticNetworkConfig,
    form: NetworkForm,
) -> Result<Vec<NetworkFile>, Error> {
    let field = format!("static_network_config[{index}].network_yaml");
    let document = parse(&field, &host.network_yaml)?;
    let mut files = match form {
        NetworkForm::Policy => vec![NetworkFile {
            name: format!("ymlFile{index}.yml"),
            content: policy::text(document.to_json(), &host.mac_interface_map)?,
        }],
        NetworkForm::Keyfiles => keyfiles(&document).map_err(|problem| {
            let form = "images before nmstate's service (4.18) get keyfiles of NetworkManager";
            Error::invalid(&field, format!("{problem}; {form}"))
        })?,
    };
    files.push(NetworkFile {
        name: "mac_interface.ini".to_owned(),
        content: names_by_mac(host),
    });
    Ok(files)
}

/// The configuration with its positions.
///
/// Errors: `Invalid` – not YAML.
pub fn parse(field: &str, yaml: &str) -> Result<ConfigNode, Error> {
    from_yaml(yaml).map_err(|error| Error::invalid(field, error.to_string()))
}

/// Of interfaces that are absent, nmstate reads the name alone.
fn strip_absent(state: &mut Value) {
    let interfaces = state.get_mut("interfaces").and_then(Value::as_array_mut);
    for interface in interfaces.into_iter().flatten() {
        let is_absent = interface
            .get("state")
            .is_some_and(|state| state == "absent");
        if let (true, Some(members)) = (is_absent, interface.as_object_mut()) {
            members.retain(|name, _| name == "name" || name == "state");
        }
    }
}

/// Removes members without a value, which are as good as absent.
fn strip_nulls(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, value| !value.is_null());
            members.values_mut().for_each(strip_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(strip_nulls),
        _ => {}
    }
}

/// The keyfiles of a configuration, sorted by name.
///
/// Errors: the part that keyfiles cannot express, with its position.
pub fn keyfiles(document: &ConfigNode) -> Result<Vec<NetworkFile>, NetworkProblem> {
    rendered(document.to_json()).map_err(|error| NetworkProblem {
        at: error.position(document),
        path: error.path(),
        reason: error.reason(document),
        is_disagreement: false,
    })
}

fn rendered(mut state: Value) -> Result<Vec<NetworkFile>, Unrenderable> {
    strip_absent(&mut state);
    strip_nulls(&mut state);
    let state: NetworkState =
        serde_path_to_error::deserialize(state).map_err(Unrenderable::from_serde)?;
    let profiles = distribute::profiles(state)?;
    let mut files = Vec::new();
    for profile in profiles.iter() {
        for keyfile in connection::keyfiles(profile, &profiles)? {
            let content = keyfile.text();
            let content =
                content.map_err(|reason| profile::located(&profile.interface, reason.into()))?;
            files.push(NetworkFile {
                name: format!("{}.nmconnection", keyfile.id),
                content,
            });
        }
    }
    files.sort_by(|left, right| left.name.cmp(&right.name));
    match files.windows(2).find(|two| two[0].name == two[1].name) {
        Some(two) => Err(format!(
            "two interfaces have the file {}: give them different profile names",
            two[0].name
        )
        .into()),
        None if files.is_empty() => Err("no interface is up: there is nothing to apply".into()),
        None => Ok(files),
    }
}

/// `MAC=name` lines, sorted.
fn names_by_mac(host: &HostStaticNetworkConfig) -> String {
    let by_address: BTreeMap<&str, &str> = host
        .mac_interface_map
        .iter()
        .map(|item| (item.mac_address.as_str(), item.logical_nic_name.as_str()))
        .collect();
    let lines: Vec<String> = by_address
        .iter()
        .map(|(address, name)| format!("{address}={name}\n"))
        .collect();
    lines.concat()
}

#[cfg(test)]
mod check_tests;
#[cfg(test)]
mod corpus_tests;
#[cfg(test)]
mod golden_tests;
#[cfg(test)]
mod tests;
