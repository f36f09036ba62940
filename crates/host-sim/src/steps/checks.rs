//! Steps that check the machine itself.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;
use uuid::Uuid;

use super::arguments::{is_image, only_json};
use super::reply::StepReply;
use crate::HostFault;
use crate::machine::Machine;

/// Simulated time of measuring the disk and of pulling one image.
const DISK_TEST_TIME: Duration = Duration::from_secs(30);
const PULL_TIME: Duration = Duration::from_secs(8);

/// Exit code of the image check when any pull failed.
const SOME_PULL_FAILED: i64 = 2;

pub(super) fn inventory(machine: &Arc<Machine>, args: &[String]) -> Result<StepReply, String> {
    let is_option =
        |arg: &str| arg.starts_with("--output-max-size=") || arg.starts_with("--disk-min-size=");
    let (options, ids): (Vec<_>, Vec<_>) = args.iter().partition(|arg| is_option(arg));
    let [id] = ids.as_slice() else {
        return Err(format!("one host id is expected: {args:?}"));
    };
    if id.parse::<Uuid>() != Ok(machine.hardware.host_id) {
        return Err(format!("{id:?} is not the id of this host"));
    }
    for option in options {
        if option
            .split_once('=')
            .is_none_or(|(_, size)| size.parse::<u64>().is_err())
        {
            return Err(format!("{option:?} has no number"));
        }
    }
    Ok(StepReply::json(&machine.hardware.inventory()))
}

#[derive(Deserialize)]
struct DiskSpeedRequest {
    path: String,
}

pub(super) async fn disk_speed(
    machine: &Arc<Machine>,
    args: &[String],
) -> Result<StepReply, String> {
    let [request, seconds] = args else {
        return Err(format!(
            "a request and a number of seconds are expected: {args:?}"
        ));
    };
    let request: DiskSpeedRequest = serde_json::from_str(request)
        .map_err(|e| format!("argument {request:?} does not fit: {e}"))?;
    if seconds.parse::<f64>().is_err() {
        return Err(format!("{seconds:?} is not a number of seconds"));
    }
    if !machine.hardware.has_disk(&request.path) {
        return Err(format!("this machine has no disk {:?}", request.path));
    }
    machine.world.pace.sleep(DISK_TEST_TIME).await;
    let duration = if machine.hardware.has(HostFault::Speed) {
        47
    } else {
        2
    };
    Ok(StepReply::json(
        &json!({ "path": request.path, "io_sync_duration": duration }),
    ))
}

#[derive(Deserialize)]
struct ImagesRequest {
    images: Vec<String>,
    timeout: Option<u64>,
}

pub(super) async fn images(machine: &Arc<Machine>, args: &[String]) -> Result<StepReply, String> {
    let request: ImagesRequest = only_json(args)?;
    if request.timeout == Some(0) {
        return Err("a timeout of 0 seconds leaves no time to pull".into());
    }
    if let Some(bad) = request.images.iter().find(|image| !is_image(image)) {
        return Err(format!("{bad:?} is no image"));
    }
    let fails = machine.hardware.has(HostFault::Images);
    let mut images = Vec::new();
    for (position, image) in (1_u32..).zip(&request.images) {
        machine.world.pace.sleep(PULL_TIME).await;
        images.push(if fails {
            json!({ "name": image, "result": "failure" })
        } else {
            let size = 310e6 + 27e6 * f64::from(position);
            let seconds = size / 98e6;
            json!({ "name": image, "result": "success", "size_bytes": size, "time": seconds, "download_rate": 98.0 })
        });
    }
    let exit_code = if fails && !images.is_empty() {
        SOME_PULL_FAILED
    } else {
        0
    };
    Ok(StepReply {
        exit_code,
        ..StepReply::json(&json!({ "images": images }))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::steps::tests::{args, machine_with};

    fn output(reply: &StepReply) -> Value {
        serde_json::from_str(&reply.output).unwrap()
    }

    #[test]
    fn the_inventory_takes_its_id_and_sizes() {
        let machine = machine_with(&[]);
        let id = machine.hardware.host_id.to_string();
        let reply = inventory(&machine, &args(&[&id, "--output-max-size=1000"])).unwrap();
        assert_eq!(output(&reply)["hostname"], "master-0");
        assert!(inventory(&machine, &args(&[&Uuid::nil().to_string()])).is_err());
        assert!(inventory(&machine, &args(&[&id, "--disk-min-size=x"])).is_err());
    }

    #[tokio::test]
    async fn slow_disks_are_reported() {
        for (faults, is_fast) in [(&[][..], true), (&[HostFault::Speed][..], false)] {
            let machine = machine_with(faults);
            let request = json!({ "path": machine.hardware.disk_by_id() }).to_string();
            let reply = disk_speed(&machine, &args(&[&request, "480.00"]))
                .await
                .unwrap();
            assert_eq!(
                output(&reply)["io_sync_duration"].as_u64().unwrap() < 10,
                is_fast
            );
        }
    }

    #[tokio::test]
    async fn failed_pulls_are_reported() {
        let request = r#"{"images":["r:5000/a@sha256:00","q.io/b:1"],"timeout":960}"#;
        let good = images(&machine_with(&[]), &args(&[request])).await.unwrap();
        assert_eq!(
            (
                good.exit_code,
                output(&good)["images"].as_array().unwrap().len()
            ),
            (0, 2)
        );
        let bad = images(&machine_with(&[HostFault::Images]), &args(&[request]))
            .await
            .unwrap();
        assert_eq!(
            (bad.exit_code, &output(&bad)["images"][1]["result"]),
            (SOME_PULL_FAILED, &json!("failure"))
        );
    }
}
