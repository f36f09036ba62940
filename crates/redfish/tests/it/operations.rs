//! Each operation on each family.

use host_sim::bmc::{BmcBootSource, BmcFault, BmcFaultRule, SimulatedOverride, SimulatedPower};
use redfish::{
    BmcAccess, BootMedium, BootSourceKind, BootStep, BootTarget, FirmwareMode, PowerAction,
    PowerState, boot_from, boot_from_disk, finish_installation,
};

use crate::lab::{IMAGE, Lab, OTHER_IMAGE, access, families, hasty, patient, text};

fn image() -> BootMedium {
    BootMedium::VirtualMedia {
        image: IMAGE.parse().unwrap(),
        size_bytes: Some(120_000_000),
    }
}

fn virtual_cd() -> BmcBootSource {
    BmcBootSource::VirtualCd(IMAGE.to_owned())
}

#[tokio::test]
async fn inventories_are_read_and_sessions_are_ended() {
    for family in families() {
        let lab = Lab::of(family, 1).await;
        let mut bmc = lab.connect().await.unwrap();
        let read = bmc.inventory().await.unwrap();
        bmc.close().await;
        let (simulated, profile) = (lab.bmc(), lab.bmc().profile);
        let host = &simulated.host;
        assert_eq!(
            read.serial.as_deref(),
            Some(host.serial.as_str()),
            "{family}"
        );
        assert_eq!(read.uuid, Some(host.uuid.to_string()), "{family}");
        assert_eq!(
            read.manufacturer.as_deref(),
            Some(profile.manufacturer),
            "{family}"
        );
        assert_eq!(
            read.bmc_firmware.as_deref(),
            Some(profile.firmware),
            "{family}"
        );
        let macs: Vec<_> = read.nics.iter().map(|nic| nic.mac.clone()).collect();
        assert_eq!(macs, host.macs, "{family}");
        let disks = read.disks.iter().map(|disk| disk.size_bytes);
        let sizes = host.disks.iter().map(|disk| Some(disk.size_bytes));
        assert!(disks.eq(sizes), "{family}: {:?}", read.disks);
        // Entries of the older resource have neither number nor type.
        let serials = read.disks.iter().filter(|disk| disk.serial.is_some());
        let known = if profile.has_simple_storage { 0 } else { 2 };
        assert_eq!(serials.count(), known, "{family}");
        assert_eq!(
            (read.memory_gib, read.processors),
            (Some(128), Some(2)),
            "{family}"
        );
        assert_eq!(read.power, PowerState::Off, "{family}");
        assert_eq!(read.secure_boot, profile.secure_boot, "{family}");
        assert!(read.has_virtual_media && read.has_uefi_http, "{family}");
        assert_eq!(simulated.open_sessions(), 0, "{family}");
        assert_eq!(
            simulated.opened_sessions(),
            u64::from(profile.has_sessions),
            "{family}"
        );
        let writes = simulated
            .requests()
            .into_iter()
            .filter(|it| it.method == "PATCH");
        assert_eq!(writes.count(), 0, "{family}");
    }
}

#[tokio::test]
async fn families_are_recognised() {
    for (profile, family) in [
        ("standard", "standard"),
        ("idrac9", "Dell iDRAC"),
        ("idrac10", "Dell iDRAC10"),
        ("ilo5", "HPE iLO"),
        ("supermicro", "Supermicro"),
        ("xcc", "Lenovo XCC"),
        ("megarac", "AMI MegaRAC"),
        ("sushy", "sushy-tools"),
    ] {
        let lab = Lab::of(profile, 1).await;
        let bmc = lab.connect().await.unwrap();
        assert_eq!(bmc.quirks().name, family);
        bmc.close().await;
    }
}

#[tokio::test]
async fn the_power_is_changed_and_seen() {
    for family in families() {
        let lab = Lab::of(family, 1).await;
        let mut bmc = lab.connect().await.unwrap();
        for (action, expected, boots) in [
            (PowerAction::On, SimulatedPower::On, 1),
            (PowerAction::On, SimulatedPower::On, 1),
            (PowerAction::GracefulShutdown, SimulatedPower::Off, 1),
            (PowerAction::GracefulShutdown, SimulatedPower::Off, 1),
            (PowerAction::On, SimulatedPower::On, 2),
            (PowerAction::Restart, SimulatedPower::On, 3),
            (PowerAction::ForceOff, SimulatedPower::Off, 3),
            (PowerAction::Restart, SimulatedPower::On, 4),
        ] {
            bmc.power(action).await.unwrap();
            assert_eq!(lab.bmc().power(), expected, "{family} {action:?}");
            assert_eq!(lab.bmc().boots().len(), boots, "{family} {action:?}");
        }
        let fenced = bmc.fence().await.unwrap();
        assert_eq!(
            fenced.uuid,
            Some(lab.bmc().host.uuid.to_string()),
            "{family}"
        );
        assert_eq!(lab.bmc().power(), SimulatedPower::Off, "{family}");
        bmc.close().await;
    }
}

#[tokio::test]
async fn slow_hosts_are_waited_for() {
    let profile = host_sim::bmc::BmcProfile::find("standard").unwrap();
    let mut plan = host_sim::bmc::BmcRackPlan::of(profile, 1);
    plan.pace.power = std::time::Duration::from_millis(100);
    let lab = Lab::start(plan, patient()).await;
    let mut bmc = lab.connect().await.unwrap();
    assert_eq!(bmc.power(PowerAction::On).await.unwrap(), PowerState::On);
    assert_eq!(
        bmc.power(PowerAction::Restart).await.unwrap(),
        PowerState::On
    );
    assert_eq!(lab.bmc().boots().len(), 2);
    bmc.close().await;
}

#[tokio::test]
async fn images_are_inserted_replaced_and_ejected() {
    for family in families() {
        let lab = Lab::of(family, 1).await;
        let mut bmc = lab.connect().await.unwrap();
        let slot = bmc
            .insert_image(&IMAGE.parse().unwrap(), None)
            .await
            .unwrap();
        let name = slot.name.as_str();
        assert_eq!(lab.bmc().images(), [(name, IMAGE.to_owned())], "{family}");
        // The same again, then another in its place.
        bmc.insert_image(&IMAGE.parse().unwrap(), None)
            .await
            .unwrap();
        assert_eq!(lab.bmc().images(), [(name, IMAGE.to_owned())], "{family}");
        bmc.insert_image(&OTHER_IMAGE.parse().unwrap(), None)
            .await
            .unwrap();
        assert_eq!(
            lab.bmc().images(),
            [(name, OTHER_IMAGE.to_owned())],
            "{family}"
        );
        bmc.eject_images().await.unwrap();
        assert_eq!(lab.bmc().images(), [], "{family}");
        bmc.eject_images().await.unwrap();
        bmc.close().await;
    }
}

#[tokio::test]
async fn hosts_boot_from_their_image_once() {
    use BootStep::{Check, InsertMedium, PowerOff, PowerOn, SetBootSource};
    for family in families() {
        let lab = Lab::of(family, 1).await;
        let simulated = lab.bmc();
        simulated.set_power(SimulatedPower::On);
        let disc = simulated
            .profile
            .media
            .iter()
            .find(|it| it.takes_images && it.types.contains(&"CD"));
        assert!(simulated.insert(disc.unwrap().name, OTHER_IMAGE));
        let mut bmc = lab.connect().await.unwrap();
        let steps = std::sync::Mutex::new(Vec::new());
        boot_from(&mut bmc, &image(), |step| steps.lock().unwrap().push(step))
            .await
            .unwrap();
        assert_eq!(simulated.boots(), [virtual_cd()], "{family}");
        let expected = [Check, PowerOff, InsertMedium, SetBootSource, PowerOn];
        assert_eq!(*steps.lock().unwrap(), expected, "{family}");
        // The installation ends, and the host restarts.
        let order = finish_installation(&mut bmc, |_| {}).await.unwrap();
        assert_eq!(order.entries[0].kind, BootSourceKind::Disk, "{family}");
        assert!(order.before_disk().is_none(), "{family}");
        assert_eq!(simulated.images(), [], "{family}");
        bmc.power(PowerAction::Restart).await.unwrap();
        assert_eq!(simulated.boots()[1..], [BmcBootSource::Disk], "{family}");
        bmc.close().await;
        assert_eq!(simulated.open_sessions(), 0, "{family}");
    }
}

#[tokio::test]
async fn hosts_boot_by_uefi_http() {
    let uri = "http://10.0.0.9:8888/boot/grubx64.efi?token=s3cret-token";
    for family in families() {
        let lab = Lab::of(family, 1).await;
        let mut bmc = lab.connect().await.unwrap();
        let medium = BootMedium::UefiHttp {
            uri: uri.parse().unwrap(),
        };
        boot_from(&mut bmc, &medium, |_| {}).await.unwrap();
        assert_eq!(
            lab.bmc().boots(),
            [BmcBootSource::Http(Some(uri.to_owned()))],
            "{family}"
        );
        finish_installation(&mut bmc, |_| {}).await.unwrap();
        bmc.power(PowerAction::Restart).await.unwrap();
        assert_eq!(lab.bmc().boots()[1..], [BmcBootSource::Disk], "{family}");
        bmc.close().await;
    }
}

#[tokio::test]
async fn hosts_that_boot_their_image_again_are_mended() {
    for family in families() {
        let lab = Lab::of(family, 1).await;
        let simulated = lab.bmc();
        simulated.set_cd_first(true);
        let mut bmc = lab.connect().await.unwrap();
        boot_from(&mut bmc, &image(), |_| {}).await.unwrap();
        bmc.power(PowerAction::Restart).await.unwrap();
        assert_eq!(simulated.boots(), [virtual_cd(), virtual_cd()], "{family}");
        let order = boot_from_disk(&mut bmc, |_| {}).await.unwrap();
        assert_eq!(
            order.before_disk().map(|it| it.kind),
            Some(BootSourceKind::Cd),
            "{family}"
        );
        assert_eq!(simulated.boots()[2..], [BmcBootSource::Disk], "{family}");
        bmc.close().await;
    }
}

#[tokio::test]
async fn overrides_for_all_boots_end_with_the_installation() {
    let lab = Lab::of("standard", 1).await;
    lab.bmc().set_boot_override(SimulatedOverride {
        target: "Cd".to_owned(),
        enabled: "Continuous".to_owned(),
        ..SimulatedOverride::default()
    });
    let mut bmc = lab.connect().await.unwrap();
    assert!(bmc.boot_override().await.unwrap().leaves_disk());
    bmc.clear_boot_override().await.unwrap();
    assert_eq!(lab.bmc().boot_override().enabled, "Disabled");
    bmc.close().await;
}

#[tokio::test]
async fn a_host_that_cannot_boot_is_not_touched() {
    let lab = Lab::with("megarac", 1, hasty()).await;
    lab.bmc().set_power(SimulatedPower::On);
    let mut bmc = lab.connect().await.unwrap();
    let full = BootMedium::VirtualMedia {
        image: IMAGE.parse().unwrap(),
        size_bytes: Some(1_200_000_000),
    };
    let error = boot_from(&mut bmc, &full, |_| {}).await.unwrap_err();
    assert!(text(&error).contains("use the minimal image"), "{error}");
    assert_eq!(lab.bmc().power(), SimulatedPower::On);
    bmc.close().await;
}

#[tokio::test]
async fn the_only_system_is_found_without_a_path() {
    let lab = Lab::of("idrac9", 1).await;
    let origin = lab.rack.origin(0, "https");
    let bmc = lab.connector.connect(&access(&origin, None)).await.unwrap();
    assert!(
        bmc.endpoint()
            .ends_with("/redfish/v1/Systems/System.Embedded.1")
    );
    bmc.close().await;
    let other = access(&origin, Some("/redfish/v1/Systems/1"));
    let error = lab.connector.connect(&other).await.unwrap_err();
    assert!(
        text(&error).contains("its systems are /redfish/v1/Systems/System.Embedded.1"),
        "{error}"
    );
    assert_eq!(lab.bmc().open_sessions(), 0);
}

#[tokio::test]
async fn plain_http_is_spoken_where_the_record_says_so() {
    let lab = Lab::of("standard", 1).await;
    let plain = access(&lab.rack.origin(0, "http"), None);
    let mut bmc = lab.connector.connect(&plain).await.unwrap();
    bmc.boot_once(&BootTarget::Disk).await.unwrap();
    assert_eq!(lab.bmc().boot_override().target, "Hdd");
    bmc.close().await;
}

#[tokio::test]
async fn hosts_of_the_old_firmware_keep_their_mode() {
    for family in families() {
        let lab = Lab::of(family, 1).await;
        let legacy = BmcAccess {
            mode: FirmwareMode::Legacy,
            ..lab.access(0)
        };
        let mut bmc = lab.connector.connect(&legacy).await.unwrap();
        bmc.boot_once(&BootTarget::Disk).await.unwrap();
        assert_eq!(lab.bmc().boot_override().mode, "Legacy", "{family}");
        let http = BootTarget::UefiHttp(IMAGE.parse().unwrap());
        let error = bmc.check_boot_target(&http).await.unwrap_err();
        assert!(text(&error).contains("set bootMode to UEFI"), "{error}");
        bmc.close().await;
    }
}

#[tokio::test]
async fn a_write_that_another_client_outran_is_repeated_once() {
    let lab = Lab::of("xcc", 1).await;
    let rule = BmcFaultRule::on("PATCH", "/Systems", BmcFault::Status(412)).times(1);
    lab.bmc().add_fault(rule);
    let mut bmc = lab.connect().await.unwrap();
    let error = bmc.boot_once(&BootTarget::Disk).await.unwrap_err();
    // The tag is the same as before: there is nothing else to try.
    assert!(text(&error).contains("412"), "{error}");
    bmc.close().await;
    // A weak tag that is only taken as a strong one.
    let lab = Lab::of("megarac", 1).await;
    let mut bmc = lab.connect().await.unwrap();
    bmc.boot_once(&BootTarget::Disk).await.unwrap();
    let tags = lab
        .bmc()
        .requests()
        .into_iter()
        .filter_map(|it| it.if_match);
    assert_eq!(tags.collect::<Vec<_>>(), ["W/\"1\"", "\"1\""]);
    bmc.close().await;
}
