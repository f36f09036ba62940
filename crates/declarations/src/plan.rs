//! Plans: the differences between a declaration and the stored records, as changes of the records.

use model::Error;
use model::cluster::{
    ClusterCreateParams, ClusterPlatform, ClusterUpdateParams, Hyperthreading, LoadBalancer,
    LoadBalancerType, PlatformType,
};
use model::declaration::DeclaredChange;
use model::expected_hosts::ExpectedHost;
use model::host::HostRole;
use model::ids::ClusterId;
use model::infra_env::{ImageType, InfraEnvCreateParams, InfraEnvUpdateParams};
use model::network::{ApiVip, ClusterNetwork, IngressVip, MachineNetwork, Proxy, ServiceNetwork};
use rules::input;
use rules::install_config;
use serde_json::{Map, Value};

use crate::current::{CurrentState, declare};
use crate::declaration::Declaration;
use crate::documents::{AGENT, INSTALL};
use crate::hosts::DeclaredHost;
use crate::overrides;
use crate::schema::override_paths;

/// Changes of the records that make them agree with a declaration.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ApplyPlan {
    /// Changes for the caller.
    pub changes: Vec<DeclaredChange>,
    /// Update of the cluster.
    pub cluster: Option<ClusterUpdateParams>,
    /// New overrides of the install-config.
    pub overrides: Option<String>,
    /// Update of the infra-env.
    pub infra_env: Option<InfraEnvUpdateParams>,
    /// New list of expected hosts.
    pub expected: Option<Vec<ExpectedHost>>,
    /// Members whose effect differs from the agent-based installer's.
    pub notes: Vec<String>,
}

/// Parameters of a new cluster.
///
/// Errors: Invalid – a member is missing that a new cluster needs.
pub fn cluster_params(wanted: &Declaration, version: &str) -> Result<ClusterCreateParams, Error> {
    let missing = |path: &str| {
        let reason = "is missing, and a new cluster needs it";
        Error::invalid(format!("{INSTALL}: {path}"), reason)
    };
    check_pair(wanted, wanted.control_plane)?;
    check_single(wanted)?;
    let update = of_cluster(wanted);
    Ok(ClusterCreateParams {
        name: wanted.name.clone(),
        openshift_version: version.to_owned(),
        base_dns_domain: wanted
            .base_domain
            .clone()
            .ok_or_else(|| missing("baseDomain"))?,
        pull_secret: wanted
            .pull_secret
            .clone()
            .ok_or_else(|| missing("pullSecret"))?,
        ssh_public_key: wanted.ssh_key.clone().unwrap_or_default(),
        cpu_architecture: wanted.architecture,
        api_vips: update.api_vips,
        ingress_vips: update.ingress_vips,
        http_proxy: update.http_proxy,
        https_proxy: update.https_proxy,
        no_proxy: update.no_proxy,
        user_managed_networking: update.user_managed_networking,
        additional_ntp_source: update.additional_ntp_source,
        hyperthreading: update.hyperthreading,
        network_type: update.network_type,
        cluster_networks: update.cluster_networks,
        service_networks: update.service_networks,
        machine_networks: update.machine_networks,
        platform: update.platform,
        load_balancer: update.load_balancer,
        control_plane_count: update.control_plane_count,
        ..ClusterCreateParams::default()
    })
}

/// Parameters of a new infra-env.
///
/// Errors: Invalid – the pull secret is missing.
pub fn infra_env_params(
    wanted: &Declaration,
    cluster: Option<ClusterId>,
    version: &str,
) -> Result<InfraEnvCreateParams, Error> {
    let update = of_infra_env(wanted)?;
    let pull_secret = wanted.pull_secret.clone().ok_or_else(|| {
        let reason = "is missing, and a new infra-env needs it";
        Error::invalid(format!("{INSTALL}: pullSecret"), reason)
    })?;
    Ok(InfraEnvCreateParams {
        name: wanted
            .infra_env_name
            .clone()
            .unwrap_or_else(|| wanted.name.clone()),
        pull_secret,
        cluster_id: cluster,
        openshift_version: version.to_owned(),
        cpu_architecture: wanted.architecture,
        proxy: update.proxy,
        additional_ntp_sources: update.additional_ntp_sources,
        ssh_authorized_key: update.ssh_authorized_key,
        static_network_config: update.static_network_config,
        image_type: update.image_type,
        embedded_agent: update.embedded_agent,
        additional_trust_bundle: update.additional_trust_bundle.unwrap_or_default(),
        ..InfraEnvCreateParams::default()
    })
}

/// Plans the changes of known records. Idempotent: the plan of a declaration of the same state is empty.
///
/// Errors: Invalid – a member that cannot change, or malformed certificates.
pub fn plan(
    wanted: &Declaration,
    state: CurrentState<'_>,
    pull_secret: &str,
) -> Result<ApplyPlan, Error> {
    let known = declare(state);
    check_fixed(wanted, &known)?;
    let wanted = Declaration {
        trust_bundle: match &wanted.trust_bundle {
            Some(bundle) => Some(input::ca_certificates(
                &format!("{INSTALL}: additionalTrustBundle"),
                bundle,
            )?),
            None => None,
        },
        pull_secret: wanted
            .pull_secret
            .clone()
            .filter(|secret| !is_same_json(secret, pull_secret)),
        ..wanted.clone()
    };
    let mut differences = Differences::default();
    let changed = differences.find(&wanted, &known);
    let mut plan = ApplyPlan {
        notes: notes(&wanted),
        ..ApplyPlan::default()
    };
    check_pair(&wanted, changed.control_plane)?;
    let cluster = of_cluster(&changed);
    plan.cluster = (cluster != ClusterUpdateParams::default()).then_some(cluster);
    let infra_env = of_infra_env(&changed)?;
    let is_new = state.infra_env.is_none();
    plan.infra_env = (infra_env != InfraEnvUpdateParams::default() && !is_new).then_some(infra_env);
    plan.expected = changed.hosts.as_ref().map(|hosts| {
        let known = state.expected.unwrap_or_default();
        hosts.iter().map(|host| host.expected(known)).collect()
    });
    if !changed.overrides.is_empty() {
        plan.overrides = Some(merged_overrides(
            &state.cluster.install_config_overrides,
            &changed.overrides,
        ));
    }
    plan.changes = differences.changes;
    Ok(plan)
}

/// Two masters need a third vote, or fencing. Exported files have no credentials: an unchanged number passes.
fn check_pair(wanted: &Declaration, masters: Option<i64>) -> Result<(), Error> {
    let path = ["controlPlane", "fencing", "credentials"];
    let credentials = overrides::get(&wanted.overrides, &path).and_then(Value::as_array);
    let is_fenced = credentials.is_some_and(|list| !list.is_empty());
    let has_arbiter = wanted.arbiters.is_some_and(|count| count > 0);
    if masters != Some(2) || is_fenced || has_arbiter {
        return Ok(());
    }
    let reason = "is 2, which needs an arbiter (arbiter: {name: arbiter, replicas: 1}) or controlPlane.fencing: add one of both, or write 1, 3, 4 or 5";
    Err(Error::invalid(
        format!("{INSTALL}: controlPlane.replicas"),
        reason,
    ))
}

/// Workers join a single node once it is installed.
fn check_single(wanted: &Declaration) -> Result<(), Error> {
    let workers = wanted.workers.filter(|count| *count > 0);
    let Some(count) = workers.filter(|_| wanted.control_plane == Some(1)) else {
        return Ok(());
    };
    let remedy =
        "is not possible beside a single master: write 0, and add workers to the installed cluster";
    let field = format!("{INSTALL}: compute[0].replicas");
    Err(input::refuse(&field, &count.to_string(), remedy))
}

/// Members that a cluster keeps from its creation on.
fn check_fixed(wanted: &Declaration, known: &Declaration) -> Result<(), Error> {
    let refuse = |file: &str, path: &str, given: &str, known: &str| {
        let remedy = format!("is {known} since the creation: create another cluster");
        let field = format!("{file}: {path}");
        Err(input::refuse(&field, given, &remedy))
    };
    if let (Some(given), Some(known)) = (wanted.architecture, known.architecture)
        && given != known
    {
        return refuse(
            INSTALL,
            "controlPlane.architecture",
            given.as_str(),
            known.as_str(),
        );
    }
    if let (Some(given), Some(known)) = (&wanted.infra_env_name, &known.infra_env_name)
        && given != known
    {
        return refuse(AGENT, "metadata.name", given, known);
    }
    Ok(())
}

fn is_same_json(left: &str, right: &str) -> bool {
    let read = |text: &str| serde_json::from_str::<Value>(text).ok();
    left == right || read(left).is_some_and(|left| read(right) == Some(left))
}

fn merged_overrides(known: &str, changed: &Map<String, Value>) -> String {
    let mut all = serde_json::from_str(known).unwrap_or_else(|_| Value::Object(Map::new()));
    install_config::merge(&mut all, Value::Object(changed.clone()));
    all.to_string()
}

fn notes(wanted: &Declaration) -> Vec<String> {
    let mut notes = wanted.notes.clone();
    let masters = wanted.hosts.iter().flatten();
    let masters = masters.filter(|host| matches!(host.role, None | Some(HostRole::Master)));
    let listed = i64::try_from(masters.count()).unwrap_or(i64::MAX);
    if let Some(count) = wanted
        .control_plane
        .filter(|count| (1..*count).contains(&listed))
    {
        notes.push(format!(
            "{INSTALL}: controlPlane.replicas {count} is more than the {listed} hosts that may be masters: others join as they boot"
        ));
    }
    for (role, count, path) in [
        (HostRole::Arbiter, wanted.arbiters, "arbiter.replicas"),
        (HostRole::Worker, wanted.workers, "compute[0].replicas"),
    ] {
        let declared = wanted.hosts.as_ref().map(|hosts| {
            let of_role = hosts.iter().filter(|host| host.role == Some(role)).count();
            i64::try_from(of_role).unwrap_or(i64::MAX)
        });
        let unenforced = count.filter(|count| declared != Some(*count));
        if let Some(count) = unenforced {
            notes.push(format!(
                "{INSTALL}: {path} {count} is not enforced: as many hosts are installed as have the role {role}"
            ));
        }
    }
    notes
}

/// Members that differ.
#[derive(Default)]
struct Differences {
    changes: Vec<DeclaredChange>,
}

impl Differences {
    /// The wanted declaration without the members that agree with the known one.
    fn find(&mut self, wanted: &Declaration, known: &Declaration) -> Declaration {
        let mut changed = Declaration::default();
        self.find_cluster(wanted, known, &mut changed);
        self.find_networking(wanted, known, &mut changed);
        self.find_secrets(wanted, known, &mut changed);
        let (w, k) = (wanted, known);
        let path = "additionalNTPSources";
        changed.ntp_sources =
            self.member(AGENT, path, w.ntp_sources.as_ref(), k.ntp_sources.as_ref());
        changed.minimal_iso = self.member(
            AGENT,
            "minimalISO",
            w.minimal_iso.as_ref(),
            k.minimal_iso.as_ref(),
        );
        // Records without the agent have no member: declared false, they agree.
        let known = Some(k.embedded_agent.unwrap_or_default());
        changed.embedded_agent = self.member(
            AGENT,
            "embeddedAgent",
            w.embedded_agent.as_ref(),
            known.as_ref(),
        );
        changed.hosts = self.member(AGENT, "hosts", w.hosts.as_ref(), k.hosts.as_ref());
        changed
    }

    fn find_cluster(&mut self, w: &Declaration, k: &Declaration, changed: &mut Declaration) {
        if w.name != k.name {
            self.note(INSTALL, "metadata.name", &k.name, &w.name);
            changed.name.clone_from(&w.name);
        }
        let path = "baseDomain";
        changed.base_domain = self.member(
            INSTALL,
            path,
            w.base_domain.as_ref(),
            k.base_domain.as_ref(),
        );
        let path = "controlPlane.replicas";
        changed.control_plane = self.member(
            INSTALL,
            path,
            w.control_plane.as_ref(),
            k.control_plane.as_ref(),
        );
        let path = "controlPlane.hyperthreading, compute[0].hyperthreading";
        changed.hyperthreading = self.member(
            INSTALL,
            path,
            w.hyperthreading.as_ref(),
            k.hyperthreading.as_ref(),
        );
    }

    fn find_networking(&mut self, w: &Declaration, k: &Declaration, changed: &mut Declaration) {
        let path = "networking.networkType";
        changed.network_type = self.member(
            INSTALL,
            path,
            w.network_type.as_ref(),
            k.network_type.as_ref(),
        );
        let path = "networking.machineNetwork";
        changed.machine_networks = self.member(
            INSTALL,
            path,
            w.machine_networks.as_ref(),
            k.machine_networks.as_ref(),
        );
        let path = "networking.clusterNetwork";
        changed.cluster_networks = self.member(
            INSTALL,
            path,
            w.cluster_networks.as_ref(),
            k.cluster_networks.as_ref(),
        );
        let path = "networking.serviceNetwork";
        changed.service_networks = self.member(
            INSTALL,
            path,
            w.service_networks.as_ref(),
            k.service_networks.as_ref(),
        );
        if w.platform.is_some() && w.platform != k.platform {
            let name = |platform: Option<&ClusterPlatform>| match platform {
                // The name says it all.
                Some(ClusterPlatform {
                    r#type,
                    external: None,
                }) => r#type.to_string(),
                other => shown(&other),
            };
            let (before, after) = (name(k.platform.as_ref()), name(w.platform.as_ref()));
            self.note(INSTALL, "platform", &before, &after);
            changed.platform.clone_from(&w.platform);
        }
        let kind = w.platform.as_ref().or(k.platform.as_ref());
        let kind = kind.map_or(PlatformType::Baremetal, |platform| platform.r#type);
        // Records without a choice have the default.
        let known = k.load_balancer.unwrap_or(LoadBalancerType::ClusterManaged);
        changed.load_balancer = self.member(
            INSTALL,
            &format!("platform.{kind}.loadBalancer.type"),
            w.load_balancer.as_ref(),
            Some(&known),
        );
        let path = &format!("platform.{kind}.apiVIPs");
        changed.api_vips = self.member(INSTALL, path, w.api_vips.as_ref(), k.api_vips.as_ref());
        let path = &format!("platform.{kind}.ingressVIPs");
        changed.ingress_vips = self.member(
            INSTALL,
            path,
            w.ingress_vips.as_ref(),
            k.ingress_vips.as_ref(),
        );
    }

    /// Members that may hold passwords are not shown.
    fn find_secrets(&mut self, w: &Declaration, k: &Declaration, changed: &mut Declaration) {
        const HIDDEN: &str = "(not shown)";
        if w.proxy.is_some() && w.proxy != k.proxy {
            self.note(INSTALL, "proxy", HIDDEN, HIDDEN);
            changed.proxy.clone_from(&w.proxy);
        }
        changed.ssh_key = self.member(INSTALL, "sshKey", w.ssh_key.as_ref(), k.ssh_key.as_ref());
        let path = "additionalTrustBundle";
        changed.trust_bundle = self.member(
            INSTALL,
            path,
            w.trust_bundle.as_ref(),
            k.trust_bundle.as_ref(),
        );
        if w.pull_secret.is_some() {
            self.note(INSTALL, "pullSecret", HIDDEN, HIDDEN);
            changed.pull_secret.clone_from(&w.pull_secret);
        }
        let mut paths = override_paths();
        // A foreign network type.
        paths.push(vec!["networking", "networkType"]);
        for path in paths {
            let known = overrides::get(&k.overrides, &path);
            let Some(value) = overrides::get(&w.overrides, &path) else {
                continue;
            };
            if known == Some(value) {
                continue;
            }
            let name = path.join(".");
            if overrides::is_secret(&path) {
                self.note(INSTALL, &name, HIDDEN, HIDDEN);
            } else {
                self.note(INSTALL, &name, &shown(&known), &shown(value));
            }
            overrides::set(&mut changed.overrides, &path, value.clone());
        }
    }

    /// The wanted value, if the file has one that differs.
    fn member<T: PartialEq + Clone + serde::Serialize>(
        &mut self,
        file: &str,
        path: &str,
        wanted: Option<&T>,
        known: Option<&T>,
    ) -> Option<T> {
        let wanted = wanted?;
        if known == Some(wanted) {
            return None;
        }
        self.note(file, path, &shown(&known), &shown(wanted));
        Some(wanted.clone())
    }

    fn note(&mut self, file: &str, path: &str, before: &str, after: &str) {
        self.changes.push(DeclaredChange {
            field: format!("{file}: {path}"),
            before: before.to_owned(),
            after: after.to_owned(),
        });
    }
}

/// A value as text: JSON, texts without quotes, nothing for an absent one.
fn shown<T: serde::Serialize>(value: &T) -> String {
    match serde_json::to_value(value) {
        Ok(Value::Null) | Err(_) => String::new(),
        Ok(Value::String(text)) => text,
        Ok(value) => value.to_string(),
    }
}

/// Members of the cluster.
fn of_cluster(changed: &Declaration) -> ClusterUpdateParams {
    let proxy = |at: usize| changed.proxy.as_ref().map(|proxy| proxy[at].clone());
    ClusterUpdateParams {
        name: Some(changed.name.clone()).filter(|name| !name.is_empty()),
        base_dns_domain: changed.base_domain.clone(),
        pull_secret: changed.pull_secret.clone(),
        ssh_public_key: changed.ssh_key.clone(),
        network_type: changed.network_type,
        machine_networks: changed.machine_networks.as_ref().map(|list| {
            let network = |cidr: &String| MachineNetwork {
                cidr: cidr.clone(),
                ..MachineNetwork::default()
            };
            list.iter().map(network).collect()
        }),
        cluster_networks: changed.cluster_networks.as_ref().map(|list| {
            let network = |(cidr, host_prefix): &(String, i64)| ClusterNetwork {
                cidr: cidr.clone(),
                host_prefix: *host_prefix,
                ..ClusterNetwork::default()
            };
            list.iter().map(network).collect()
        }),
        service_networks: changed.service_networks.as_ref().map(|list| {
            let network = |cidr: &String| ServiceNetwork {
                cidr: cidr.clone(),
                ..ServiceNetwork::default()
            };
            list.iter().map(network).collect()
        }),
        control_plane_count: changed.control_plane,
        hyperthreading: changed.hyperthreading.map(hyperthreading),
        user_managed_networking: changed
            .platform
            .as_ref()
            .map(|platform| matches!(platform.r#type, PlatformType::None | PlatformType::External)),
        platform: changed.platform.clone(),
        load_balancer: changed
            .load_balancer
            .map(|kind| LoadBalancer { r#type: Some(kind) }),
        api_vips: changed.api_vips.as_ref().map(|list| {
            let vip = |ip: &String| ApiVip {
                ip: ip.clone(),
                ..ApiVip::default()
            };
            list.iter().map(vip).collect()
        }),
        ingress_vips: changed.ingress_vips.as_ref().map(|list| {
            let vip = |ip: &String| IngressVip {
                ip: ip.clone(),
                ..IngressVip::default()
            };
            list.iter().map(vip).collect()
        }),
        http_proxy: proxy(0),
        https_proxy: proxy(1),
        no_proxy: proxy(2),
        additional_ntp_source: changed.ntp_sources.as_ref().map(|list| list.join(",")),
        ..ClusterUpdateParams::default()
    }
}

fn hyperthreading((masters, workers): (bool, bool)) -> Hyperthreading {
    match (masters, workers) {
        (true, true) => Hyperthreading::All,
        (true, false) => Hyperthreading::Masters,
        (false, true) => Hyperthreading::Workers,
        (false, false) => Hyperthreading::None,
    }
}

/// Members of the infra-env.
fn of_infra_env(changed: &Declaration) -> Result<InfraEnvUpdateParams, Error> {
    let networks = changed.hosts.as_ref().map(|hosts| {
        let networks = hosts.iter().filter_map(DeclaredHost::static_network);
        networks.collect::<Result<Vec<_>, Error>>()
    });
    Ok(InfraEnvUpdateParams {
        proxy: changed.proxy.clone().map(|[http, https, no]| Proxy {
            http_proxy: Some(http),
            https_proxy: Some(https),
            no_proxy: Some(no),
        }),
        additional_ntp_sources: changed.ntp_sources.as_ref().map(|list| list.join(",")),
        ssh_authorized_key: changed.ssh_key.clone(),
        pull_secret: changed.pull_secret.clone().unwrap_or_default(),
        static_network_config: networks.transpose()?,
        image_type: changed.minimal_iso.map(|is_minimal| {
            if is_minimal {
                ImageType::MinimalIso
            } else {
                ImageType::FullIso
            }
        }),
        embedded_agent: changed.embedded_agent,
        additional_trust_bundle: changed.trust_bundle.clone(),
        ..InfraEnvUpdateParams::default()
    })
}
