use ignition::Mode;
use model::ids::InfraEnvId;
use model::network::Proxy;
use preparation::SiteMirrors;
use secrecy::SecretString;
use uuid::Uuid;

use super::*;

const AGENT: &str = "registry.lab:5000/atoll/agent@sha256:0";
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
fn an_image_without_agent_needs_one_of_its_own() {
    let made =
        |infra_env: &InfraEnv| ignition(infra_env, ImageType::FullIso, "", &secrets(), &context());
    let refused = made(&infra_env()).unwrap_err().to_string();
    assert!(refused.contains("AGENT_DOCKER_IMAGE"), "{refused}");
    let embedded = InfraEnv {
        embedded_agent: true,
        ..infra_env()
    };
    made(&embedded).unwrap();
}

#[test]
fn agent_unit_has_the_agents_arguments() {
    let config = ignition(
        &infra_env(),
        ImageType::FullIso,
        AGENT,
        &secrets(),
        &context(),
    )
    .unwrap();
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
    let config = ignition(&infra_env(), ImageType::FullIso, AGENT, &secrets, &ctx).unwrap();
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
    let config = ignition(
        &infra_env,
        ImageType::FullIso,
        AGENT,
        &secrets(),
        &context(),
    )
    .unwrap();
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
    let config = ignition(
        &infra_env,
        ImageType::FullIso,
        AGENT,
        &secrets(),
        &context(),
    )
    .unwrap();
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
        mirrors: SiteMirrors::parse(conf, Some("CA".to_owned())).unwrap(),
        insecure_policy: true,
        ..context()
    };
    let config = ignition(&infra_env, ImageType::FullIso, AGENT, &secrets(), &ctx).unwrap();
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
    let config = ignition(&infra_env, ImageType::FullIso, AGENT, &secrets(), &ctx).unwrap();
    assert!(text(&config, "/usr/local/bin/add-ntp-sources.sh").contains("> /etc/chrony.conf"));
}

#[test]
fn ignition_override_takes_precedence() {
    let mut infra_env = infra_env();
    infra_env.ignition_config_override =
        r#"{"ignition":{"version":"3.2.0"},"storage":{"files":[{"path":"/etc/motd","overwrite":true,"contents":{"source":"data:,mine"}}]}}"#
            .to_owned();
    let config = ignition(
        &infra_env,
        ImageType::FullIso,
        AGENT,
        &secrets(),
        &context(),
    )
    .unwrap();
    assert_eq!(text(&config, "/etc/motd"), "mine");
    assert_eq!(config.ignition.version, SpecVersion::V3_2);
    assert!(config.find_unit("agent.service").is_some());
}

#[test]
fn bad_and_oversized_overrides_are_refused() {
    let mut infra_env = infra_env();
    infra_env.ignition_config_override = "{}".to_owned();
    let error = ignition(
        &infra_env,
        ImageType::FullIso,
        AGENT,
        &secrets(),
        &context(),
    )
    .unwrap_err();
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
    let error = ignition(
        &infra_env,
        ImageType::FullIso,
        AGENT,
        &secrets(),
        &context(),
    )
    .map(|_| ())
    .unwrap_err();
    assert!(error.to_string().contains("262144"), "{error}");
}

#[test]
fn an_embedded_agent_needs_no_container_image() {
    let infra_env = InfraEnv {
        embedded_agent: true,
        ..infra_env()
    };
    let config = ignition(
        &infra_env,
        ImageType::FullIso,
        AGENT,
        &secrets(),
        &context(),
    )
    .unwrap();
    let unit = unit(&config, "agent.service");
    assert!(
        unit.contains("\nExecStartPre=/usr/bin/install -D -m 0755 /run/atoll/agent /usr/local/bin/atoll-agent\n"),
        "{unit}"
    );
    assert!(
        unit.contains("\nExecStart=/usr/local/bin/atoll-agent --url "),
        "{unit}"
    );
    assert!(
        !unit.contains("podman") && !unit.contains("--agent-version"),
        "{unit}"
    );
    let json = String::from_utf8(config.to_json()).unwrap();
    assert!(!json.contains("agent-pull-image"), "{json}");
}

#[test]
fn okd_has_no_storage_daemons() {
    let mut infra_env = infra_env();
    infra_env.openshift_version = "4.18.0-okd-scos.1".to_owned();
    let config = ignition(
        &infra_env,
        ImageType::FullIso,
        AGENT,
        &secrets(),
        &context(),
    )
    .unwrap();
    assert!(config.find_unit("iscsistart.service").is_none());
}

fn networked(version: &str) -> InfraEnv {
    InfraEnv {
        openshift_version: version.to_owned(),
        static_network_config: r#"[{"network_yaml":"interfaces: [{name: eth0}, {name: eth1}]",
            "mac_interface_map":[
                {"mac_address":"52:54:00:00:00:02","logical_nic_name":"eth1"},
                {"mac_address":"52:54:00:00:00:01","logical_nic_name":"eth0"}]}]"#
            .to_owned(),
        network_discovery_delay_seconds: Some(20),
        ..infra_env()
    }
}

#[test]
fn static_networks_are_policies_where_nmstate_applies_them() {
    let of = |image_type| {
        ignition(
            &networked("4.18.7"),
            image_type,
            AGENT,
            &secrets(),
            &context(),
        )
        .unwrap()
    };
    let config = of(ImageType::FullIso);
    assert_eq!(
        text(&config, "/etc/assisted/network/host0/mac_interface.ini"),
        "52:54:00:00:00:01=eth0\n52:54:00:00:00:02=eth1\n"
    );
    let policy = text(&config, "/etc/assisted/network/host0/ymlFile0.yml");
    assert!(policy.contains("52:54:00:00:00:01"), "{policy}");
    let unit = unit(&config, "pre-network-manager-config.service");
    assert!(unit.contains("\nBefore=nmstate.service\n"), "{unit}");
    assert!(unit.contains("\nTimeoutSec=80\nEnvironment=DISCOVERY_DELAY_SECONDS=20\n"));

    // Those of a minimal image are in its ramdisk.
    let config = of(ImageType::MinimalIso);
    assert!(
        config
            .find_unit("pre-network-manager-config.service")
            .is_none()
    );
}

#[test]
fn static_networks_are_keyfiles_before_that() {
    for version in ["4.14.9", "4.17", ""] {
        let infra_env = networked(version);
        let config = ignition(
            &infra_env,
            ImageType::FullIso,
            AGENT,
            &secrets(),
            &context(),
        )
        .unwrap();
        let keyfile = text(&config, "/etc/assisted/network/host0/eth1.nmconnection");
        assert!(keyfile.contains("\ninterface-name=eth1\n"), "{keyfile}");
        let unit = unit(&config, "pre-network-manager-config.service");
        assert!(unit.contains("\nBefore=NetworkManager.service\n"), "{unit}");
    }
}

/// Runs the script of the hosts in a folder with two NICs.
fn run_script(infra_env: &InfraEnv, is_initrd: bool) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    let write = |path: &str, content: &str| {
        let path = root.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    };
    for (path, content) in network::HostNetworks::of(infra_env, "4.18").unwrap().files {
        write(&format!("etc/assisted/network/{path}"), &content);
    }
    for (nic, mac) in [
        ("enp94s0f0np0", "52:54:00:00:00:01"),
        ("eth0", "52:54:00:00:00:02"),
    ] {
        write(&format!("sys/class/net/{nic}/address"), mac);
        write(&format!("sys/class/net/{nic}/device/vendor"), "");
    }
    write(
        "etc/NetworkManager/system-connections/default.nmconnection",
        "",
    );
    write("etc/coreos-firstboot-network/default.nmconnection", "");
    if is_initrd {
        write("etc/initrd-release", "");
    }
    write("bin/sleep", "#!/bin/sh\n");
    write(
        "bin/nmstatectl",
        "#!/bin/sh\necho applied > \"$PATH_PREFIX/applied\"\n",
    );
    write("script", network::SCRIPT);
    for program in ["bin/sleep", "bin/nmstatectl"] {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(root.path().join(program), mode).unwrap();
    }
    let status = std::process::Command::new("bash")
        .arg(root.path().join("script"))
        .env("PATH_PREFIX", root.path())
        .env(
            "PATH",
            format!(
                "{}:/usr/local/bin:/usr/bin:/bin",
                root.path().join("bin").display()
            ),
        )
        .status()
        .unwrap();
    assert!(status.success());
    root
}

fn names(folder: &std::path::Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn keyfiles_get_the_names_of_the_machine() {
    let mut infra_env = networked("4.16.3");
    let yaml = "interfaces: [{name: eth0}, {name: eth0.2507, type: vlan, vlan: {base-iface: eth0, id: 2507}}, \
                {name: bond0, type: bond, link-aggregation: {mode: 1, options: {primary: eth1}, port: [eth1]}}]";
    let text = &infra_env.static_network_config;
    infra_env.static_network_config =
        text.replace("interfaces: [{name: eth0}, {name: eth1}]", yaml);
    for (is_initrd, folder) in [
        (false, "etc/NetworkManager/system-connections"),
        (true, "etc/coreos-firstboot-network"),
    ] {
        let root = run_script(&infra_env, is_initrd);
        let folder = root.path().join(folder);
        let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
        assert_eq!(
            names(&folder),
            [
                "bond0.nmconnection",
                "enp94s0f0n.2507.nmconnection",
                "enp94s0f0np0.nmconnection",
                "eth0.nmconnection"
            ]
        );
        // The logical eth1 is this machine's eth0, the logical eth0 another NIC.
        let port = read("eth0.nmconnection");
        assert!(
            port.contains("\ninterface-name=eth0\nmaster=bond0\n"),
            "{port}"
        );
        assert!(read("bond0.nmconnection").contains("\nprimary=eth0\n"));
        let vlan = read("enp94s0f0n.2507.nmconnection");
        assert!(vlan.contains("\nparent=enp94s0f0np0\n"), "{vlan}");
        assert!(
            vlan.contains("\ninterface-name=enp94s0f0n.2507\n"),
            "{vlan}"
        );
    }
}

#[test]
fn policies_are_applied_by_nmstate() {
    let root = run_script(&networked("4.18"), false);
    assert!(root.path().join("applied").exists());
    assert_eq!(names(&root.path().join("etc/nmstate")), ["ymlFile0.yml"]);
    // nmstate writes the connections.
    let connections = root.path().join("etc/NetworkManager/system-connections");
    assert_eq!(names(&connections), ["default.nmconnection"]);
}

#[test]
fn other_machines_keep_their_connections() {
    let mut infra_env = networked("4.16");
    infra_env.static_network_config = infra_env.static_network_config.replace("52:54", "52:55");
    let root = run_script(&infra_env, false);
    let connections = root.path().join("etc/NetworkManager/system-connections");
    assert_eq!(names(&connections), ["default.nmconnection"]);
}
