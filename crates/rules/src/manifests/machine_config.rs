//! The form of manifests: machine configurations, files in them, resources, YAML.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use model::Error;
use model::host::HostRole;
use serde_json::{Value, json};

/// Version of the ignition inside of machine configurations.
pub(super) const IGNITION_VERSION: &str = "3.2.0";

/// A manifest by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemManifest {
    /// File name in the folder `openshift`.
    pub file_name: String,
    /// YAML.
    pub content: String,
}

/// A machine configuration of a role.
pub(super) fn machine_config(
    name: &str,
    role: HostRole,
    config: &Value,
    kernel_arguments: &[&str],
) -> Value {
    let mut spec = json!({ "config": config });
    if !kernel_arguments.is_empty() {
        spec["kernelArguments"] = json!(kernel_arguments);
    }
    json!({
        "apiVersion": "machineconfiguration.openshift.io/v1",
        "kind": "MachineConfig",
        "metadata": {
            "labels": { "machineconfiguration.openshift.io/role": role.as_str() },
            "name": name,
        },
        "spec": spec,
    })
}

/// A file of root's in an ignition.
pub(super) fn file(path: &str, mode: u32, content: &str) -> Value {
    let source = format!(
        "data:text/plain;charset=utf-8;base64,{}",
        STANDARD.encode(content)
    );
    json!({
        "path": path,
        "mode": mode,
        "overwrite": true,
        "contents": { "source": source },
    })
}

/// A resource of a version and kind.
pub(super) fn resource((version, kind): (&str, &str), metadata: &Value, spec: &Value) -> Value {
    json!({ "apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec })
}

pub(super) fn yaml(file_name: String, value: &Value) -> Result<SystemManifest, Error> {
    let content = serde_yaml::to_string(value)
        .map_err(|error| Error::internal(format!("writing manifest {file_name}"), error))?;
    Ok(SystemManifest { file_name, content })
}
