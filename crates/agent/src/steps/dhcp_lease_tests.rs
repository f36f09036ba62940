//! Leases of a real server, which runs in a neighbour's network namespace.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use model::steps::{DhcpAllocationResponse, StepType};
use serde_json::json;

use super::network_tests::{Neighbour, context};
use super::{StepOutcome, run};
use crate::HostFiles;
use crate::dhcp::{DhcpClient, lease, leased_address};
use crate::links::LinkTable;

const API_MAC: &str = "00:1a:4a:b5:4d:cc";
const INGRESS_MAC: &str = "00:1A:4A:83:B1:F7";
const PATIENCE: Duration = Duration::from_secs(20);

/// A server that ends when dropped.
struct DhcpServer {
    neighbour: Neighbour,
    child: Child,
    folder: tempfile::TempDir,
}

impl DhcpServer {
    /// Leases the addresses 198.18.`number`.5 to 9. None without the right or the program.
    async fn start(number: u8, options: &[&str]) -> Option<Self> {
        let neighbour = Neighbour::new(number)?;
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name).display().to_string();
        let command = Command::new("ip")
            .args(["netns", "exec", &neighbour.namespace, "dnsmasq"])
            .args(["--keep-in-foreground", "--conf-file=/dev/null", "--port=0"])
            .args(["--no-ping", "--log-dhcp", "--user=root", "--group=root"])
            .args(["--interface=far", "--domain=a;b.example"])
            .arg(format!("--pid-file={}", file("pid")))
            .arg(format!("--log-facility={}", file("log")))
            .arg(format!("--dhcp-leasefile={}", file("leases")))
            .arg(format!(
                "--dhcp-range=198.18.{number}.5,198.18.{number}.9,255.255.255.240,2h"
            ))
            .args(options)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let mut server = Self {
            neighbour,
            child: command.ok()?,
            folder,
        };
        server.is_ready().await.then_some(server)
    }

    /// False when the program ends.
    async fn is_ready(&mut self) -> bool {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        while !self.log().contains("DHCP, IP range") {
            if self.child.try_wait().unwrap().is_some() || tokio::time::Instant::now() > deadline {
                return false;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        true
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    async fn allocate(&self, api_lease: &str, ingress_lease: &str) -> StepOutcome {
        let root = tempfile::tempdir().unwrap();
        let request = json!({
            "interface": self.neighbour.link, "api_vip_mac": API_MAC, "ingress_vip_mac": INGRESS_MAC,
            "api_vip_lease": api_lease, "ingress_vip_lease": ingress_lease,
        });
        let arguments = [request.to_string()];
        run(&context(&root), StepType::DhcpLeaseAllocate, &arguments).await
    }

    async fn leased(&self, api_lease: &str, ingress_lease: &str) -> DhcpAllocationResponse {
        let outcome = self.allocate(api_lease, ingress_lease).await;
        assert_eq!(outcome.exit_code, 0, "{outcome:?}\n{}", self.log());
        serde_json::from_str(&outcome.output).unwrap()
    }
}

impl Drop for DhcpServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

macro_rules! server {
    ($number:literal, $options:expr) => {
        match DhcpServer::start($number, $options).await {
            Some(server) => server,
            None => {
                testkit::skipped("no dnsmasq, or no rights to make network namespaces");
                return;
            }
        }
    };
}

#[tokio::test]
async fn addresses_are_leased_and_leased_again() {
    let server = server!(11, &[]);
    let first = server.leased("", "").await;
    assert_ne!(first.api_vip_address, first.ingress_vip_address);
    for (name, address, lease) in [
        ("api", &first.api_vip_address, &first.api_vip_lease),
        (
            "ingress",
            &first.ingress_vip_address,
            &first.ingress_vip_lease,
        ),
    ] {
        assert!(address.starts_with("198.18.11."), "{address}");
        assert_eq!(leased_address(lease).unwrap().to_string(), *address);
        for line in [
            format!("lease {{\n  interface \"{name}\";\n  fixed-address {address};\n"),
            "  option subnet-mask 255.255.255.240;\n".to_owned(),
            "  option dhcp-lease-time 7200;\n".to_owned(),
            "  option dhcp-server-identifier 198.18.11.2;\n".to_owned(),
            "  option dhcp-renewal-time 3600;\n".to_owned(),
            "  option domain-name \"a\\073b.example\";\n".to_owned(),
        ] {
            assert!(lease.contains(&line), "{line}: {lease}");
        }
    }
    let leases = std::fs::read_to_string(server.folder.path().join("leases")).unwrap();
    assert!(leases.contains("00-1a-4a-83-b1-f7-ingress"), "{leases}");

    let offers = |log: &str| log.matches("DHCPOFFER").count();
    let before = offers(&server.log());
    let again = server
        .leased(&first.api_vip_lease, &first.ingress_vip_lease)
        .await;
    assert_eq!(again.api_vip_address, first.api_vip_address);
    assert_eq!(again.ingress_vip_address, first.ingress_vip_address);
    assert_eq!(offers(&server.log()), before, "requested without an offer");
}

#[tokio::test]
async fn a_refused_address_is_replaced() {
    let server = server!(12, &["--dhcp-authoritative"]);
    let old = "lease {\n  fixed-address 198.18.99.5;\n}\n";
    let leased = server.leased(old, "").await;
    assert!(
        leased.api_vip_address.starts_with("198.18.12."),
        "{leased:?}"
    );
    assert!(server.log().contains("DHCPNAK"), "{}", server.log());
}

#[tokio::test]
async fn a_silent_server_is_an_error() {
    let server = server!(13, &["--dhcp-ignore=tag:!known"]);
    let table = LinkTable::read(&HostFiles::default()).await.unwrap();
    let mut links = table.links.iter();
    let link = links
        .find(|link| link.name == server.neighbour.link)
        .unwrap();
    let client = DhcpClient {
        mac: [2, 0, 0, 0, 0, 99],
        host_name: "a".to_owned(),
        last: Some([198, 18, 13, 5].into()),
    };
    // The time of the first two messages, with and without the last address.
    let timeout = Duration::from_secs(7);
    let error = lease(link, &client, timeout).await.unwrap_err().chain();
    for part in ["no DHCP server leased one within 7 seconds", &link.name] {
        assert!(error.contains(part), "{error}");
    }
    let log = server.log();
    assert!(
        log.contains("DHCPDISCOVER(far) 02:00:00:00:00:63 ignored"),
        "{log}"
    );
}

#[tokio::test]
async fn the_hardware_receives_for_the_address() {
    let server = server!(14, &[]);
    let addresses = || {
        let link = &server.neighbour.link;
        let output = Command::new("bridge")
            .args(["fdb", "show", "dev", link])
            .output();
        String::from_utf8(output.unwrap().stdout).unwrap()
    };
    let request = server.allocate("", "");
    tokio::pin!(request);
    let seen = async {
        while !addresses().contains(API_MAC) {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        biased;
        () = seen => {}
        outcome = &mut request => panic!("the address was never added: {outcome:?}"),
    }
    request.await;
    assert!(!addresses().contains(API_MAC), "{}", addresses());
}

#[tokio::test]
async fn wrong_requests_are_failures() {
    let root = tempfile::tempdir().unwrap();
    for (interface, mac, problem) in [
        ("no-such", API_MAC, "no-such"),
        ("lo", "x", "no MAC address"),
    ] {
        let request = json!({ "interface": interface, "api_vip_mac": mac, "ingress_vip_mac": mac });
        let arguments = [request.to_string()];
        let outcome = run(&context(&root), StepType::DhcpLeaseAllocate, &arguments).await;
        assert_eq!(outcome.exit_code, -1);
        assert!(outcome.error.contains(problem), "{}", outcome.error);
    }
}
