use ignition::Mode;
use model::ids::InfraEnvId;
use model::network::Proxy;
use secrecy::SecretString;
use uuid::Uuid;

use super::*;
use crate::install::RegistryMirrors;

const PULL_SECRET: &str = r#"{"auths":{"registry.lab:5000":{"auth":"dXNlcjpwYXNz"}}}"#;

fn secrets() -> DiscoverySecrets {
    DiscoverySecrets {
        pull_secret: SecretString::from(PULL_SECRET),
        agent_token: None,
    }
}

fn context() -> DiscoveryOptions {
    DiscoveryOptions {
        service_base_url: "http://installer.lab:8090".to_owned(),
        agent_image: "registry.lab:5000/atoll/agent@sha256:0".to_owned(),
        ..DiscoveryOptions::default()
    }
}

fn infra_env() -> InfraEnv {
    InfraEnv {
        id: InfraEnvId(Uuid::from_u128(1)),
        openshift_version: "4.18.7".to_owned(),
        ..InfraEnv::default()
    }
}

fn text(config: &IgnitionConfig, path: &str) -> String {
    let file = config.find_file(path).expect(path);
    String::from_utf8(file.contents.inline_bytes().unwrap().unwrap()).unwrap()
}

fn unit(config: &IgnitionConfig, name: &str) -> String {
    config
        .find_unit(name)
        .expect(name)
        .contents
        .clone()
        .unwrap()
}

#[test]
fn agent_unit_has_the_agents_arguments() {
    let config = ignition(&infra_env(), &secrets(), &context()).unwrap();
    let agent = unit(&config, "agent.service");
    let line = "ExecStart=/usr/local/bin/agent --url http://installer.lab:8090 --infra-env-id \
                00000000-0000-0000-0000-000000000001 --agent-version registry.lab:5000/atoll/agent@sha256:0 \
                --insecure=false\n";
    assert!(agent.contains(line), "{agent}");
    assert!(!agent.contains("PULL_SECRET_TOKEN"));
    assert_eq!(
        config.find_unit("agent.service").unwrap().enabled,
        Some(true)
    );
    assert_eq!(text(&config, "/root/.docker/config.json"), PULL_SECRET);
    let mode = |path| config.find_file(path).unwrap().mode;
    assert_eq!(mode("/root/.docker/config.json"), Some(Mode(384)));
    assert_eq!(mode("/usr/local/bin/agent-pull-image"), Some(Mode(493)));
    assert!(config.find_unit("multipathd.service").is_some());
    assert!(config.passwd.users.is_empty());
}

#[test]
fn token_and_certificate_reach_the_agent() {
    let secrets = DiscoverySecrets {
        agent_token: Some(SecretString::from("to%ken")),
        ..secrets()
    };
    let ctx = DiscoveryOptions {
        insecure: true,
        service_ca: Some("PEM".to_owned()),
        ..context()
    };
    let config = ignition(&infra_env(), &secrets, &ctx).unwrap();
    let agent = unit(&config, "agent.service");
    assert!(
        agent.contains("Environment=PULL_SECRET_TOKEN=to%%ken\n"),
        "{agent}"
    );
    assert!(
        agent.contains("--insecure=true --cacert /etc/assisted-service/service-ca-cert.crt\n"),
        "{agent}"
    );
    assert_eq!(text(&config, SERVICE_CA_PATH), "PEM");
}

#[test]
fn a_proxy_reaches_ignition_agent_and_shell() {
    let mut infra_env = infra_env();
    infra_env.proxy = Some(Proxy {
        http_proxy: Some("http://user:p%40ss@proxy.lab:3128".to_owned()),
        https_proxy: None,
        no_proxy: Some(".lab, 10.0.0.0/8".to_owned()),
    });
    let config = ignition(&infra_env, &secrets(), &context()).unwrap();
    assert_eq!(config.ignition.proxy.no_proxy, [".lab", "10.0.0.0/8"]);
    assert_eq!(config.ignition.proxy.https_proxy, None);
    let agent = unit(&config, "agent.service");
    assert!(
        agent.contains("Environment=http_proxy=http://user:p%%40ss@proxy.lab:3128\n"),
        "{agent}"
    );
    let profile = text(&config, "/etc/profile.d/proxy.sh");
    assert!(
        profile.contains("export HTTP_PROXY='http://user:p%40ss@proxy.lab:3128'\n"),
        "{profile}"
    );
}

#[test]
fn empty_proxies_are_ignored() {
    let mut infra_env = infra_env();
    infra_env.proxy = Some(Proxy::default());
    let config = ignition(&infra_env, &secrets(), &context()).unwrap();
    assert!(config.find_file("/etc/profile.d/proxy.sh").is_none());
}

#[test]
fn keys_sources_and_mirrors_are_written() {
    let mut infra_env = infra_env();
    infra_env.ssh_authorized_key = "ssh-ed25519 A one\n\nssh-rsa B two\n".to_owned();
    infra_env.additional_ntp_sources = "ntp.lab,10.0.0.1".to_owned();
    infra_env.additional_trust_bundle = "BUNDLE".to_owned();
    let conf = "[[registry]]\nlocation = \"quay.io\"\n[[registry.mirror]]\nlocation = \"registry.lab:5000\"\n";
    let ctx = DiscoveryOptions {
        mirrors: Some(RegistryMirrors::parse(conf, Some("CA".to_owned())).unwrap()),
        insecure_policy: true,
        ..context()
    };
    let config = ignition(&infra_env, &secrets(), &ctx).unwrap();
    let core = &config.passwd.users[0];
    assert_eq!(core.name, "core");
    assert_eq!(
        core.ssh_authorized_keys,
        ["ssh-ed25519 A one", "ssh-rsa B two"]
    );
    assert_eq!(core.groups, ["sudo"]);
    let script = text(&config, "/usr/local/bin/add-ntp-sources.sh");
    assert!(
        script.contains("server ntp.lab iburst\nserver 10.0.0.1 iburst\n"),
        "{script}"
    );
    assert_eq!(text(&config, "/etc/containers/registries.conf"), conf);
    assert_eq!(
        text(&config, "/etc/pki/ca-trust/source/anchors/domain.crt"),
        "CA"
    );
    assert!(text(&config, "/etc/containers/policy.json").contains("insecureAcceptAnything"));

    infra_env.additional_ntp_sources.clear();
    infra_env.ntp_sources = "ntp.lab".to_owned();
    let config = ignition(&infra_env, &secrets(), &ctx).unwrap();
    assert!(text(&config, "/usr/local/bin/add-ntp-sources.sh").contains("> /etc/chrony.conf"));
}

#[test]
fn ignition_override_takes_precedence() {
    let mut infra_env = infra_env();
    infra_env.ignition_config_override =
        r#"{"ignition":{"version":"3.2.0"},"storage":{"files":[{"path":"/etc/motd","overwrite":true,"contents":{"source":"data:,mine"}}]}}"#
            .to_owned();
    let config = ignition(&infra_env, &secrets(), &context()).unwrap();
    assert_eq!(text(&config, "/etc/motd"), "mine");
    assert_eq!(config.ignition.version, SpecVersion::V3_2);
    assert!(config.find_unit("agent.service").is_some());
}

#[test]
fn bad_and_oversized_overrides_are_refused() {
    let mut infra_env = infra_env();
    infra_env.ignition_config_override = "{}".to_owned();
    let error = ignition(&infra_env, &secrets(), &context()).unwrap_err();
    assert!(
        error.to_string().starts_with("ignition_config_override: "),
        "{error}"
    );

    // Random digits do not compress below half their number.
    let noise: String = std::iter::repeat_with(|| Uuid::new_v4().simple().to_string())
        .take(LIMIT_BYTES / 10)
        .collect();
    infra_env.ignition_config_override = format!(
        r#"{{"ignition":{{"version":"3.1.0"}},"storage":{{"files":[{{"path":"/big","contents":{{"source":"data:,{noise}"}}}}]}}}}"#
    );
    let error = ignition(&infra_env, &secrets(), &context())
        .map(|_| ())
        .unwrap_err();
    assert!(error.to_string().contains("262144"), "{error}");
}

#[test]
fn okd_has_no_storage_daemons() {
    let mut infra_env = infra_env();
    infra_env.openshift_version = "4.18.0-okd-scos.1".to_owned();
    let config = ignition(&infra_env, &secrets(), &context()).unwrap();
    assert!(config.find_unit("iscsistart.service").is_none());
}

#[test]
fn static_networks_are_written_by_mac_address() {
    let mut infra_env = infra_env();
    infra_env.static_network_config = r#"[{"network_yaml":"interfaces: []","mac_interface_map":[
        {"mac_address":"52:54:00:00:00:02","logical_nic_name":"eth1"},
        {"mac_address":"52:54:00:00:00:01","logical_nic_name":"eth0"}]}]"#
        .to_owned();
    let config = ignition(&infra_env, &secrets(), &context()).unwrap();
    assert_eq!(
        text(&config, "/etc/assisted/network/host0/mac_interface.ini"),
        "52:54:00:00:00:01=eth0\n52:54:00:00:00:02=eth1\n"
    );
    assert_eq!(
        text(&config, "/etc/assisted/network/host0/ymlFile0.yml"),
        "interfaces: []"
    );
    assert!(
        config
            .find_unit("pre-network-manager-config.service")
            .is_some()
    );

    infra_env.r#type = model::infra_env::ImageType::MinimalIso;
    let config = ignition(&infra_env, &secrets(), &context()).unwrap();
    assert!(
        config
            .find_unit("pre-network-manager-config.service")
            .is_none()
    );

    infra_env.r#type = model::infra_env::ImageType::FullIso;
    infra_env.openshift_version = "4.17".to_owned();
    let error = ignition(&infra_env, &secrets(), &context()).unwrap_err();
    assert!(
        error.to_string().starts_with("static_network_config: "),
        "{error}"
    );
}
