//! Credentials stay at the BMC: redirects, links, messages.

use host_sim::bmc::{BmcFault, BmcFaultRule};
use redfish::{BmcError, BootJob, BootMedium, BootTarget, boot_from};
use testkit::wire::{Wire, answer};

use crate::lab::{IMAGE, Lab, PASSWORD, hasty, text};

/// Runs everything against a BMC with a fault that names another server: the error, and the requests at that server.
async fn lured(rule: impl Fn(String) -> BmcFaultRule) -> (BmcError, Vec<String>) {
    let trap = Wire::answering(|_| answer("200 OK", "", "{}")).await;
    let lab = Lab::with("standard", 1, hasty()).await;
    lab.bmc()
        .add_fault(rule(format!("http://{}", trap.address)));
    let error = match lab.connect().await {
        Err(error) => error,
        Ok(mut bmc) => {
            let medium = BootMedium::VirtualMedia {
                image: IMAGE.parse().unwrap(),
                size_bytes: None,
            };
            let error = boot_from(&mut bmc, &medium, |_| {}).await.unwrap_err();
            bmc.close().await;
            error
        }
    };
    text(&error);
    (error, trap.requests())
}

#[tokio::test]
async fn redirects_to_other_hosts_are_not_followed() {
    for (method, path) in [
        ("GET", ""),
        ("GET", "/Systems/1"),
        ("GET", "/VirtualMedia"),
        ("POST", "/Sessions"),
        ("POST", "InsertMedia"),
        ("POST", "Reset"),
        ("PATCH", "/Systems/1"),
    ] {
        let (error, requests) = lured(|trap| {
            BmcFaultRule::on(
                method,
                path,
                BmcFault::Redirect(format!("{trap}/redfish/v1/")),
            )
        })
        .await;
        assert!(
            matches!(error.cause(), BmcError::Redirected { .. }),
            "{method} {path}: {error}"
        );
        assert_eq!(requests, Vec::<String>::new(), "{method} {path}");
    }
}

#[tokio::test]
async fn redirects_within_the_bmc_are_followed_up_to_a_bound() {
    let lab = Lab::with("standard", 1, hasty()).await;
    let rule = BmcFaultRule::on(
        "GET",
        "/Systems/1",
        BmcFault::Redirect("/redfish/v1/Systems/1".to_owned()),
    );
    // limit: redirects of one read
    lab.bmc().add_fault(rule.clone().times(3));
    lab.connect().await.unwrap().close().await;
    lab.bmc().add_fault(rule);
    let error = lab.connect().await.unwrap_err();
    assert!(text(&error).contains("more than 3 redirects"), "{error}");
}

#[tokio::test]
async fn links_to_other_hosts_are_not_followed() {
    for path in ["/redfish/v1/", "/Systems/1", "/VirtualMedia"] {
        let (error, requests) =
            lured(|trap| BmcFaultRule::on("GET", path, BmcFault::ForeignLinks(trap))).await;
        assert!(
            matches!(error.cause(), BmcError::ForeignLink { .. }),
            "{path}: {error}"
        );
        assert_eq!(requests, Vec::<String>::new(), "{path}");
    }
}

#[tokio::test]
async fn a_repeated_password_is_hidden() {
    for (method, path) in [
        ("POST", "Reset"),
        ("PATCH", "/Systems/1"),
        ("POST", "InsertMedia"),
    ] {
        let (error, _) = lured(|_| BmcFaultRule::on(method, path, BmcFault::RepeatsPassword)).await;
        let text = text(&error);
        assert!(text.contains("the password [hidden] of admin"), "{text}");
        assert!(!text.contains(PASSWORD));
    }
}

#[tokio::test]
async fn debug_output_has_no_tokens() {
    let lab = Lab::with("standard", 1, hasty()).await;
    let mut bmc = lab.connect().await.unwrap();
    let slot = bmc
        .insert_image(&IMAGE.parse().unwrap(), None)
        .await
        .unwrap();
    let image = BootMedium::VirtualMedia {
        image: IMAGE.parse().unwrap(),
        size_bytes: None,
    };
    let http = BootMedium::UefiHttp {
        uri: IMAGE.parse().unwrap(),
    };
    let target = BootTarget::UefiHttp(IMAGE.parse().unwrap());
    let job = BootJob(image.clone());
    for text in [
        format!("{bmc:?} {slot:?} {job:?} {image:?} {http:?} {target:?}"),
        format!("{:?} {:?}", lab.connector, lab.access(0)),
    ] {
        assert!(
            !text.contains("s3cret-token") && !text.contains(PASSWORD),
            "{text}"
        );
    }
    bmc.close().await;
}
