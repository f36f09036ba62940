//! Rules of the installer, and documents that are neither file, by rows.

use super::{FileText, decode, parse};

const SITE: &str = r#"apiVersion: v1
metadata:
  name: demo
baseDomain: example.com
controlPlane:
  name: master
  replicas: 3
networking:
  networkType: OVNKubernetes
  machineNetwork:
  - cidr: 192.0.2.0/24
  clusterNetwork:
  - cidr: 10.128.0.0/14
    hostPrefix: 23
  serviceNetwork:
  - 172.30.0.0/16
platform:
  baremetal:
    apiVIPs: [192.0.2.5]
    ingressVIPs: [192.0.2.6]
pullSecret: '{"auths":{"r.example.com":{"auth":"dTpw"}}}'
"#;
const CREDENTIALS: &str = "  replicas: 2
  fencing:
    credentials:
    - hostname: m0
      address: redfish+https://198.51.100.1/redfish/v1/Systems/1
      username: u
      password: hidden
    - {macAddress: 52:54:00:00:00:02, address: 'redfish+https://198.51.100.2/redfish/v1/Systems/1', username: u, password: hidden}
";

fn refusal(text: &str) -> String {
    let (name, text) = ("site.yaml".to_owned(), text.to_owned());
    let read = parse(&[FileText { name, text }]);
    read.err()
        .map(|error| error.to_string())
        .unwrap_or_default()
}

/// Asserts the refusals of the site with a text in the place of another one; an empty one is none.
fn assert_rows(site: &str, rows: &[(&str, &str, &str)]) {
    let mut wrong = Vec::new();
    for (from, to, expected) in rows {
        assert!(site.contains(from), "{from}");
        let error = refusal(&site.replacen(from, to, 1));
        if !error.contains(expected) || (expected.is_empty() && !error.is_empty()) {
            wrong.push(format!("{to}: {error}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn closed_sets_and_lists_are_those_of_the_installer() {
    let with = |to: &'static str, expected: &'static str| ("pullSecret", to, expected);
    assert_rows(
        SITE,
        &[
            with(
                "additionalTrustBundlePolicy: always\npullSecret",
                "21:30: additionalTrustBundlePolicy: \"always\" is unknown: write Proxyonly or Always",
            ),
            with(
                "additionalTrustBundle: text\npullSecret",
                "21:24: additionalTrustBundle: is not a list of PEM",
            ),
            with(
                "cpuPartitioningMode: Some\npullSecret",
                "is unknown: write None or AllNodes",
            ),
            with(
                "featureSet: Default\npullSecret",
                "featureSet: \"Default\" is unknown",
            ),
            with(
                "featureGates: [A=true]\npullSecret",
                "featureGates: is possible with featureSet CustomNoUpgrade only",
            ),
            with(
                "featureSet: CustomNoUpgrade\nfeatureGates: [A=true, B]\npullSecret",
                "featureGates[1]: \"B\" is no gate",
            ),
            with(
                "featureSet: CustomNoUpgrade\nfeatureGates: [A=true]\npullSecret",
                "",
            ),
            with(
                "capabilities: {additionalEnabledCapabilities: [baremetal]}\npullSecret",
                "capabilities: has no baselineCapabilitySet",
            ),
            with(
                "capabilities: {baselineCapabilitySet: v3.1}\npullSecret",
                "write vCurrent, None, or a version",
            ),
            with(
                "capabilities: {baselineCapabilitySet: vCurrent, additionalEnabledCapabilities: [Marketplace]}\npullSecret",
                "its name is marketplace",
            ),
            with(
                "capabilities: {baselineCapabilitySet: None, additionalEnabledCapabilities: [Ingress]}\npullSecret",
                "lacks baremetal",
            ),
            with(
                "capabilities: {baselineCapabilitySet: None, additionalEnabledCapabilities: [Ingress, baremetal]}\npullSecret",
                "",
            ),
            with(
                "capabilities: [a]\npullSecret",
                "capabilities: is a list: write an object",
            ),
            with(
                "imageDigestSources: [{source: q.io/a, mirrors: [m.io/a]}]\nimageContentSources: [{source: q.io/a, mirrors: [m.io/a]}]\npullSecret",
                "imageContentSources: is the older name",
            ),
            with(
                "imageDigestSources: [{source: 'q.io/a:1', mirrors: [m.io/a]}]\npullSecret",
                "imageDigestSources[0].source: \"q.io/a:1\" is an image",
            ),
            with(
                "imageDigestSources: [{source: q.io/a, mirrors: ['https://me:secret@m.io/a']}]\npullSecret",
                // Without the value, which may have a login.
                "imageDigestSources[0].mirrors[0]: is a URL",
            ),
            with(
                "imageDigestSources: [{source: q.io/a, mirrors: ['m.io:5000']}]\npullSecret",
                "",
            ),
            with(
                "imageDigestSources: [{source: q.io/a, mirrors: m.io/a}]\npullSecret",
                "mirrors: is text: write a list of one item",
            ),
            with(
                "imageDigestSources: [{source: q.io/a, mirror: [m.io/a]}]\npullSecret",
                "mirror: is unknown: its name is mirrors",
            ),
            with(
                "imageDigestSources: [{mirrors: [m.io/a]}]\npullSecret",
                "imageDigestSources[0]: has no source",
            ),
            with(
                "imageDigestSources: [{source: q.io/a, sourcePolicy: Never}]\npullSecret",
                "write NeverContactSource or AllowContactingSource",
            ),
            with(
                "imageDigestSources: [{source: q.io/a, sourcePolicy: NeverContactSource}]\npullSecret",
                "has an effect on mirrors only",
            ),
        ],
    );
}

#[test]
fn proxies_disks_and_names_are_checked() {
    let with = |to: &'static str, expected: &'static str| ("pullSecret", to, expected);
    assert_rows(
        SITE,
        &[
            with(
                "proxy: {httpProxy: 'http://10.128.0.5:3128'}\npullSecret",
                "proxy.httpProxy: is in 10.128.0.0/14",
            ),
            with(
                "proxy: {httpProxy: 'http://p:3128', noProxy: '*,a.b'}\npullSecret",
                "proxy.noProxy: \"*,a.b\" has * beside",
            ),
            with(
                "bootstrapInPlace: {installationDisk: vda}\npullSecret",
                "\"vda\" is no device",
            ),
            with(
                "baseDomian: x\npullSecret",
                "baseDomian: is unknown: its name is baseDomain",
            ),
            with(
                "machineNetwork: []\npullSecret",
                "machineNetwork: is unknown here: it is networking.machineNetwork",
            ),
            with(
                "rendezvousIP: 192.0.2.1\npullSecret",
                "rendezvousIP: is unknown here: it is rendezvousIP of agent-config.yaml",
            ),
        ],
    );
}

#[test]
fn control_planes_are_those_of_the_installer() {
    let arbiter = "pullSecret";
    assert_rows(
        SITE,
        &[
            (
                "replicas: 3",
                "replicas: 0",
                "controlPlane.replicas: \"0\" is no number of masters",
            ),
            ("replicas: 3", "replicas: 7", "is no number of masters"),
            (
                "replicas: 3",
                "replicas: 1",
                "18:3: platform: is baremetal, and controlPlane.replicas is 1",
            ),
            (
                arbiter,
                "arbiter: {name: arbiter}\npullSecret",
                "arbiter: has no replicas: write 1",
            ),
            (
                arbiter,
                "arbiter: {name: arbiter, replicas: 0}\npullSecret",
                "arbiter.replicas: is 0",
            ),
            (
                arbiter,
                "arbiter: {replicas: 1, fencing: {}}\npullSecret",
                "arbiter.fencing: belongs to controlPlane",
            ),
        ],
    );
    let fenced = SITE.replacen("  replicas: 3\n", CREDENTIALS, 1);
    assert_rows(
        &fenced,
        &[
            ("m0", "m1", ""),
            (
                "replicas: 2",
                "replicas: 3",
                "controlPlane.fencing.credentials: is for 2 masters",
            ),
            (
                "pullSecret",
                "arbiter: {replicas: 1}\npullSecret",
                "is for 2 masters without an arbiter",
            ),
            (
                "198.51.100.2/",
                "198.51.100.1/",
                "is that of controlPlane.fencing.credentials[0].address",
            ),
            (
                "      username: u\n",
                "",
                "controlPlane.fencing.credentials[0]: has no username",
            ),
            (
                "hostname: m0",
                "foo: m0",
                "has neither hostName nor macAddress",
            ),
            (
                "00:00:02",
                "00:zz",
                "macAddress: \"52:54:00:00:zz\" is not a MAC address",
            ),
            (
                "redfish+https://198.51.100.1/redfish",
                "ipmi://198.51.100.1",
                "is no address of a Redfish BMC",
            ),
            (
                "hostname: m0",
                "hostname: m0\n      certificateVerification: No",
                "write Enabled or Disabled",
            ),
        ],
    );
    assert!(!refusal(&fenced.replacen("u\n", "[u]\n", 1)).contains("hidden"));
}

#[test]
fn networks_are_refused_at_their_places() {
    let networks = "- cidr: 192.0.2.0/24";
    assert_rows(
        SITE,
        &[
            (
                "apiVIPs: [192.0.2.5]",
                "apiVIPs: [198.51.100.5]",
                "19:14: platform.baremetal.apiVIPs: \"198.51.100.5\" is outside of the machine networks [192.0.2.0/24]: choose a free address",
            ),
            (
                "    apiVIPs: [192.0.2.5]",
                "    loadBalancer: {type: UserManaged}\n    apiVIPs: [198.51.100.5]",
                "add the network of the load balancer to them",
            ),
            (
                "192.0.2.6",
                "192.0.2.5",
                "platform.baremetal.ingressVIPs: \"192.0.2.5\" is an API address as well",
            ),
            (
                "    ingressVIPs: [192.0.2.6]\n",
                "",
                "hold 1 and 0 addresses",
            ),
            (
                "    apiVIPs: [192.0.2.5]\n    ingressVIPs: [192.0.2.6]",
                "    loadBalancer: {type: UserManaged}\n    apiVIPs: [192.0.2.5]\n    ingressVIPs: [192.0.2.5]",
                "",
            ),
            (
                networks,
                "- cidr: 192.0.2.0/24\n  - cidr: 198.51.100.0/24",
                "networking.machineNetwork: has several networks of one address family",
            ),
            (
                "172.30.0.0/16",
                "172.30.0.0/16\n  - 172.31.0.0/16",
                "networking.serviceNetwork: has several networks",
            ),
            (
                "172.30.0.0/16",
                "10.128.0.0/16",
                "16:5: networking.serviceNetwork: \"10.128.0.0/16\" overlaps 10.128.0.0/14",
            ),
            (
                "10.128.0.0/14",
                "100.64.0.0/15",
                "networking.clusterNetwork[0]: overlaps 100.64.0.0/16, the join network",
            ),
            (
                "hostPrefix: 23",
                "hostPrefix: 13",
                "14:17: networking.clusterNetwork[0].hostPrefix: \"13\"",
            ),
            (
                "networkType: OVNKubernetes",
                "ovnKubernetesConfig: {ipv4: {internalJoinSubnet: x}}",
                "internalJoinSubnet: \"x\" is not a CIDR",
            ),
            (
                "networkType: OVNKubernetes",
                "networkType: Calico\n  ovnKubernetesConfig: {ipv4: {internalJoinSubnet: 100.98.0.0/16}}",
                "has an effect on networkType OVNKubernetes only",
            ),
            (
                "networkType: OVNKubernetes",
                "networkType: kuryr",
                "gone since 4.15: write OVNKubernetes",
            ),
            (networks, "- cidr: 192.0.2.7/24", ""),
        ],
    );
}

#[test]
fn other_documents_are_named_with_the_place_of_their_content() {
    let agent = "apiVersion: v1beta1\nmetadata:\n  name: rack\n";
    for (document, expected) in [
        (agent, ""),
        (
            "kind: agentconfig\nmetadata: {name: rack}\n",
            "apiVersion is missing",
        ),
        (
            "apiVersion: v1beta1\nkind: InstallConfig\nrendezvousIP: 192.0.2.9\n",
            "",
        ),
        (
            "apiVersion: siteconfig.open-cluster-management.io/v1alpha1\nkind: ClusterInstance\n",
            "site.yaml",
        ),
        (
            "apiVersion: agent-install.openshift.io/v1beta1\nkind: NMStateConfig\n",
            "write spec.config as networkConfig",
        ),
        (
            "apiVersion: metal3.io/v1alpha1\nkind: BareMetalHost\n",
            "a record of hardware",
        ),
        (
            "apiVersion: mirror.openshift.io/v2alpha1\nkind: ImageSetConfiguration\n",
            "atoll mirror",
        ),
        (
            "apiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfig\n",
            "upload it as a manifest",
        ),
        (
            "apiVersion: v1\nkind: ConfigMap\n",
            "a document of kind ConfigMap is an object of Kubernetes",
        ),
        ("interfaces: []\n", "nmstate's format"),
        ("auths: {}\n", "is a pull secret"),
        (
            "a: b\n",
            "has no member of install-config.yaml or agent-config.yaml",
        ),
    ] {
        let error = refusal(&format!("{SITE}---\n{document}"));
        let expected = if expected == "site.yaml" {
            "SiteConfig operator of a hub"
        } else {
            expected
        };
        assert!(error.contains(expected), "{document}: {error}");
        assert!(
            !expected.is_empty() || error.is_empty(),
            "{document}: {error}"
        );
        assert!(error.is_empty() || error.contains(".yaml:23:1"), "{error}");
    }
    let joined = format!("{SITE}{agent}");
    assert!(refusal(&joined).contains("separate documents by a line with ---"));
    assert!(refusal(&SITE.replace("  name: demo", "\tname: demo")).contains("indent with blanks"));
    assert_eq!(refusal(&format!("\u{feff}{SITE}---\n\u{feff}{agent}")), "");
}

#[test]
fn files_of_other_systems_are_decoded() {
    let mut bytes = vec![0xff, 0xfe];
    bytes.extend(SITE.encode_utf16().flat_map(u16::to_le_bytes));
    assert_eq!(decode("x", bytes).unwrap(), format!("{SITE}"));
    let mut bytes = vec![0xfe, 0xff];
    bytes.extend(SITE.encode_utf16().flat_map(u16::to_be_bytes));
    assert_eq!(decode("x", bytes).unwrap(), SITE);
    let error = decode("x.yaml", b"a: b\nc: \xe9\n".to_vec()).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("x.yaml:2: has characters that are not UTF-8")
    );
    assert!(decode("x", vec![0xff, 0xfe, 0x00, 0xd8]).is_err());
}

#[test]
fn errors_of_the_api_have_places_in_the_files() {
    let (name, text) = ("site.yaml".to_owned(), SITE.to_owned());
    let wanted = parse(&[FileText { name, text }]).unwrap();
    for (field, expected) in [
        (
            "network_type",
            "install-config.yaml:9:16: networking.networkType",
        ),
        (
            "cluster_networks[0].host_prefix",
            "install-config.yaml:14:17: networking.clusterNetwork[0].hostPrefix",
        ),
        (
            "api_vips and ingress_vips",
            "install-config.yaml:19:14: platform.baremetal.apiVIPs",
        ),
        ("install_config_overrides.fips", "install-config.yaml: fips"),
        (
            "install-config.yaml: controlPlane.replicas",
            "install-config.yaml:7:13: controlPlane.replicas",
        ),
        ("openshift_version", "openshift_version"),
    ] {
        let error = wanted.located(model::Error::invalid(field, "is wrong"));
        assert_eq!(error.to_string(), format!("{expected}: is wrong"));
    }
    let conflict = model::Error::conflict("x");
    assert_eq!(
        wanted.located(conflict).to_string(),
        model::Error::conflict("x").to_string()
    );
}
