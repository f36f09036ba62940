//! The ramdisk of a network boot: the network and the proxy, with which the initrd fetches the root file system.
//!
//! Source: openshift/assisted-service, `internal/isoeditor/rhcos.go`.

use ignition::MemberTree;
use ignition::cpio::{LINK, REGULAR};
use model::Error;
use model::infra_env::InfraEnv;
use static_network::NetworkForm;

use super::network::{self, HostNetworks};
use super::proxy;

const UNIT_PATH: &str = "/etc/systemd/system/pre-network-manager-config.service";
const WANTED: &str = "/etc/systemd/system/initrd.target.wants/pre-network-manager-config.service";
const PROXY_PATH: &str = "/etc/systemd/system/coreos-livepxe-rootfs.service.d/10-proxy.conf";

/// The ramdisk of `infra_env`: a compressed cpio archive; empty without static networks and proxy.
///
/// Errors: `Invalid` – the static networks do not parse, or keyfiles cannot express them.
pub(crate) fn archive(infra_env: &InfraEnv, service_from: &str) -> Result<Vec<u8>, Error> {
    let mut members = MemberTree::default();
    let networks = HostNetworks::of(infra_env, service_from)?;
    for (path, content) in &networks.files {
        let path = format!("{}/{path}", network::FOLDER);
        members.add(&path, REGULAR | 0o600, content.as_str());
    }
    if !networks.files.is_empty() {
        members.add(network::SCRIPT_PATH, REGULAR | 0o755, network::SCRIPT);
        let delay_s = infra_env.network_discovery_delay_seconds.unwrap_or(0);
        let unit = network::unit(initrd_unit(networks.form), delay_s);
        members.add(UNIT_PATH, REGULAR | 0o644, unit);
        members.add(WANTED, LINK | 0o777, UNIT_PATH);
    }
    let proxy = infra_env.proxy.as_ref();
    if let Some(proxy) = proxy.filter(|proxy| proxy::is_set(proxy)) {
        let content = format!("[Service]\n{}", proxy::unit_lines(proxy));
        members.add(PROXY_PATH, REGULAR | 0o664, content);
    }
    let packed = members.pack();
    packed.map_err(|error| Error::internal("writing the ramdisk", error))
}

/// The unit of the initrd. Its own service installs keyfiles; nmstate needs the NetworkManager of the initrd.
fn initrd_unit(form: NetworkForm) -> &'static str {
    match form {
        NetworkForm::Keyfiles => include_str!("host_files/initrd-network-keyfiles.service"),
        NetworkForm::Policy => include_str!("host_files/initrd-network-policy.service"),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use ignition::archive;
    use model::network::Proxy;

    use super::*;

    fn names(archive: &[u8]) -> Vec<(String, u32)> {
        let files = archive::read(archive).unwrap();
        files
            .into_iter()
            .map(|file| (file.name, file.mode))
            .collect()
    }

    #[test]
    fn without_network_and_proxy_there_is_no_ramdisk() {
        let infra_env = InfraEnv {
            proxy: Some(Proxy::default()),
            ..InfraEnv::default()
        };
        assert!(super::archive(&infra_env, "4.18").unwrap().is_empty());
    }

    #[test]
    fn folders_precede_their_content() {
        let infra_env = InfraEnv {
            openshift_version: "4.18.7".to_owned(),
            static_network_config: r#"[{"network_yaml":"interfaces: []","mac_interface_map":[
                {"mac_address":"52:54:00:00:00:01","logical_nic_name":"eth0"}]}]"#
                .to_owned(),
            ..InfraEnv::default()
        };
        let names = names(&super::archive(&infra_env, "4.18").unwrap());
        let position = |path: &str| names.iter().position(|(name, _)| name == path).unwrap();
        for (name, mode) in &names {
            let parent = Path::new(name).parent().unwrap().to_str().unwrap();
            assert!(parent == "/" || position(parent) < position(name), "{name}");
            assert!(*mode > 0o40_000, "{name}");
        }
        let mode = |path: &str| names[position(path)].1;
        assert_eq!(mode("/etc/assisted/network/host0/ymlFile0.yml"), 0o100_600);
        assert_eq!(mode(network::SCRIPT_PATH), 0o100_755);
        assert_eq!(mode(WANTED), 0o120_777);
        assert_eq!(mode("/etc/assisted"), 0o40_755);

        let older = InfraEnv {
            openshift_version: "4.16.3".to_owned(),
            static_network_config: infra_env
                .static_network_config
                .replace("[]", "[{name: eth0}]"),
            ..InfraEnv::default()
        };
        let files = archive::read(&super::archive(&older, "4.18").unwrap()).unwrap();
        let text = |path: &str| {
            let file = files.iter().find(|file| file.name == path).expect(path);
            String::from_utf8(file.data.clone()).unwrap()
        };
        assert!(text("/etc/assisted/network/host0/eth0.nmconnection").contains("id=eth0\n"));
        assert!(text(UNIT_PATH).contains("Before=coreos-copy-firstboot-network.service"));
        assert!(text(network::SCRIPT_PATH).contains("nmconnection"));
    }

    #[test]
    fn the_unit_waits_for_slow_nics() {
        let unit = network::unit(initrd_unit(NetworkForm::Policy), 30);
        assert!(
            unit.contains("\nTimeoutSec=90\nEnvironment=DISCOVERY_DELAY_SECONDS=30\n"),
            "{unit}"
        );
        assert!(!unit.contains('@'), "{unit}");
    }

    #[test]
    fn the_proxy_is_for_the_download_of_the_root_file_system() {
        let infra_env = InfraEnv {
            proxy: Some(Proxy {
                http_proxy: Some("http://proxy:3128/%41".to_owned()),
                ..Proxy::default()
            }),
            ..InfraEnv::default()
        };
        let files = archive::read(&super::archive(&infra_env, "4.18").unwrap()).unwrap();
        let file = files.last().unwrap();
        assert_eq!(file.name, PROXY_PATH);
        assert_eq!(
            String::from_utf8(file.data.clone()).unwrap(),
            "[Service]\nEnvironment=HTTP_PROXY=http://proxy:3128/%%41\n\
             Environment=http_proxy=http://proxy:3128/%%41\n"
        );
    }
}
