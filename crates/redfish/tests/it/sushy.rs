//! The real emulator of OpenStack: sushy-tools, with its fake driver.

use std::fs;
use std::process::Stdio;

use redfish::{
    BootMedium, BootTarget, PowerAction, PowerState, RedfishConnector, boot_from,
    finish_installation,
};
use tempfile::TempDir;
use testkit::wire::{Wire, answer};
use tokio::process::{Child, Command};

use crate::lab::{access, patient, text};

/// Names the program `sushy-emulator`; `cargo xtask test` sets it.
const VARIABLE: &str = "SUSHY_EMULATOR";
const SYSTEMS: [&str; 2] = [
    "27946b59-9e44-4fa7-8e91-f3527a1ef094",
    "27946b59-9e44-4fa7-8e91-f3527a1ef095",
];

struct Emulator {
    origin: String,
    _process: Child,
    _folder: TempDir,
}

/// Starts the emulator; none without its program.
async fn emulator() -> Option<Emulator> {
    let Some(program) = std::env::var_os(VARIABLE) else {
        testkit::skipped("SUSHY_EMULATOR names no sushy-emulator of PyPI");
        return None;
    };
    let folder = TempDir::new().unwrap();
    let systems = SYSTEMS.map(|uuid| {
        format!(
            "{{'uuid': '{uuid}', 'name': '{uuid}', 'power_state': 'Off', 'external_notifier': False, \
             'nics': [{{'mac': '00:5c:52:31:3a:9c', 'ip': '172.22.0.100'}}]}}"
        )
    });
    let config = format!(
        "SUSHY_EMULATOR_FAKE_DRIVER = True\nSUSHY_EMULATOR_FAKE_SYSTEMS = [{}]\n\
         SUSHY_EMULATOR_STATE_DIR = '{}'\n\
         SUSHY_EMULATOR_STORAGE = {{'{first}': [{{'Id': '1', 'Name': 'A', 'StorageControllers': [], 'Drives': ['d1']}}]}}\n\
         SUSHY_EMULATOR_DRIVES = {{('{first}', '1'): [{{'Id': 'd1', 'Name': 'D', 'CapacityBytes': 899527000000, \
         'Protocol': 'SAS'}}]}}\n",
        systems.join(", "),
        folder.path().display(),
        first = SYSTEMS[0],
    );
    let file = folder.path().join("emulator.conf");
    fs::write(&file, config).unwrap();
    let port = testkit::ports::free_port().unwrap();
    let process = Command::new(program)
        .arg("--config")
        .arg(&file)
        .args(["--fake", "-i", "127.0.0.1", "-p", &port.to_string()])
        .env("TMPDIR", folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let address = format!("127.0.0.1:{port}");
    while tokio::net::TcpStream::connect(&address).await.is_err() {
        tokio::task::yield_now().await;
    }
    Some(Emulator {
        origin: format!("http://{address}"),
        _process: process,
        _folder: folder,
    })
}

#[tokio::test]
async fn sushy_tools_is_driven() {
    let Some(emulator) = emulator().await else {
        return;
    };
    // The emulator downloads the image.
    let web = Wire::answering(|_| answer("200 OK", "", "an image")).await;
    let image = format!("http://{}/discovery.iso", web.address);
    let connector = RedfishConnector::new(None, patient()).unwrap();
    let both = connector
        .connect(&access(&emulator.origin, None))
        .await
        .unwrap_err();
    assert!(text(&both).contains(SYSTEMS[1]), "{both}");
    let path = format!("/redfish/v1/Systems/{}", SYSTEMS[0]);
    let mut bmc = connector
        .connect(&access(&emulator.origin, Some(&path)))
        .await
        .unwrap();
    assert_eq!(bmc.quirks().name, "sushy-tools");
    let inventory = bmc.inventory().await.unwrap();
    assert_eq!(inventory.uuid.as_deref(), Some(SYSTEMS[0]));
    assert_eq!(inventory.nics[0].mac, "00:5c:52:31:3a:9c");
    let [disk] = inventory.disks.as_slice() else {
        panic!("{:?}", inventory.disks);
    };
    assert_eq!(
        (disk.id.as_str(), disk.size_bytes),
        ("d1", Some(899_527_000_000))
    );
    assert_eq!(disk.media.as_deref(), Some("HDD"));
    assert!(inventory.has_virtual_media && inventory.has_uefi_http);

    let medium = BootMedium::VirtualMedia {
        image: image.parse().unwrap(),
        size_bytes: Some(8),
    };
    boot_from(&mut bmc, &medium, |_| {}).await.unwrap();
    assert_eq!(bmc.power_state().await.unwrap(), PowerState::On);
    let media = bmc.media().await.unwrap();
    assert!(
        media
            .iter()
            .any(|slot| slot.is_inserted && slot.image.as_deref() == Some(&image))
    );
    assert_eq!(
        bmc.boot_override().await.unwrap().target.as_deref(),
        Some("Cd")
    );
    assert_eq!(web.requests().len(), 1);

    finish_installation(&mut bmc, |_| {}).await.unwrap();
    assert!(
        bmc.media()
            .await
            .unwrap()
            .iter()
            .all(|slot| !slot.is_inserted)
    );
    assert_eq!(
        bmc.boot_override().await.unwrap().target.as_deref(),
        Some("Hdd")
    );
    bmc.boot_once(&BootTarget::VirtualCd).await.unwrap();
    bmc.clear_boot_override().await.unwrap();
    bmc.power(PowerAction::GracefulShutdown).await.unwrap();
    assert_eq!(bmc.power_state().await.unwrap(), PowerState::Off);
    // Its fake driver does not store the address of UEFI HTTP boot.
    let http = BootTarget::UefiHttp(image.parse().unwrap());
    let refused = bmc.boot_once(&http).await.unwrap_err();
    assert!(text(&refused).contains("400"), "{refused}");
    // No image behind the address.
    let missing = format!("{}/discovery.iso", emulator.origin);
    let error = bmc
        .insert_image(&missing.parse().unwrap(), None)
        .await
        .unwrap_err();
    assert!(text(&error).contains("404"), "{error}");
    bmc.close().await;
}
