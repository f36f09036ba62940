//! A server that answers with any JSON: the client ends, with a bounded number of requests.

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use redfish::{BootMedium, RedfishConnector, RedfishTiming, boot_from, finish_installation};
use serde_json::{Map, Value, json};
use testkit::wire::{Wire, answer};

use crate::lab::{IMAGE, access, hasty, text};

/// Requests of one login with all operations.
const MOST_REQUESTS: usize = 1500;

/// Names that the client reads.
const NAMES: &[&str] = &[
    "@odata.id",
    "@odata.etag",
    "@Message.ExtendedInfo",
    "error",
    "Members",
    "Members@odata.nextLink",
    "Systems",
    "Managers",
    "Links",
    "ManagedBy",
    "VirtualMedia",
    "MediaTypes",
    "Image",
    "Inserted",
    "ConnectedVia",
    "Actions",
    "#VirtualMedia.InsertMedia",
    "#VirtualMedia.EjectMedia",
    "target",
    "#ComputerSystem.Reset",
    "ResetType@Redfish.AllowableValues",
    "@Redfish.ActionInfo",
    "Parameters",
    "PowerState",
    "Boot",
    "BootSourceOverrideTarget",
    "BootSourceOverrideEnabled",
    "BootOrder",
    "BootOptions",
    "EthernetInterfaces",
    "MACAddress",
    "TaskState",
    "Oem",
    "Vendor",
];
/// Texts that mean something.
const TEXTS: &[&str] = &[
    "/redfish/v1/",
    "/redfish/v1/Systems/1",
    "/redfish/v1/a",
    "http://evil.example/x",
    "//evil.example",
    "On",
    "Off",
    "CD",
    "Cd",
    "Once",
    "Dell",
    "Supermicro",
    "ForceOff",
    "NotConnected",
    "Running",
    "Completed",
    "W/\"1\"",
    "full.iso",
    "",
];

fn any_document() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        proptest::sample::select(TEXTS).prop_map(Value::from),
    ];
    let nested = leaf.prop_recursive(5, 40, 6, |inner| {
        let pair = (proptest::sample::select(NAMES), inner.clone());
        prop_oneof![
            prop::collection::vec(inner, 0..5).prop_map(Value::from),
            prop::collection::vec(pair, 0..7).prop_map(|pairs| {
                Value::Object(
                    pairs
                        .into_iter()
                        .map(|(name, it)| (name.to_owned(), it))
                        .collect::<Map<_, _>>(),
                )
            }),
        ]
    });
    (prop::collection::vec((proptest::sample::select(NAMES), nested), 0..4)).prop_map(|pairs| {
        let link = |path: &str| json!({ "@odata.id": path });
        // One document that serves as each resource, so that operations get far.
        let mut body = json!({
            "Systems": link("/redfish/v1/Systems"),
            "Members": [link("/redfish/v1/Systems/1"), link("/redfish/v1/Systems/2")],
            "Links": { "ManagedBy": [link("/redfish/v1/Managers/1")] },
            "VirtualMedia": link("/redfish/v1/Media"),
            "EthernetInterfaces": link("/redfish/v1/Nics"),
            "MediaTypes": ["CD"],
            "Inserted": true,
            "Image": IMAGE,
            "PowerState": "Off",
            "Boot": { "BootSourceOverrideTarget": "Cd", "BootSourceOverrideEnabled": "Once",
                "BootOrder": ["Boot0001"], "BootOptions": link("/redfish/v1/Options") },
            "Actions": {
                "#ComputerSystem.Reset": { "target": "/redfish/v1/Reset" },
                "#VirtualMedia.InsertMedia": { "target": "/redfish/v1/Insert" },
                "#VirtualMedia.EjectMedia": { "target": "/redfish/v1/Eject" },
            },
        });
        for (name, value) in pairs {
            body[name] = value;
        }
        body
    })
}

#[test]
fn any_answers_end_in_an_error_or_a_result() {
    let statuses = [
        "200 OK",
        "200 OK",
        "200 OK",
        "202 Accepted",
        "204 No Content",
        "400 Bad Request",
        "412 Precondition Failed",
        "500 Internal Server Error",
    ];
    let exchange = (any_document(), proptest::sample::select(statuses.to_vec()));
    let script = prop::collection::vec(exchange, 1..8);
    let mut runner = TestRunner::new(ProptestConfig {
        cases: 48,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let checked = runner.run(&script, |script| {
        let requests = runtime.block_on(played(script));
        prop_assert!(requests < MOST_REQUESTS, "{} requests", requests);
        Ok(())
    });
    checked.unwrap();
}

/// Runs all operations against the answers in turn: the number of requests.
async fn played(script: Vec<(Value, &'static str)>) -> usize {
    let mut next = 0;
    let web = Wire::answering(move |head| {
        let (body, status) = &script[next % script.len()];
        next += 1;
        // Reads succeed more often, so that operations get further.
        let status = if head.starts_with("GET ") && next % 4 != 0 {
            "200 OK"
        } else {
            status
        };
        answer(status, "X-Auth-Token: t\r\n", &body.to_string())
    })
    .await;
    let timing = RedfishTiming {
        attempts: 2,
        settle: std::time::Duration::from_millis(12),
        power: std::time::Duration::from_millis(12),
        task: std::time::Duration::from_millis(12),
        ..hasty()
    };
    let connector = RedfishConnector::new(None, timing).unwrap();
    let access = access(
        &format!("http://{}", web.address),
        Some("/redfish/v1/Systems/1"),
    );
    let medium = BootMedium::VirtualMedia {
        image: IMAGE.parse().unwrap(),
        size_bytes: Some(1),
    };
    match connector.connect(&access).await {
        Err(error) => {
            text(&error);
        }
        Ok(mut bmc) => {
            let mut errors = Vec::new();
            errors.extend(bmc.inventory().await.err());
            errors.extend(boot_from(&mut bmc, &medium, |_| {}).await.err());
            errors.extend(finish_installation(&mut bmc, |_| {}).await.err());
            errors.extend(bmc.fence().await.err());
            for error in &errors {
                text(error);
            }
            bmc.close().await;
        }
    }
    web.requests().len()
}
