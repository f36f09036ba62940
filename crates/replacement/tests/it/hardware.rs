//! Machines of a replacement by simulated BMCs.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex};

use host_sim::bmc::{BmcBootSource, BmcFault, BmcFaultRule, SimulatedPower};
use redfish::{BmcEvent, BootMedium, BootStep, RedfishConnector};
use replacement::NodeBmcs;
use replacement::{MachineSide, NodeHardware, NodePlace, PowerState, WorldError};

use crate::lab::{IMAGE, Lab, PASSWORD, access, families, hasty, patient};

const NODE: &str = "cp-1";

fn place() -> NodePlace {
    NodePlace {
        name: NODE.to_owned(),
        address: IpAddr::V4(Ipv4Addr::new(10, 0, 0, 21)),
    }
}

fn medium() -> BootMedium {
    BootMedium::VirtualMedia {
        image: IMAGE.parse().unwrap(),
        size_bytes: None,
    }
}

/// Old and new machine are the first one of the lab.
fn one_machine(lab: &Lab) -> NodeBmcs {
    NodeBmcs::new(&lab.connector)
        .with_machine(MachineSide::Old, lab.access(0))
        .with_machine(MachineSide::New, lab.access(0))
        .with_medium(medium())
}

/// The text of an error, which must not show any secret.
fn text(error: &WorldError) -> String {
    let text = error.to_string();
    for secret in [PASSWORD, "s3cret-token", "admin"] {
        assert!(!format!("{text}{error:?}").contains(secret), "{text}");
    }
    text
}

fn image() -> BmcBootSource {
    BmcBootSource::VirtualCd(IMAGE.to_owned())
}

#[tokio::test]
async fn a_machine_is_fenced_booted_and_left_to_its_disk() {
    for family in families() {
        let lab = Lab::of(family, 1).await;
        let bmc = lab.bmc();
        let machines = one_machine(&lab);
        assert!(machines.boots());
        bmc.set_power(SimulatedPower::On);
        let power = machines.power(MachineSide::Old, &place()).await.unwrap();
        assert_eq!(power, Some(PowerState::On), "{family}");
        for _ in 0..2 {
            machines.power_off(&place()).await.unwrap();
            assert_eq!(bmc.power(), SimulatedPower::Off, "{family}");
        }
        let power = machines.power(MachineSide::Old, &place()).await.unwrap();
        assert_eq!(power, Some(PowerState::Off), "{family}");
        for boots in 1..=2 {
            machines.boot(&place()).await.unwrap();
            assert_eq!(bmc.boots(), vec![image(); boots], "{family}");
        }
        for _ in 0..2 {
            machines.eject(&place()).await.unwrap();
            assert_eq!(bmc.images(), [], "{family}");
        }
        assert_eq!(bmc.boots().len(), 2, "{family}: a restart by the eject");
        assert_eq!(bmc.power(), SimulatedPower::On, "{family}");
        assert_eq!(bmc.open_sessions(), 0, "{family}");
    }
}

#[tokio::test]
async fn uefi_http_boots_too() {
    let lab = Lab::of("standard", 1).await;
    let uri = "http://10.0.0.9/boot.efi";
    let machines = one_machine(&lab).with_medium(BootMedium::UefiHttp {
        uri: uri.parse().unwrap(),
    });
    machines.boot(&place()).await.unwrap();
    assert_eq!(
        lab.bmc().boots(),
        [BmcBootSource::Http(Some(uri.to_owned()))]
    );
}

#[tokio::test]
async fn a_state_that_is_not_surely_off_is_on() {
    let lab = Lab::of("standard", 1).await;
    let machines = one_machine(&lab);
    for (state, expected) in [
        (SimulatedPower::Off, PowerState::Off),
        (SimulatedPower::On, PowerState::On),
        (SimulatedPower::PoweringOff, PowerState::On),
        (SimulatedPower::PoweringOn, PowerState::On),
    ] {
        lab.bmc().set_power(state);
        let power = machines.power(MachineSide::Old, &place()).await.unwrap();
        assert_eq!(power, Some(expected), "{state:?}");
    }
}

#[tokio::test]
async fn an_entry_before_the_disk_is_reported_without_a_restart() {
    let lab = Lab::of("standard", 1).await;
    let events = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&events);
    let machines = one_machine(&lab).with_receiver(move |node, event| {
        assert_eq!(node, NODE);
        seen.lock().unwrap().push(event);
    });
    machines.boot(&place()).await.unwrap();
    lab.bmc().set_cd_first(true);
    machines.eject(&place()).await.unwrap();
    assert_eq!((lab.bmc().boots().len(), lab.bmc().images().len()), (1, 0));
    let events = events.lock().unwrap();
    assert!(events.contains(&BmcEvent::Step(BootStep::ReadBootOrder)));
    let warning = events.iter().find_map(|event| match event {
        BmcEvent::Warning(text) => Some(text.clone()),
        _ => None,
    });
    assert!(warning.unwrap().contains("before the disk"));
}

#[tokio::test]
async fn without_a_bmc_or_an_image_a_person_acts() {
    let lab = Lab::of("standard", 1).await;
    let machines = NodeBmcs::new(&lab.connector).with_medium(medium());
    assert!(!machines.boots());
    let power = machines.power(MachineSide::New, &place()).await.unwrap();
    assert_eq!(power, None);
    machines.power_off(&place()).await.unwrap();
    machines.boot(&place()).await.unwrap();
    machines.eject(&place()).await.unwrap();
    let machines = NodeBmcs::new(&lab.connector).with_machine(MachineSide::New, lab.access(0));
    assert!(!machines.boots());
    machines.boot(&place()).await.unwrap();
    assert_eq!(lab.bmc().requests(), []);
}

#[tokio::test]
async fn the_old_machine_is_fenced_and_another_one_boots() {
    let lab = Lab::of("standard", 2).await;
    let [old, new] = lab.rack.bmcs() else {
        panic!("two BMCs");
    };
    let machines = NodeBmcs::new(&lab.connector)
        .with_machine(MachineSide::Old, lab.access(0))
        .with_machine(MachineSide::New, lab.access(1))
        .with_medium(medium());
    old.set_power(SimulatedPower::On);
    new.set_power(SimulatedPower::Off);
    for (side, expected) in [
        (MachineSide::Old, PowerState::On),
        (MachineSide::New, PowerState::Off),
    ] {
        let power = machines.power(side, &place()).await.unwrap();
        assert_eq!(power, Some(expected), "{side:?}");
    }
    machines.power_off(&place()).await.unwrap();
    assert_eq!(old.power(), SimulatedPower::Off);
    machines.boot(&place()).await.unwrap();
    machines.eject(&place()).await.unwrap();
    assert_eq!((old.boots(), new.boots()), (vec![], vec![image()]));
    assert_eq!(old.power(), SimulatedPower::Off);
}

#[tokio::test]
async fn an_unreachable_bmc_may_come_back() {
    let port = testkit::ports::free_port().unwrap();
    let absent = access(&format!("https://127.0.0.1:{port}"), None);
    let connector = RedfishConnector::new(None, hasty()).unwrap();
    let machines = NodeBmcs::new(&connector)
        .with_machine(MachineSide::Old, absent.clone())
        .with_machine(MachineSide::New, absent)
        .with_medium(medium());
    for result in [
        machines.power(MachineSide::Old, &place()).await.map(|_| ()),
        machines.power_off(&place()).await,
        machines.boot(&place()).await,
        machines.eject(&place()).await,
    ] {
        let error = result.unwrap_err();
        assert!(error.is_transient, "{error}");
        let text = text(&error);
        assert!(
            text.contains(NODE) && text.contains(&format!("127.0.0.1:{port}")),
            "{text}"
        );
    }
}

#[tokio::test]
async fn failures_of_a_bmc_pass_and_operations_are_repeated() {
    let lab = Lab::with("standard", 1, hasty()).await;
    let machines = one_machine(&lab);
    lab.bmc().set_power(SimulatedPower::On);
    lab.bmc()
        .add_fault(BmcFaultRule::on("POST", "Reset", BmcFault::NoEffect));
    let error = machines.power_off(&place()).await.unwrap_err();
    assert!(error.is_transient, "{error}");
    lab.bmc().clear_faults();
    machines.power_off(&place()).await.unwrap();
    lab.bmc().add_fault(BmcFaultRule::on(
        "POST",
        "InsertMedia",
        BmcFault::Status(500),
    ));
    let error = machines.boot(&place()).await.unwrap_err();
    assert!(error.is_transient, "{error}");
    assert!(text(&error).contains("insert the medium"), "{error}");
    lab.bmc().clear_faults();
    machines.boot(&place()).await.unwrap();
    assert_eq!(lab.bmc().boots(), [image()]);
    assert_eq!(lab.bmc().open_sessions(), 0);
}

#[tokio::test]
async fn a_refused_password_is_sent_once_in_all_operations() {
    for family in families() {
        let lab = Lab::with(family, 1, patient()).await;
        let mut access = lab.access(0);
        access.credentials.password = "wrong".into();
        let machines = NodeBmcs::new(&lab.connector)
            .with_machine(MachineSide::Old, access.clone())
            .with_machine(MachineSide::New, access)
            .with_medium(medium());
        let place = place();
        let (one, two) = tokio::join!(
            machines.power(MachineSide::Old, &place),
            machines.power(MachineSide::New, &place)
        );
        for result in [
            one.map(|_| ()),
            two.map(|_| ()),
            machines.power_off(&place).await,
            machines.boot(&place).await,
        ] {
            let error = result.unwrap_err();
            assert!(!error.is_transient, "{family}: {error}");
            let text = text(&error);
            assert!(text.contains("correct the secret"), "{family}: {text}");
        }
        assert_eq!(lab.bmc().refused_logins(), 1, "{family}");
    }
}

#[tokio::test]
async fn another_certificate_gets_no_credentials() {
    let lab = Lab::with("standard", 1, hasty()).await;
    lab.bmc()
        .add_fault(BmcFaultRule::always(BmcFault::OtherCertificate));
    let machines = one_machine(&lab);
    for result in [
        machines.power(MachineSide::Old, &place()).await.map(|_| ()),
        machines.power_off(&place()).await,
    ] {
        let error = result.unwrap_err();
        assert!(!error.is_transient, "{error}");
        assert!(text(&error).contains("not trusted"), "{error}");
    }
    assert_eq!(lab.bmc().requests(), []);
}
