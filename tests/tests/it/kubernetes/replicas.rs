//! Services with replicas scale, and survive the drain of a node.

use anyhow::{Result, ensure};
use serde_json::Value;

use super::rendered::{is_kind, objects, title};

/// The object of a kind that names the service.
fn of<'a>(objects: &'a [Value], kind: &str, name: &str) -> Option<&'a Value> {
    objects
        .iter()
        .find(|object| is_kind(object, kind) && object["metadata"]["name"] == name)
}

#[test]
fn every_replicated_service_has_an_autoscaler_and_a_disruption_budget() -> Result<()> {
    let Some(objects) = objects("replicated")? else {
        return Ok(());
    };
    let deployments: Vec<_> = objects
        .iter()
        .filter(|object| is_kind(object, "Deployment"))
        .collect();
    assert_eq!(deployments.len(), 6);
    for deployment in deployments {
        let (name, spec) = (title(deployment), &deployment["spec"]);
        let short = deployment["metadata"]["name"].as_str().unwrap_or_default();
        // Each `kubectl apply` would reset the autoscaler's choice.
        ensure!(spec["replicas"].is_null(), "{name} fixes its replicas");
        let scaler = of(&objects, "HorizontalPodAutoscaler", short);
        let Some(scaler) = scaler.map(|scaler| &scaler["spec"]) else {
            anyhow::bail!("{name} has no autoscaler");
        };
        let target = &scaler["scaleTargetRef"];
        ensure!(
            target["name"] == short && target["kind"] == "Deployment",
            "{target}"
        );
        // Utilisation is a share of the request.
        let cpu = &spec["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"];
        ensure!(cpu.is_string(), "{name} requests no CPU time");
        let budget = of(&objects, "PodDisruptionBudget", short);
        let selector = budget.map(|budget| &budget["spec"]["selector"]["matchLabels"]);
        ensure!(
            selector == Some(&spec["template"]["metadata"]["labels"]),
            "{name}: {selector:?}"
        );
        // A volume of one node would bind all replicas to it.
        let volumes = spec["template"]["spec"]["volumes"].as_array();
        let claimed = volumes
            .into_iter()
            .flatten()
            .any(|volume| volume["persistentVolumeClaim"].is_object());
        ensure!(!claimed, "{name} claims a volume");
    }
    Ok(())
}

#[test]
fn services_lead_to_ports_of_their_pods() -> Result<()> {
    for overlay in super::OVERLAYS {
        let Some(objects) = objects(overlay)? else {
            return Ok(());
        };
        for service in objects.iter().filter(|object| is_kind(object, "Service")) {
            let selector = &service["spec"]["selector"];
            let workload = objects
                .iter()
                .find(|object| &object["spec"]["template"]["metadata"]["labels"] == selector);
            let name = title(service);
            let Some(workload) = workload else {
                anyhow::bail!("{name} selects no pods");
            };
            let container = &workload["spec"]["template"]["spec"]["containers"][0];
            let named = |port: &Value| {
                let ports = container["ports"].as_array();
                ports.into_iter().flatten().any(|it| &it["name"] == port)
            };
            for port in service["spec"]["ports"].as_array().into_iter().flatten() {
                ensure!(named(&port["targetPort"]), "{name}: {port}");
            }
        }
    }
    Ok(())
}
