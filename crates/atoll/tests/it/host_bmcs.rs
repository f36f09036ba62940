//! `atoll host inspect|power|boot|eject` against simulated BMCs.

use std::fmt::Write as _;
use std::fs;
use std::process::Output;

use host_sim::bmc::{
    BmcBootSource, BmcHost, BmcProfile, BmcRack, BmcRackPlan, SimulatedBmc, SimulatedPower,
};
use tempfile::TempDir;

use crate::host::host;

const PASSWORD: &str = "correct-horse";
const IMAGE: &str = "http://10.0.0.9:8888/images/full.iso?image_token=s3cret-token";
const SHOWN_IMAGE: &str = "http://10.0.0.9:8888/images/full.iso";

/// Hosts of several families with their records in a folder.
struct BmcSite {
    rack: BmcRack,
    folder: TempDir,
    /// As in `hosts.yaml`.
    records: String,
}

impl BmcSite {
    async fn start(families: &[&str]) -> Self {
        let profile = |family: &&str| BmcProfile::find(family).unwrap();
        let mut plan = BmcRackPlan::of(profile(&families[0]), 0);
        let bmcs = families.iter().map(profile).enumerate();
        plan.bmcs = bmcs
            .map(|(at, profile)| (profile, BmcHost::numbered(at)))
            .collect();
        Self::of(plan).await
    }

    async fn of(plan: BmcRackPlan) -> Self {
        let rack = BmcRack::start(plan).await.unwrap();
        let mut records = String::new();
        for bmc in rack.bmcs() {
            let name = &bmc.host.name;
            let origin = rack.origin(bmc.index, "redfish-virtualmedia");
            write!(
                records,
                "---\napiVersion: v1\nkind: Secret\nmetadata: {{name: {name}-bmc}}\n\
                 stringData: {{username: admin, password: {PASSWORD}}}\n\
                 ---\napiVersion: metal3.io/v1alpha1\nkind: BareMetalHost\nmetadata: {{name: {name}}}\n\
                 spec:\n  online: true\n  bootMACAddress: {}\n  bmc:\n    address: {origin}{}\n    \
                 credentialsName: {name}-bmc\n",
                bmc.host.macs[0].to_uppercase(),
                bmc.profile.system_path(),
            )
            .unwrap();
        }
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("hosts.yaml"), &records).unwrap();
        fs::write(folder.path().join("ca.pem"), rack.ca_pem()).unwrap();
        Self {
            rack,
            folder,
            records,
        }
    }

    /// Changes the records.
    fn replace(&mut self, from: &str, to: &str) {
        assert!(self.records.contains(from), "{from}");
        self.records = self.records.replacen(from, to, 1);
        fs::write(self.folder.path().join("hosts.yaml"), &self.records).unwrap();
    }

    /// Runs `atoll host` without showing any secret.
    fn run(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
        let output = tokio::task::block_in_place(|| host(self.folder.path(), arguments, ""));
        let Output {
            status,
            stdout,
            stderr,
        } = output;
        let [stdout, stderr] = [stdout, stderr].map(|text| String::from_utf8(text).unwrap());
        for secret in [PASSWORD, "s3cret-token", "admin"] {
            assert!(
                !stdout.contains(secret) && !stderr.contains(secret),
                "{stdout}{stderr}"
            );
        }
        (status.code(), stdout, stderr)
    }

    fn bmc(&self, index: usize) -> &SimulatedBmc {
        &self.rack.bmcs()[index]
    }

    fn has_no_sessions(&self) -> bool {
        self.rack.bmcs().iter().all(|bmc| bmc.open_sessions() == 0)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_are_inspected() {
    let site = BmcSite::start(&["standard", "idrac9", "ilo5"]).await;
    let inspect = ["inspect", "hosts.yaml", "--ca", "ca.pem"];
    let (code, stdout, stderr) = site.run(&inspect);
    assert_eq!((code, stderr.as_str()), (Some(0), ""), "{stdout}");
    let lines: Vec<_> = stdout.lines().collect();
    assert_eq!(lines.len(), 4, "{stdout}");
    assert!(lines[0].starts_with("NAME"), "{stdout}");
    for (bmc, line) in site.rack.bmcs().iter().zip(&lines[1..]) {
        let (host, profile) = (&bmc.host, bmc.profile);
        for text in [
            &*host.name,
            &host.serial,
            profile.manufacturer,
            profile.model,
        ] {
            assert!(line.contains(text), "{text}: {line}");
        }
        assert!(line.contains("off") && line.contains("128 GiB"), "{line}");
        let nics = format!("{}* {}", host.macs[0], host.macs[1]);
        assert!(line.ends_with(&nics), "{line}");
    }
    let (code, stdout, _) = site.run(&[&inspect[..], &["--json", "--host", "host-1"]].concat());
    assert_eq!(code, Some(0));
    let hosts: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(hosts.as_array().unwrap().len(), 1);
    let host = &hosts[0];
    assert_eq!(host["name"], "host-1");
    assert_eq!(host["namespace"], "openshift-machine-api");
    assert_eq!(host["error"], serde_json::Value::Null);
    assert_eq!(host["inventory"]["family"], "Dell iDRAC");
    assert_eq!(
        host["inventory"]["nics"][0]["mac"],
        site.bmc(1).host.macs[0]
    );
    assert!(site.has_no_sessions());
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_concern_their_own_hosts() {
    let mut site = BmcSite::start(&["standard"; 5]).await;
    let secret = |name: &str, password: &str| {
        format!(
            "metadata: {{name: {name}-bmc}}\nstringData: {{username: admin, password: {password}}}"
        )
    };
    site.replace(&secret("host-1", PASSWORD), &secret("host-1", "wrong"));
    let second = format!("address: {}", site.rack.origin(2, "redfish-virtualmedia"));
    site.replace(&second, "address: ipmi://127.64.0.3");
    let boot_mac = site.bmc(3).host.macs[0].to_uppercase();
    site.replace(&boot_mac, "52:54:00:99:99:99");
    site.replace("credentialsName: host-4-bmc", "credentialsName: host-5-bmc");
    let (code, stdout, stderr) = site.run(&["inspect", "hosts.yaml", "--ca", "ca.pem"]);
    assert_eq!(code, Some(1));
    let names: Vec<_> = stdout
        .lines()
        .filter_map(|line| line.split(' ').next())
        .collect();
    assert_eq!(names, ["NAME", "host-0", "host-3"], "{stdout}");
    let expected = [
        ("host-1", "correct the secret of the host's record"),
        ("host-2", "ipmi is IPMI"),
        (
            "host-3",
            "no NIC with the boot MAC address 52:54:00:99:99:99",
        ),
        (
            "host-4",
            "the secret openshift-machine-api/host-5-bmc is not among the records",
        ),
    ];
    let lines: Vec<_> = stderr.lines().collect();
    assert_eq!(lines.len(), expected.len() + 1, "{stderr}");
    for ((name, text), line) in expected.iter().zip(&lines) {
        let is_right = line.starts_with(&format!("atoll: {name}: ")) && line.contains(text);
        assert!(is_right, "{line}");
    }
    assert_eq!(lines[expected.len()], "4 of 5 hosts failed");
    assert_eq!(site.bmc(1).refused_logins(), 1);
    let (code, stdout, _) = site.run(&["inspect", "hosts.yaml", "--ca", "ca.pem", "--json"]);
    assert_eq!(code, Some(1));
    let hosts: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert!(hosts[1]["inventory"].is_null() && hosts[1]["error"].is_string());
    assert!(hosts[3]["inventory"].is_object() && hosts[3]["error"].is_string());
    assert!(site.has_no_sessions());
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_boot_an_image_and_are_left_to_their_disks() {
    let site = BmcSite::start(&["standard", "supermicro"]).await;
    let all = ["hosts.yaml", "--ca", "ca.pem"];
    let run = |arguments: &[&str]| site.run(&[arguments, &all].concat());
    let (code, stdout, stderr) = run(&["boot", "--image", IMAGE]);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(
        stdout.contains(&format!("host-1  {SHOWN_IMAGE}\n")),
        "{stdout}"
    );
    for name in ["host-0", "host-1"] {
        for step in ["insert the medium", "power on"] {
            assert!(stderr.contains(&format!("{name}: {step}\n")), "{stderr}");
        }
    }
    for bmc in site.rack.bmcs() {
        assert_eq!(bmc.boots(), [BmcBootSource::VirtualCd(IMAGE.to_owned())]);
        bmc.set_cd_first(true);
    }
    let (code, stdout, stderr) = run(&["eject"]);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(
        stdout.starts_with("NAME    BOOT ORDER\nhost-0  "),
        "{stdout}"
    );
    assert!(
        stderr.contains("atoll: host-0: its boot order has") && stderr.contains("before the disk"),
        "{stderr}"
    );
    for bmc in site.rack.bmcs() {
        assert_eq!((bmc.images().len(), bmc.boots().len()), (0, 1));
    }
    let uri = "http://10.0.0.9/boot.efi";
    let (code, _, stderr) = run(&["boot", "--http-boot", uri, "--host", "host-0"]);
    assert_eq!(code, Some(0), "{stderr}");
    let boots = site.bmc(0).boots();
    assert_eq!(
        boots.last(),
        Some(&BmcBootSource::Http(Some(uri.to_owned())))
    );
    assert_eq!(site.bmc(1).boots().len(), 1);
    assert!(site.has_no_sessions());
}

#[tokio::test(flavor = "multi_thread")]
async fn mistakes_leave_the_hosts_alone() {
    let mut site = BmcSite::start(&["standard"]).await;
    // The certificates are those of an unknown authority.
    let (code, _, stderr) = site.run(&["boot", "--image", IMAGE, "hosts.yaml"]);
    assert_eq!(code, Some(1));
    assert!(stderr.contains("is not trusted"), "{stderr}");
    let all = ["hosts.yaml", "--ca", "ca.pem"];
    for (arguments, code, text) in [
        (&["boot"][..], 2, "--image"),
        (
            &[
                "boot",
                "--image",
                SHOWN_IMAGE,
                "--http-boot",
                "http://10.0.0.9/",
            ],
            2,
            "--http-boot",
        ),
        (
            &["boot", "--image", "full.iso"],
            2,
            "is a file of this machine",
        ),
        (
            &["boot", "--image", "file:///x"],
            2,
            "is a file of this machine",
        ),
        (&["boot", "--http-boot", "nfs://a/x"], 2, "http or https"),
        (&["boot", "--image", "https://"], 2, "names no host"),
        (
            &["boot", "--image", IMAGE, "--host", "host-00"],
            1,
            "host-0 may be meant",
        ),
        (
            &["power", "off", "--host", "other-host-1"],
            1,
            "the files have host-0",
        ),
        (&["power", "of"], 2, "off"),
    ] {
        let (found, stdout, stderr) = site.run(&[arguments, &all].concat());
        assert_eq!(
            (found, stdout.as_str()),
            (Some(code), ""),
            "{arguments:?} {stderr}"
        );
        assert!(stderr.contains(text), "{arguments:?} {stderr}");
    }
    site.replace("kind: BareMetalHost", "kind: [");
    let (code, _, stderr) = site.run(&[&["power", "on"][..], &all].concat());
    assert_eq!(code, Some(1));
    assert!(stderr.starts_with("atoll: reading hosts.yaml:"), "{stderr}");
    site.replace("kind: [", "kind: Pod");
    let (code, _, stderr) = site.run(&[&["power", "on"][..], &all].concat());
    assert_eq!(code, Some(1));
    assert!(
        stderr.contains("no record of kind BareMetalHost"),
        "{stderr}"
    );
    assert_eq!(site.bmc(0).requests(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn addresses_that_a_bmc_may_not_reach_are_warned_of() {
    let site = BmcSite::start(&["standard"]).await;
    let image = "http://127.0.0.1:8888/full.iso";
    let (code, _, stderr) = site.run(&["boot", "--image", image, "hosts.yaml", "--ca", "ca.pem"]);
    assert_eq!(code, Some(0), "{stderr}");
    let warning = "the image's address has the host 127.0.0.1, by which the BMC means itself";
    assert!(stderr.contains(warning), "{stderr}");
    let image = "https://root:s3cret-token@169.254.1.2/full.iso";
    let (code, _, stderr) = site.run(&["boot", "--image", image, "hosts.yaml", "--ca", "ca.pem"]);
    assert_eq!(code, Some(0), "{stderr}");
    for warning in [
        "the link-local host 169.254.1.2",
        "a user name or a password",
    ] {
        assert!(stderr.contains(warning), "{stderr}");
    }
}

/// metal3-io/baremetal-operator, issue 896: the path of virtual media in place of a system's.
#[tokio::test(flavor = "multi_thread")]
async fn paths_that_are_no_systems_are_refused_by_boot_as_by_check() {
    for (path, expected) in [
        ("/redfish/v1/Managers/1", "has the path of managers"),
        ("/redfish/v1/Systems", "has the path of all systems"),
        (
            "/redfish/v1/Systems/1/VirtualMedia/Cd",
            "below that of a system",
        ),
    ] {
        let mut site = BmcSite::start(&["standard"]).await;
        site.replace("/redfish/v1/Systems/1", path);
        let (code, stdout, _) = site.run(&["check", "hosts.yaml"]);
        assert_eq!(code, Some(1));
        assert!(stdout.contains(expected), "{stdout}");
        let (code, _, stderr) =
            site.run(&["boot", "--image", IMAGE, "hosts.yaml", "--ca", "ca.pem"]);
        assert_eq!(code, Some(1));
        assert!(stderr.contains(expected), "{stderr}");
        assert_eq!(site.bmc(0).requests(), []);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn odd_inventories_are_shown_without_repetitions() {
    let profile = BmcProfile::find("ilo5").unwrap();
    let mut plan = BmcRackPlan::of(profile, 1);
    let host = &mut plan.bmcs[0].1;
    host.memory_gib = 0;
    for disk in &mut host.disks {
        disk.size_bytes = 0;
    }
    let site = BmcSite::of(plan).await;
    let (code, stdout, stderr) = site.run(&["inspect", "hosts.yaml", "--ca", "ca.pem"]);
    assert_eq!(code, Some(0), "{stderr}");
    assert_eq!(stdout.matches("iLO 5").count(), 1, "{stdout}");
    assert!(stdout.contains("1x HDD, 1x NVMe"), "{stdout}");
    assert!(
        !stdout.contains("0 GB") && !stdout.contains("0 GiB"),
        "{stdout}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_power_is_read_and_changed() {
    let site = BmcSite::start(&["standard", "xcc"]).await;
    let power = |action: &str, more: &[&str]| {
        let all = ["power", action, "hosts.yaml", "--ca", "ca.pem"];
        let (code, stdout, stderr) = site.run(&[&all[..], more].concat());
        assert_eq!(code, Some(0), "{stderr}");
        stdout
    };
    let both = |state: &str| format!("NAME    POWER\nhost-0  {state}\nhost-1  {state}\n");
    assert_eq!(power("status", &[]), both("off"));
    assert_eq!(power("on", &[]), both("on"));
    assert_eq!(site.bmc(0).boots(), [BmcBootSource::Disk]);
    assert_eq!(
        power("restart", &["--host", "host-1"]),
        "NAME    POWER\nhost-1  on\n"
    );
    assert_eq!(
        (site.bmc(0).boots().len(), site.bmc(1).boots().len()),
        (1, 2)
    );
    assert_eq!(
        power("shutdown", &["--host", "host-0"]),
        "NAME    POWER\nhost-0  off\n"
    );
    assert_eq!(power("off", &[]), both("off"));
    assert!(
        site.rack
            .bmcs()
            .iter()
            .all(|bmc| bmc.power() == SimulatedPower::Off)
    );
    assert!(site.has_no_sessions());
}
