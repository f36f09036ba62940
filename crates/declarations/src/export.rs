//! Both files, printed from a declaration.

use model::Error;
use model::cluster::{CloudControllerManager, LoadBalancerType, PlatformType};
use rules::install_config;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::declaration::Declaration;
use crate::documents::{AGENT, INSTALL};
use crate::hosts::DeclaredHost;
use crate::install_file::ARCHITECTURES;
use crate::overrides;

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct AgentConfigFile<'a> {
    api_version: &'static str,
    kind: &'static str,
    metadata: Value,
    #[serde(
        rename = "additionalNTPSources",
        skip_serializing_if = "Option::is_none"
    )]
    ntp_sources: Option<&'a [String]>,
    #[serde(rename = "minimalISO", skip_serializing_if = "Option::is_none")]
    minimal_iso: Option<bool>,
    /// An addition to the installer's file.
    #[serde(skip_serializing_if = "Option::is_none")]
    embedded_agent: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hosts: Option<&'a [DeclaredHost]>,
}

/// Prints both files as two documents, without credentials.
///
/// Errors: Internal – values that YAML cannot hold.
pub fn print(declaration: &Declaration) -> Result<String, Error> {
    let internal = |error| Error::internal("printing the declaration", error);
    let mut install = install_config(declaration);
    let shown = overrides::without_secrets(&declaration.overrides);
    install_config::merge(&mut install, Value::Object(shown));
    let name = declaration.infra_env_name.as_ref();
    let agent = AgentConfigFile {
        api_version: "v1beta1",
        kind: "AgentConfig",
        metadata: json!({ "name": name.unwrap_or(&declaration.name) }),
        ntp_sources: declaration.ntp_sources.as_deref(),
        minimal_iso: declaration.minimal_iso,
        embedded_agent: declaration.embedded_agent,
        hosts: declaration.hosts.as_deref(),
    };
    Ok(format!(
        "# {INSTALL}: pull secret and other credentials are not exported\n{}---\n# {AGENT}\n{}",
        serde_yaml::to_string(&install).map_err(internal)?,
        serde_yaml::to_string(&agent).map_err(internal)?
    ))
}

/// Objects of an install-config, without absent members.
#[derive(Default)]
struct InstallMembers(Map<String, Value>);

impl InstallMembers {
    fn with(mut self, name: &str, value: Option<impl Serialize>) -> Self {
        // Texts, numbers and lists cannot fail to be printed.
        let value = value.and_then(|value| serde_json::to_value(value).ok());
        if let Some(value) = value.filter(|value| !value.is_null()) {
            self.0.insert(name.to_owned(), value);
        }
        self
    }

    fn value(self) -> Value {
        Value::Object(self.0)
    }
}

fn install_config(declaration: &Declaration) -> Value {
    let compute = pool(declaration, "worker", declaration.workers);
    let arbiter = declaration.arbiters;
    InstallMembers::default()
        .with("apiVersion", Some("v1"))
        .with("metadata", Some(json!({ "name": declaration.name })))
        .with("baseDomain", declaration.base_domain.as_ref())
        .with(
            "controlPlane",
            Some(pool(declaration, "master", declaration.control_plane)),
        )
        .with("compute", Some([compute]))
        .with(
            "arbiter",
            arbiter.map(|_| pool(declaration, "arbiter", arbiter)),
        )
        .with("networking", Some(networking(declaration)))
        .with("platform", platform(declaration))
        .with("proxy", proxy(declaration))
        .with("pullSecret", declaration.pull_secret.as_ref())
        .with("sshKey", declaration.ssh_key.as_ref())
        .with("additionalTrustBundle", declaration.trust_bundle.as_ref())
        .value()
}

fn pool(declaration: &Declaration, name: &str, replicas: Option<i64>) -> Value {
    let hyperthreading = match (name, declaration.hyperthreading) {
        ("master", Some((enabled, _))) | ("worker", Some((_, enabled))) => {
            Some(if enabled { "Enabled" } else { "Disabled" })
        }
        _ => None,
    };
    let architecture = declaration.architecture.and_then(|wanted| {
        let mut known = ARCHITECTURES.iter();
        Some(known.find(|(_, one)| *one == wanted)?.0)
    });
    InstallMembers::default()
        .with("name", Some(name))
        .with("replicas", replicas)
        .with("architecture", architecture)
        .with("hyperthreading", hyperthreading)
        .value()
}

fn networking(declaration: &Declaration) -> Value {
    let cidr = |cidr: &String| json!({ "cidr": cidr });
    let machine = declaration.machine_networks.as_ref();
    let cluster = declaration.cluster_networks.as_ref().map(|list| {
        let network =
            |(cidr, prefix): &(String, i64)| json!({ "cidr": cidr, "hostPrefix": prefix });
        list.iter().map(network).collect::<Value>()
    });
    InstallMembers::default()
        .with("networkType", declaration.network_type)
        .with(
            "machineNetwork",
            machine.map(|list| list.iter().map(cidr).collect::<Value>()),
        )
        .with("clusterNetwork", cluster)
        .with("serviceNetwork", declaration.service_networks.as_ref())
        .value()
}

fn platform(declaration: &Declaration) -> Option<Value> {
    let platform = declaration.platform.as_ref()?;
    let members = match platform.r#type {
        PlatformType::None => InstallMembers::default(),
        PlatformType::External => {
            let external = platform.external.clone().unwrap_or_default();
            let manager = external.cloud_controller_manager;
            InstallMembers::default()
                .with("platformName", external.platform_name)
                .with(
                    "cloudControllerManager",
                    manager.map(CloudControllerManager::as_str),
                )
        }
        PlatformType::Baremetal | PlatformType::Vsphere | PlatformType::Nutanix => {
            let balancer = declaration.load_balancer;
            // The default is left out: older installers do not know the member.
            let is_own = balancer == Some(LoadBalancerType::UserManaged);
            InstallMembers::default()
                .with("apiVIPs", declaration.api_vips.as_ref())
                .with("ingressVIPs", declaration.ingress_vips.as_ref())
                .with(
                    "loadBalancer",
                    is_own.then(|| json!({ "type": "UserManaged" })),
                )
        }
    };
    let mut platforms = Map::new();
    platforms.insert(platform.r#type.as_str().to_owned(), members.value());
    Some(Value::Object(platforms))
}

fn proxy(declaration: &Declaration) -> Option<Value> {
    let [http, https, exceptions] = declaration.proxy.as_ref()?;
    let text = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
    let members = InstallMembers::default()
        .with("httpProxy", text(http))
        .with("httpsProxy", text(https))
        .with("noProxy", text(exceptions));
    Some(members.value())
}
