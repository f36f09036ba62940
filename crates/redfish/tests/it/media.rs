//! Drives without the image that they accepted, and addresses that no drive loads.

use host_sim::bmc::{BmcBootSource, BmcFault, BmcFaultRule, BmcProfile, SimulatedPower};
use redfish::{BmcError, BootMedium, BootStep, StoppedPower, boot_from};

use crate::lab::{IMAGE, Lab, OTHER_IMAGE, hasty, text};

fn medium(address: &str) -> BootMedium {
    BootMedium::VirtualMedia {
        image: address.parse().unwrap(),
        size_bytes: None,
    }
}

/// Boots a host that is on.
async fn boot(lab: &Lab, medium: &BootMedium) -> Result<(), BmcError> {
    lab.bmc().set_power(SimulatedPower::On);
    let mut bmc = lab.connect().await.unwrap();
    let done = boot_from(&mut bmc, medium, |_| {}).await;
    bmc.close().await;
    done
}

fn on_insertion(drive: &str, fault: BmcFault) -> BmcFaultRule {
    let path = format!("{drive}/Actions/VirtualMedia.InsertMedia");
    BmcFaultRule::on("POST", &path, fault)
}

/// dell/terraform-provider-redfish, issue 331: 204, and the drive stays empty.
#[tokio::test]
async fn a_drive_that_stays_empty_is_followed_by_the_next_one() {
    for fault in [
        BmcFault::NoEffect,
        BmcFault::FailedTask,
        BmcFault::Status(500),
    ] {
        let lab = Lab::with("megarac", 1, hasty()).await;
        lab.bmc().add_fault(on_insertion("CD1", fault.clone()));
        boot(&lab, &medium(IMAGE)).await.unwrap();
        assert_eq!(lab.bmc().images(), [("CD2", IMAGE.to_owned())], "{fault:?}");
        assert_eq!(
            lab.bmc().boots(),
            [BmcBootSource::VirtualCd(IMAGE.to_owned())],
            "{fault:?}"
        );
    }
}

#[tokio::test]
async fn a_drive_that_wants_other_parameters_is_tried_again() {
    let lab = Lab::with("standard", 1, hasty()).await;
    lab.bmc()
        .add_fault(on_insertion("Cd", BmcFault::NoEffect).times(1));
    boot(&lab, &medium(IMAGE)).await.unwrap();
    assert_eq!(lab.bmc().images(), [("Cd", IMAGE.to_owned())]);
    let requests = lab.bmc().requests();
    let bodies = requests
        .iter()
        .filter(|it| it.path.ends_with("InsertMedia"))
        .map(|it| it.body["TransferProtocolType"].as_str());
    assert_eq!(bodies.collect::<Vec<_>>(), [None, Some("HTTP")]);
}

#[tokio::test]
async fn one_error_names_all_drives_and_that_the_host_is_off() {
    let lab = Lab::with("megarac", 1, hasty()).await;
    lab.bmc()
        .add_fault(BmcFaultRule::on("POST", "InsertMedia", BmcFault::NoEffect));
    let error = boot(&lab, &medium(IMAGE)).await.unwrap_err();
    assert_eq!(lab.bmc().power(), SimulatedPower::Off);
    assert_eq!(lab.bmc().boots(), []);
    assert!(
        matches!(
            error,
            BmcError::Step {
                step: BootStep::InsertMedium,
                power: Some(StoppedPower::Off),
                ..
            }
        ),
        "{error:?}"
    );
    let text = text(&error);
    for expected in [
        "CD1 (InsertMedia: accepted, and no medium afterwards",
        "CD2 (InsertMedia: accepted",
        "a write of its properties",
        "the host is off now",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    assert_eq!(text.matches("the host is off").count(), 1, "{text}");
}

#[tokio::test]
async fn a_drive_that_keeps_the_old_image_is_named() {
    let lab = Lab::with("megarac", 1, hasty()).await;
    lab.bmc().insert("CD1", OTHER_IMAGE);
    lab.bmc()
        .add_fault(BmcFaultRule::on("POST", "EjectMedia", BmcFault::NoEffect));
    let error = boot(&lab, &medium(IMAGE)).await.unwrap_err();
    let text = text(&error);
    assert!(
        text.contains("reads http://10.0.0.9:8888/images/other.iso instead of an empty drive CD1"),
        "{text}"
    );
    assert!(text.contains("the host is off now"), "{text}");
}

#[tokio::test]
async fn addresses_that_no_drive_loads_leave_the_host_on() {
    for family in ["standard", "idrac9", "xcc"] {
        let lab = Lab::with(family, 1, hasty()).await;
        for (address, expected) in [
            ("file:///x", "is a file of this machine"),
            ("s3://bucket/full.iso", "has the scheme s3"),
            ("nfs:///full.iso", "names no host"),
            ("http://10.0.0.9/", "names no file"),
            ("scp://10.0.0.9/full.iso", "by SCP"),
        ] {
            let error = boot(&lab, &medium(address)).await.unwrap_err();
            assert!(
                text(&error).contains(expected),
                "{family} {address}: {error}"
            );
            assert_eq!(lab.bmc().power(), SimulatedPower::On, "{family} {address}");
        }
        let uri = "nfs://10.0.0.9/boot.efi".parse().unwrap();
        let error = boot(&lab, &BootMedium::UefiHttp { uri }).await.unwrap_err();
        assert!(text(&error).contains("http or https"), "{family}: {error}");
        let changes = lab.bmc().requests().into_iter();
        let mut changes = changes.filter(|it| it.method != "GET" && !it.path.contains("Session"));
        assert!(changes.next().is_none(), "{family}");
    }
}

#[tokio::test]
async fn a_host_stays_on_while_remote_media_are_disabled() {
    let lab = Lab::with("megarac", 1, hasty()).await;
    lab.bmc()
        .add_fault(BmcFaultRule::always(BmcFault::RemoteMediaOff));
    let error = boot(&lab, &medium(IMAGE)).await.unwrap_err();
    let text = text(&error);
    assert!(text.contains("remote media support is disabled"), "{text}");
    assert!(
        text.contains("POST /redfish/v1/Managers/Self/Actions/Oem/AMIVirtualMedia.EnableRMedia"),
        "{text}"
    );
    assert_eq!(lab.bmc().power(), SimulatedPower::On);
    lab.bmc().clear_faults();
    boot(&lab, &medium(IMAGE)).await.unwrap();
    assert!(
        BmcProfile::find("megarac")
            .unwrap()
            .has_remote_media_setting
    );
}
