//! deploy/kubernetes and compose.yaml run the same: images, users, ports, variables, memory.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use system_tests::pod::{Compose, Service, Variables};

/// Variables of compose.yaml that other PostgreSQL images read, or that blank those of neighbours in its env file.
const COMPOSE_ONLY: [&str; 12] = [
    // A folder of the host; in Kubernetes an overlay mounts a volume.
    "ARCHIVES_DIR",
    "ARCHIVES_REGISTRY_AUTH_FILE",
    // Other pods and published ports, which policies keep the API server from.
    "DOCTOR_SERVICES",
    "DOCTOR_PUBLISHED",
    "POSTGRES_DB",
    "POSTGRES_USER",
    "POSTGRES_PASSWORD_FILE",
    "POSTGRES_INITDB_ARGS",
    "PGDATA",
    "METRICS_ADDRESS",
    "METRICS_ON_PUBLIC_PORT",
    "POSTGRESQL_PASSWORD",
];

fn deploy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The objects of a file.
fn objects(path: &Path) -> Result<Vec<Value>> {
    let text = fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    let documents = text.split("\n---\n").map(serde_yaml::from_str);
    let documents: Result<_, _> = documents.collect();
    documents.with_context(|| format!("parsing {}", path.display()))
}

/// The pod templates of base and database, by name.
fn templates() -> Result<BTreeMap<String, Value>> {
    let kubernetes = deploy().join("deploy/kubernetes");
    let mut templates = BTreeMap::new();
    for folder in ["base", "components/database"] {
        for entry in fs::read_dir(kubernetes.join(folder))? {
            let path = entry?.path();
            if path.extension().is_none_or(|extension| extension != "yaml") {
                continue;
            }
            for object in objects(&path)? {
                let kind = object["kind"].as_str().unwrap_or_default();
                if ["Deployment", "StatefulSet"].contains(&kind) {
                    let name = object["metadata"]["name"].as_str().context("no name")?;
                    let template = object["spec"]["template"]["spec"].clone();
                    templates.insert(name.to_owned(), template);
                }
            }
        }
    }
    Ok(templates)
}

#[test]
fn kubernetes_and_compose_run_the_same() -> Result<()> {
    let compose = Compose::read(&deploy().join("compose.yaml"), &Variables::new())?;
    let templates = templates()?;
    let names: Vec<_> = templates.keys().collect();
    assert_eq!(names, compose.services.keys().collect::<Vec<_>>());
    for (name, service) in &compose.services {
        is_same(service, &templates[name]).with_context(|| name.clone())?;
    }
    Ok(())
}

fn is_same(service: &Service, template: &Value) -> Result<()> {
    let container = &template["containers"][0];
    assert_eq!(container["image"], service.image.as_str());
    let user = service.user.as_deref().context("no user")?;
    let security = &template["securityContext"];
    assert_eq!(
        format!("{}:{}", security["runAsUser"], security["runAsGroup"]),
        user
    );
    assert_eq!(security["runAsNonRoot"], true);
    assert_eq!(security["seccompProfile"]["type"], "RuntimeDefault");
    let security = &container["securityContext"];
    assert_eq!(security["readOnlyRootFilesystem"], service.read_only);
    assert_eq!(security["allowPrivilegeEscalation"], false);
    assert_eq!(
        security["capabilities"]["drop"][0],
        service.cap_drop[0].as_str()
    );
    let memory = container["resources"]["limits"]["memory"].as_str();
    let memory = memory.context("no memory limit")?;
    let expected = service.memory_bytes()?.context("no memory limit")?;
    assert_eq!(bytes(memory)?, expected);
    let known = container["env"].as_array().context("no variables")?;
    let known: BTreeMap<_, _> = known
        .iter()
        .map(|entry| (entry["name"].as_str().unwrap_or_default(), &entry["value"]))
        .collect();
    for (variable, value) in &service.environment {
        if COMPOSE_ONLY.contains(&variable.as_str()) {
            continue;
        }
        let Some(own) = known.get(variable.as_str()) else {
            ensure!(value.is_empty(), "{variable} is missing");
            continue;
        };
        // Values of references are those of the site.
        if let Some(own) = own.as_str() {
            ensure!(own == value, "{variable}: {own:?}, not {value:?}");
        }
    }
    let arguments = container["args"].as_array().cloned().unwrap_or_default();
    ensure!(arguments == service.command, "arguments: {arguments:?}");
    let ports = container["ports"].as_array().context("no ports")?;
    for published in &service.ports {
        let inside = published.rsplit(':').next().unwrap_or_default();
        let inside: u16 = inside.parse()?;
        let has = |port: &Value| port["containerPort"] == inside;
        ensure!(ports.iter().any(has), "port {inside} is missing");
    }
    for probe in ["startupProbe", "livenessProbe", "readinessProbe"] {
        ensure!(container[probe]["exec"].is_object(), "{probe} is missing");
    }
    Ok(())
}

fn bytes(text: &str) -> Result<i64> {
    let (digits, unit) = text.split_at(text.len() - 2);
    let factor = match unit {
        "Mi" => 1 << 20,
        "Gi" => 1 << 30,
        _ => anyhow::bail!("{text:?} has another unit"),
    };
    Ok(digits.parse::<i64>()? * factor)
}
