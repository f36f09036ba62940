//! Every fault ends in the right error after a bounded number of requests, or is overcome.

use host_sim::bmc::{BmcFault, BmcFaultRule, SimulatedPower};
use redfish::{
    BmcError, BootMedium, BootStep, PowerAction, RedfishTiming, boot_from, finish_installation,
};

use crate::lab::{IMAGE, Lab, hasty, patient, text};

/// Requests of one boot without faults, with room for repetitions.
const MOST_REQUESTS: usize = 150;

fn medium() -> BootMedium {
    BootMedium::VirtualMedia {
        image: IMAGE.parse().unwrap(),
        size_bytes: None,
    }
}

/// Boots a host that is on, by a BMC with a fault.
async fn boot(timing: RedfishTiming, rule: BmcFaultRule) -> (Lab, Result<(), BmcError>) {
    let lab = Lab::with("standard", 1, timing).await;
    lab.bmc().set_power(SimulatedPower::On);
    lab.bmc().add_fault(rule);
    let result = match lab.connect().await {
        Err(error) => Err(error),
        Ok(mut bmc) => {
            let result = boot_from(&mut bmc, &medium(), |_| {}).await;
            bmc.close().await;
            result
        }
    };
    let requests = lab.bmc().requests().len();
    assert!(requests < MOST_REQUESTS, "{requests} requests");
    (lab, result)
}

/// The error of a boot, which names its step and shows no secret.
async fn failure(rule: BmcFaultRule) -> BmcError {
    let (lab, result) = boot(hasty(), rule.clone()).await;
    assert_eq!(lab.bmc().boots(), [], "{rule:?}");
    let error = result.unwrap_err();
    text(&error);
    error
}

fn step(error: &BmcError) -> Option<BootStep> {
    match error {
        BmcError::Step { step, .. } => Some(*step),
        _ => None,
    }
}

#[tokio::test]
async fn faults_that_pass_are_overcome() {
    use BmcFault::{
        Busy, Dropped, DroppedAfter, ForgetsOverride, ForgetsSession, SlowTask, Status, Truncated,
    };
    for rule in [
        BmcFaultRule::always(Busy(0)).times(2),
        BmcFaultRule::always(Status(429)).times(2),
        BmcFaultRule::on("GET", "", Status(500)).times(2),
        BmcFaultRule::on("GET", "", Status(502)).times(2),
        BmcFaultRule::on("GET", "", Dropped).times(2),
        BmcFaultRule::on("GET", "", Truncated).times(2),
        BmcFaultRule::on("GET", "/VirtualMedia", Dropped).times(2),
        BmcFaultRule::on("POST", "InsertMedia", Status(500)).times(2),
        BmcFaultRule::on("POST", "InsertMedia", Busy(0)).times(2),
        BmcFaultRule::on("POST", "InsertMedia", SlowTask(5)),
        BmcFaultRule::on("POST", "InsertMedia", DroppedAfter),
        BmcFaultRule::on("POST", "Reset", DroppedAfter),
        BmcFaultRule::on("PATCH", "/Systems", DroppedAfter),
        BmcFaultRule::on("POST", "Reset", Status(409)).times(1),
        BmcFaultRule::on("POST", "Reset", ForgetsSession).times(1),
        BmcFaultRule::always(ForgetsOverride),
        BmcFaultRule::on("GET", "/VirtualMedia", ForgetsSession).times(1),
        BmcFaultRule::on("GET", "/Systems/1", Status(503)).times(3),
    ] {
        let (lab, result) = boot(patient(), rule.clone()).await;
        assert!(result.is_ok(), "{rule:?}: {result:?}");
        assert_eq!(lab.bmc().boots().len(), 1, "{rule:?}");
        assert_eq!(lab.bmc().open_sessions(), 0, "{rule:?}");
    }
}

#[tokio::test]
async fn refusals_name_the_step_and_the_reason() {
    use BmcFault::Status;
    for (method, path, expected) in [
        ("GET", "/VirtualMedia/Cd", BootStep::Check),
        ("POST", "Reset", BootStep::PowerOff),
        ("POST", "InsertMedia", BootStep::InsertMedium),
        ("PATCH", "/Systems/1", BootStep::SetBootSource),
    ] {
        for status in [400, 403, 404, 405, 500] {
            let error = failure(BmcFaultRule::on(method, path, Status(status))).await;
            assert_eq!(
                step(&error),
                Some(expected),
                "{method} {path} {status}: {error}"
            );
            let is_named = match (status, error.cause()) {
                (403, BmcError::Forbidden { reason, .. }) => {
                    reason.contains("a fault was asked for")
                }
                (404, BmcError::NotFound { path: missing, .. }) => missing.contains("/redfish/v1/"),
                (404, BmcError::Unsupported { .. }) => path == "/VirtualMedia/Cd",
                (
                    _,
                    BmcError::Refused {
                        status: seen,
                        reason,
                        ..
                    },
                ) => *seen == status && reason.contains("a fault was asked for"),
                _ => false,
            };
            assert!(is_named, "{method} {path} {status}: {error:?}");
        }
    }
}

#[tokio::test]
async fn bmcs_that_stay_busy_are_left() {
    let (lab, result) = boot(
        hasty(),
        BmcFaultRule::on("POST", "Reset", BmcFault::Busy(0)),
    )
    .await;
    assert!(matches!(
        result.unwrap_err().cause(),
        BmcError::Busy { status: 503, .. }
    ));
    let sent = |lab: &Lab| {
        lab.bmc()
            .requests()
            .iter()
            .filter(|it| it.path.contains("Reset"))
            .count()
    };
    assert_eq!(sent(&lab), 3);
    // A longer wait than is granted.
    let (lab, result) = boot(
        hasty(),
        BmcFaultRule::on("POST", "Reset", BmcFault::Busy(3600)),
    )
    .await;
    assert!(matches!(result.unwrap_err().cause(), BmcError::Busy { .. }));
    assert_eq!(sent(&lab), 1);
}

#[tokio::test]
async fn silent_bmcs_are_left_after_all_attempts() {
    let timing = RedfishTiming {
        answer: std::time::Duration::from_millis(500),
        ..hasty()
    };
    let (lab, result) = boot(
        timing,
        BmcFaultRule::on("GET", "/Systems", BmcFault::Silent),
    )
    .await;
    let error = result.unwrap_err();
    assert!(matches!(error, BmcError::Interrupted { .. }), "{error}");
    assert!(text(&error).contains("no answer in time"), "{error}");
    let reads = lab
        .bmc()
        .requests()
        .iter()
        .filter(|it| it.path.contains("/Systems"))
        .count();
    assert_eq!(reads, 3);
}

#[tokio::test]
async fn accepted_requests_without_effect_are_found_out() {
    for (method, path, expected) in [
        ("POST", "Reset", BootStep::PowerOff),
        ("POST", "InsertMedia", BootStep::InsertMedium),
        ("PATCH", "/Systems/1", BootStep::SetBootSource),
    ] {
        let error = failure(BmcFaultRule::on(method, path, BmcFault::NoEffect)).await;
        assert_eq!(step(&error), Some(expected), "{error}");
        assert!(
            matches!(
                error.cause(),
                BmcError::NotApplied { .. } | BmcError::NotInserted { .. }
            ),
            "{error}"
        );
    }
    let lab = Lab::with("standard", 1, hasty()).await;
    lab.bmc().set_power(SimulatedPower::On);
    lab.bmc().insert("Cd", IMAGE);
    lab.bmc()
        .add_fault(BmcFaultRule::always(BmcFault::NoEffect));
    let mut bmc = lab.connect().await.unwrap();
    let ejected = finish_installation(&mut bmc, |_| {}).await.unwrap_err();
    assert_eq!(step(&ejected), Some(BootStep::EjectMedium), "{ejected}");
    assert!(text(&ejected).contains("full.iso"), "{ejected}");
    let fenced = bmc.fence().await.unwrap_err();
    assert!(matches!(fenced, BmcError::NotApplied { .. }), "{fenced}");
    bmc.close().await;
}

#[tokio::test]
async fn actions_that_may_have_happened_are_judged_by_the_state() {
    let error = failure(BmcFaultRule::on("POST", "InsertMedia", BmcFault::Dropped)).await;
    assert!(
        matches!(error.cause(), BmcError::NotInserted { .. }),
        "{error}"
    );
    assert!(text(&error).contains("broke off"), "{error}");
    // One action is not sent twice.
    let rule = BmcFaultRule::on("POST", "Reset", BmcFault::Dropped);
    let (lab, result) = boot(hasty(), rule).await;
    assert!(matches!(
        result.unwrap_err().cause(),
        BmcError::NotApplied { .. }
    ));
    let resets = lab
        .bmc()
        .requests()
        .iter()
        .filter(|it| it.path.contains("Reset"))
        .count();
    assert_eq!(resets, 1);
}

#[tokio::test]
async fn failed_and_endless_tasks_end() {
    let error = failure(BmcFaultRule::on(
        "POST",
        "InsertMedia",
        BmcFault::FailedTask,
    ))
    .await;
    let BmcError::TaskFailed { state, reason, .. } = error.cause() else {
        panic!("{error}");
    };
    assert_eq!(
        (state.as_str(), reason.as_str()),
        ("Exception", "the image cannot be loaded")
    );
    let error = failure(BmcFaultRule::on(
        "POST",
        "InsertMedia",
        BmcFault::SlowTask(u32::MAX),
    ))
    .await;
    assert!(
        matches!(error.cause(), BmcError::TaskTimeout { .. }),
        "{error}"
    );
}

#[tokio::test]
async fn images_that_stay_named_count_as_ejected() {
    let lab = Lab::of("standard", 1).await;
    lab.bmc().insert("Cd", IMAGE);
    lab.bmc()
        .add_fault(BmcFaultRule::on("POST", "EjectMedia", BmcFault::KeepsImage));
    let mut bmc = lab.connect().await.unwrap();
    bmc.eject_images().await.unwrap();
    assert!(!bmc.media().await.unwrap()[0].is_inserted);
    bmc.close().await;
}

#[tokio::test]
async fn a_refused_eject_of_an_image_is_reported() {
    let lab = Lab::with("standard", 1, hasty()).await;
    lab.bmc().insert("Cd", IMAGE);
    lab.bmc().add_fault(BmcFaultRule::on(
        "POST",
        "EjectMedia",
        BmcFault::Status(400),
    ));
    let mut bmc = lab.connect().await.unwrap();
    let error = bmc.eject_images().await.unwrap_err();
    assert!(
        matches!(error, BmcError::Refused { status: 400, .. }),
        "{error}"
    );
    bmc.close().await;
}

#[tokio::test]
async fn unreadable_answers_are_refused() {
    for (fault, expected) in [
        (BmcFault::Page, "not Redfish"),
        (BmcFault::HalfDocument, "not Redfish"),
        (BmcFault::Nested(128), "not Redfish"),
        (BmcFault::Endless, "more than 1048576 bytes"),
        (BmcFault::Sized((1 << 20) + 1), "more than 1048576 bytes"),
        (BmcFault::Truncated, "broke off"),
    ] {
        let error = failure(BmcFaultRule::on("GET", "/Systems/1", fault.clone())).await;
        assert!(text(&error).contains(expected), "{fault:?}: {error}");
    }
}

#[tokio::test]
async fn answers_at_the_bounds_are_read() {
    for fault in [BmcFault::Sized(1 << 20), BmcFault::Nested(127)] {
        let lab = Lab::of("standard", 1).await;
        lab.bmc().add_fault(BmcFaultRule::on(
            "GET",
            "/EthernetInterfaces",
            fault.clone(),
        ));
        let mut bmc = lab.connect().await.unwrap();
        let inventory = bmc.inventory().await.unwrap();
        assert_eq!(inventory.nics, [], "{fault:?}");
        bmc.close().await;
    }
}

#[tokio::test]
async fn endless_collections_are_cut() {
    let lab = Lab::of("standard", 1).await;
    lab.bmc().add_fault(BmcFaultRule::on(
        "GET",
        "/EthernetInterfaces",
        BmcFault::EndlessPages,
    ));
    let mut bmc = lab.connect().await.unwrap();
    let inventory = bmc.inventory().await.unwrap();
    // Eight pages of two members.
    assert_eq!(inventory.nics.len(), 16);
    bmc.close().await;
}

#[tokio::test]
async fn a_shutdown_that_the_system_ignores_is_reported() {
    let lab = Lab::with("standard", 1, hasty()).await;
    lab.bmc().set_power(SimulatedPower::On);
    lab.bmc()
        .add_fault(BmcFaultRule::on("POST", "Reset", BmcFault::NoEffect));
    let mut bmc = lab.connect().await.unwrap();
    let error = bmc.power(PowerAction::GracefulShutdown).await.unwrap_err();
    assert!(
        text(&error).contains("shut down, but reads on instead of off"),
        "{error}"
    );
    bmc.close().await;
}
