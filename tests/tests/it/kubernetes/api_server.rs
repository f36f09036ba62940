//! Every object is admitted, validated and stored by a kube-apiserver, which drops and warns about nothing.

use anyhow::{Context as _, Result, ensure};
use reqwest::Method;
use reqwest::header::WARNING;
use serde_json::{Value, json};
use system_tests::{ApiResponse, KubeApiServer, Scratch};

use super::rendered::{self, is_kind, title};
use super::{NAME_LABEL, OVERLAYS};

/// Unknown and duplicate fields are errors.
const STRICT: &str = "fieldValidation=Strict&fieldManager=test&force=true";

/// A namespace that refuses pods beyond the Pod Security Standard `restricted`, and warns about their templates.
async fn make_namespace(server: &KubeApiServer, name: &str) -> Result<()> {
    let labels = json!({
        "pod-security.kubernetes.io/enforce": "restricted",
        "pod-security.kubernetes.io/warn": "restricted",
    });
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name, "labels": labels },
    });
    let path = "/api/v1/namespaces";
    let answer = server.ask(Method::POST, path, Some(&namespace)).await?;
    ensure!(answer.status == 201, "{name}: {}", answer.text());
    Ok(())
}

/// Server-side apply, as `kubectl apply --server-side --validate=strict` sends it.
async fn apply(server: &KubeApiServer, namespace: &str, object: &Value) -> Result<ApiResponse> {
    let mut object = object.clone();
    object["metadata"]["namespace"] = namespace.into();
    let name = object["metadata"]["name"].as_str().context("no name")?;
    let resources = server.resources(&object, namespace).await?;
    let path = format!("{resources}/{name}?{STRICT}");
    server.ask(Method::PATCH, &path, Some(&object)).await
}

/// Whether the object was stored without a warning.
fn is_accepted(answer: &ApiResponse) -> bool {
    answer.status.is_success() && !answer.headers.contains_key(WARNING)
}

fn complaint(object: &Value, answer: &ApiResponse) -> String {
    let warnings: Vec<_> = answer.headers.get_all(WARNING).iter().collect();
    format!("{}: {warnings:?} {}", title(object), answer.text())
}

/// The pod of a workload's template.
fn pod(workload: &Value) -> Value {
    let template = &workload["spec"]["template"];
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": template["metadata"], "spec": template["spec"],
    });
    pod["metadata"]["name"] = workload["metadata"]["name"].clone();
    // Claims of a template get a volume of each pod from the controller.
    let claims = workload["spec"]["volumeClaimTemplates"].as_array();
    for claim in claims.into_iter().flatten() {
        let name = &claim["metadata"]["name"];
        let volume = json!({ "name": name, "persistentVolumeClaim": { "claimName": name } });
        if let Some(volumes) = pod["spec"]["volumes"].as_array_mut() {
            volumes.push(volume);
        }
    }
    pod
}

async fn is_created(server: &KubeApiServer, namespace: &str, objects: &[Value]) -> Result<()> {
    make_namespace(server, namespace).await?;
    for object in objects {
        let answer = apply(server, namespace, object).await?;
        ensure!(is_accepted(&answer), complaint(object, &answer));
        let created = answer.json()?;
        let again = apply(server, namespace, object).await?.json()?;
        // Otherwise the second `kubectl apply` would restart pods.
        let generation = |object: &Value| object["metadata"]["generation"].clone();
        ensure!(generation(&created) == generation(&again), "{again}");
    }
    let workloads = objects
        .iter()
        .filter(|object| object["spec"]["template"].is_object());
    for workload in workloads {
        let pod = pod(workload);
        let answer = apply(server, namespace, &pod).await?;
        ensure!(is_accepted(&answer), complaint(&pod, &answer));
    }
    Ok(())
}

/// An object of `objects`, with a value changed.
fn broken(objects: &[Value], kind: &str, pointer: &str, value: Value) -> Result<Value> {
    let object = objects.iter().find(|object| is_kind(object, kind));
    let mut object = object.with_context(|| format!("no {kind}"))?.clone();
    object["metadata"]["name"] = "broken".into();
    let (parent, member) = pointer.rsplit_once('/').context("no pointer")?;
    let place = object.pointer_mut(parent);
    let place = place.with_context(|| format!("{kind} has no {parent}"))?;
    place[member] = value;
    Ok(object)
}

/// Otherwise the test below may pass for no reason.
async fn are_refused(server: &KubeApiServer, namespace: &str, objects: &[Value]) -> Result<()> {
    let container = "/spec/template/spec/containers/0";
    for (kind, pointer, value) in [
        // An unknown field, which a lenient server drops.
        (
            "Deployment",
            format!("{container}/readynessProbe"),
            json!({}),
        ),
        // Rules beyond a schema.
        (
            "Deployment",
            "/spec/selector/matchLabels".into(),
            json!({ NAME_LABEL: "other" }),
        ),
        (
            "Deployment",
            format!("{container}/volumeMounts/0/name"),
            json!("absent"),
        ),
        ("Service", "/spec/ports/0/port".into(), json!(70_000)),
        (
            "HorizontalPodAutoscaler",
            "/spec/minReplicas".into(),
            json!(99),
        ),
        ("PodDisruptionBudget", "/spec/minAvailable".into(), json!(1)),
        (
            "NetworkPolicy",
            "/spec/policyTypes".into(),
            json!(["Outgress"]),
        ),
        // A warning only: the template's pods would be refused.
        (
            "Deployment",
            format!("{container}/securityContext/allowPrivilegeEscalation"),
            json!(true),
        ),
    ] {
        let object = broken(objects, kind, &pointer, value)?;
        let answer = apply(server, namespace, &object).await?;
        ensure!(!is_accepted(&answer), "{pointer} of {kind} is accepted");
    }
    let mut object = objects[0].clone();
    object["kind"] = "Unknown".into();
    ensure!(apply(server, namespace, &object).await.is_err());
    Ok(())
}

/// Of `--full`: kube-apiserver is compiled for it.
#[tokio::test]
#[ignore = "takes long: cargo xtask test --full compiles kube-apiserver"]
async fn a_kube_api_server_accepts_every_object() -> Result<()> {
    let Some(programs) = KubeApiServer::programs() else {
        return Ok(());
    };
    let scratch = Scratch::new()?;
    let server = KubeApiServer::start(&programs, scratch.path()).await?;
    for overlay in OVERLAYS {
        let Some(objects) = rendered::objects(overlay)? else {
            return Ok(());
        };
        is_created(&server, overlay, &objects)
            .await
            .with_context(|| overlay)?;
        if overlay == OVERLAYS[1] {
            are_refused(&server, overlay, &objects).await?;
        }
    }
    Ok(())
}
