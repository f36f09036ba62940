//! The configuration as a policy, which nmstate's service resolves on the host: NICs are found by their MAC addresses.
//!
//! Source: assisted-service, pkg/staticnetworkconfig/generator.go, injectNMPolicyCaptures, injectIPV4V6FieldsIfNeeded.

use model::Error;
use model::infra_env::MacInterfaceMapItem;
use serde_json::{Map, Value, json};

/// Members whose values are words of nmstate, never names.
const WORDS: &[&str] = &["state", "type"];

/// The policy of a host, as JSON, which is YAML.
///
/// Errors: `Internal` – it cannot be written.
pub(crate) fn text(mut state: Value, map: &[MacInterfaceMapItem]) -> Result<String, Error> {
    for interface in interfaces(&mut state) {
        // Without these the service would take the present address of a NIC for a wanted one.
        for (part, members) in [("ipv4", &["dhcp"][..]), ("ipv6", &["dhcp", "autoconf"])] {
            if let Some(Value::Object(part)) = interface.get_mut(part) {
                for member in members {
                    part.entry(*member).or_insert(Value::Bool(false));
                }
            }
        }
    }
    replace_names(&mut state, map);
    let captures: Map<String, Value> = map
        .iter()
        .enumerate()
        .map(|(index, item)| {
            let mac = item.mac_address.to_ascii_uppercase();
            let query = format!("interfaces.mac-address == \"{mac}\"");
            (format!("iface{index}"), Value::String(query))
        })
        .collect();
    let policy = json!({ "capture": captures, "desiredState": state });
    serde_json::to_string_pretty(&policy)
        .map_err(|error| Error::internal("writing a network policy", error))
}

fn interfaces(state: &mut Value) -> impl Iterator<Item = &mut Map<String, Value>> {
    let list = state.get_mut("interfaces").and_then(Value::as_array_mut);
    list.into_iter().flatten().filter_map(Value::as_object_mut)
}

/// Replaces values that are a logical name by the captured one.
fn replace_names(value: &mut Value, map: &[MacInterfaceMapItem]) {
    match value {
        Value::String(text) => {
            let index = map.iter().position(|item| item.logical_nic_name == *text);
            if let Some(index) = index {
                *text = format!("{{{{ capture.iface{index}.interfaces.0.name }}}}");
            }
        }
        Value::Array(values) => values
            .iter_mut()
            .for_each(|value| replace_names(value, map)),
        Value::Object(members) => {
            let values = members
                .iter_mut()
                .filter(|(name, _)| !WORDS.contains(&name.as_str()));
            values.for_each(|(_, value)| replace_names(value, map));
        }
        _ => {}
    }
}
