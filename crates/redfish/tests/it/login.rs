//! Logins: sessions, fallback, expiry, certificates.

use host_sim::bmc::{BmcFault, BmcFaultRule, CredentialUse};
use redfish::{BmcError, PowerAction, RedfishConnector};
use testkit::wire::Wire;

use crate::lab::{Lab, families, hasty, patient, text};

#[tokio::test]
async fn a_wrong_password_is_sent_once() {
    for family in families() {
        let lab = Lab::of(family, 1).await;
        let mut access = lab.access(0);
        access.credentials.password = "wrong".into();
        let error = lab.connector.connect(&access).await.unwrap_err();
        assert!(
            matches!(error, BmcError::Unauthenticated { .. }),
            "{family} {error}"
        );
        assert_eq!(lab.bmc().refused_logins(), 1, "{family}");
    }
}

#[tokio::test]
async fn the_root_is_read_without_credentials() {
    let lab = Lab::of("standard", 1).await;
    let bmc = lab.connect().await.unwrap();
    bmc.close().await;
    let requests = lab.bmc().requests();
    assert_eq!(requests[0].credentials, CredentialUse::None);
    assert!(
        requests[2..]
            .iter()
            .all(|it| it.credentials == CredentialUse::Session)
    );
    assert_eq!(requests.last().unwrap().method, "DELETE");
}

#[tokio::test]
async fn bmcs_without_usable_sessions_get_the_password() {
    for status in [400, 403, 404, 405, 501] {
        let lab = Lab::with("standard", 1, hasty()).await;
        lab.bmc().add_fault(BmcFaultRule::on(
            "POST",
            "/Sessions",
            BmcFault::Status(status),
        ));
        let mut bmc = lab.connect().await.unwrap();
        bmc.power(PowerAction::On).await.unwrap();
        bmc.close().await;
        let requests = lab.bmc().requests();
        let basic = requests
            .iter()
            .filter(|it| it.credentials == CredentialUse::Basic);
        assert!(basic.count() > 2, "{status}");
        assert_eq!(lab.bmc().refused_logins(), 0, "{status}");
    }
}

#[tokio::test]
async fn an_expired_session_is_replaced_once() {
    let lab = Lab::of("standard", 1).await;
    let mut bmc = lab.connect().await.unwrap();
    lab.bmc().end_sessions();
    bmc.power(PowerAction::On).await.unwrap();
    assert_eq!(lab.bmc().opened_sessions(), 2);
    lab.bmc().end_sessions();
    bmc.power(PowerAction::ForceOff).await.unwrap();
    assert_eq!(lab.bmc().opened_sessions(), 3);
    // From here on, no session lasts.
    lab.bmc().add_fault(BmcFaultRule::on(
        "GET",
        "/Systems",
        BmcFault::ForgetsSession,
    ));
    let error = bmc.power(PowerAction::On).await.unwrap_err();
    assert!(matches!(error, BmcError::Unauthenticated { .. }), "{error}");
    assert_eq!(lab.bmc().opened_sessions(), 4);
    bmc.close().await;
}

#[tokio::test]
async fn a_session_that_is_never_accepted_is_not_replaced() {
    let lab = Lab::of("standard", 1).await;
    lab.bmc()
        .add_fault(BmcFaultRule::on("GET", "/Systems", BmcFault::Status(401)));
    let error = lab.connect().await.unwrap_err();
    assert!(matches!(error, BmcError::Unauthenticated { .. }), "{error}");
    assert_eq!(
        (lab.bmc().opened_sessions(), lab.bmc().open_sessions()),
        (1, 0)
    );
}

#[tokio::test]
async fn a_dropped_login_ends_its_session() {
    let lab = Lab::of("standard", 1).await;
    let bmc = lab.connect().await.unwrap();
    assert_eq!(lab.bmc().open_sessions(), 1);
    drop(bmc);
    while lab.bmc().open_sessions() > 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn only_trusted_certificates_get_credentials() {
    let lab = Lab::with("standard", 1, hasty()).await;
    let system_roots = RedfishConnector::new(None, hasty()).unwrap();
    let error = system_roots.connect(&lab.access(0)).await.unwrap_err();
    assert!(matches!(error, BmcError::Untrusted { .. }), "{error}");
    assert!(
        text(&error).contains("disableCertificateVerification"),
        "{error}"
    );
    assert_eq!(lab.bmc().requests(), []);
    // The record gives up verification.
    let mut access = lab.access(0);
    access.verifies_certificate = false;
    system_roots.connect(&access).await.unwrap().close().await;
    lab.bmc().clear_requests();
    // The certificate of another host, of the right authority.
    lab.bmc()
        .add_fault(BmcFaultRule::always(BmcFault::OtherCertificate));
    let error = lab.connect().await.unwrap_err();
    assert!(matches!(error, BmcError::Untrusted { .. }), "{error}");
    assert_eq!(lab.bmc().requests(), []);
}

#[tokio::test]
async fn a_host_that_is_no_bmc_gets_no_credentials() {
    for page in ["<html></html>", "{}", "[]", "{\"Systems\":{}}"] {
        let web = Wire::answering(move |_| testkit::wire::answer("200 OK", "", page)).await;
        let connector = RedfishConnector::new(None, patient()).unwrap();
        let access = crate::lab::access(&format!("http://{}", web.address), None);
        let error = connector.connect(&access).await.unwrap_err();
        assert!(
            matches!(error, BmcError::Unreadable { .. }),
            "{page}: {error}"
        );
        assert!(
            web.requests()
                .iter()
                .all(|head| !testkit::wire::has_login(head)),
            "{page}"
        );
        assert_eq!(web.requests().len(), 1, "{page}");
    }
}

#[tokio::test]
async fn an_absent_bmc_is_unreachable() {
    let connector = RedfishConnector::new(None, hasty()).unwrap();
    let port = testkit::ports::free_port().unwrap();
    let access = crate::lab::access(&format!("https://127.0.0.1:{port}"), None);
    let error = connector.connect(&access).await.unwrap_err();
    assert!(matches!(error, BmcError::Unreachable { .. }), "{error}");
}
