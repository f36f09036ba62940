//! Groups, versions and fixed names of the records, in one place.

use serde::Deserialize;

/// API versions and the namespace of the records. A distribution with groups of its own changes them here.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct ApiGroups {
    /// API version of BareMetalHost.
    pub host: String,
    /// API version of Machine.
    pub machine: String,
    /// API version of the provider's part of a Machine.
    pub provider: String,
    /// Namespace of hosts, their secrets and machines.
    pub namespace: String,
}

impl Default for ApiGroups {
    fn default() -> Self {
        Self {
            host: "metal3.io/v1alpha1".to_owned(),
            machine: "machine.openshift.io/v1beta1".to_owned(),
            provider: "baremetal.cluster.k8s.io/v1alpha1".to_owned(),
            namespace: "openshift-machine-api".to_owned(),
        }
    }
}

impl ApiGroups {
    /// Kind of a host.
    pub const HOST: &'static str = "BareMetalHost";
    /// Kind of a machine.
    pub const MACHINE: &'static str = "Machine";
    /// Kind of a secret.
    pub const SECRET: &'static str = "Secret";
    /// Kind of the provider's part of a machine.
    pub const PROVIDER: &'static str = "BareMetalMachineProviderSpec";
    /// API version of a secret.
    pub const SECRET_VERSION: &'static str = "v1";

    /// The API version of a known kind.
    pub fn version_of(&self, kind: &str) -> Option<&str> {
        match kind {
            Self::HOST => Some(&self.host),
            Self::MACHINE => Some(&self.machine),
            Self::SECRET => Some(Self::SECRET_VERSION),
            _ => None,
        }
    }

    /// Annotation of a machine with the `namespace/name` of its host.
    pub fn host_annotation(&self) -> String {
        format!("{}/{}", group(&self.host), Self::HOST)
    }

    /// Annotation of a machine with its state.
    pub fn instance_state(&self) -> String {
        format!("{}/instance-state", group(&self.machine))
    }

    /// Label of a machine with the id of its cluster.
    pub fn cluster_label(&self) -> String {
        format!("{}/cluster-api-cluster", group(&self.machine))
    }

    /// Label of a machine with its role.
    pub fn role_label(&self) -> String {
        format!("{}/cluster-api-machine-role", group(&self.machine))
    }

    /// Label of a machine with its type.
    pub fn type_label(&self) -> String {
        format!("{}/cluster-api-machine-type", group(&self.machine))
    }

    /// Finalizer of a machine.
    pub fn machine_finalizer(&self) -> String {
        format!("machine.{}", group(&self.machine))
    }
}

fn group(api_version: &str) -> &str {
    api_version
        .rsplit_once('/')
        .map_or(api_version, |(group, _)| group)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_groups() {
        let groups = ApiGroups::default();
        assert_eq!(groups.host_annotation(), "metal3.io/BareMetalHost");
        assert_eq!(groups.machine_finalizer(), "machine.machine.openshift.io");
        assert_eq!(
            groups.cluster_label(),
            "machine.openshift.io/cluster-api-cluster"
        );
        let own: ApiGroups = serde_json::from_str(r#"{"machine": "machine.okd.io/v1"}"#).unwrap();
        assert_eq!(own.instance_state(), "machine.okd.io/instance-state");
        assert_eq!(own.host, groups.host);
        assert!(serde_json::from_str::<ApiGroups>(r#"{"machines": ""}"#).is_err());
    }
}
