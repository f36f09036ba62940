//! deploy/kubernetes: compared with compose.yaml, with Kubernetes' schemas, and created in a kube-apiserver.

mod api_server;
mod compose;
mod network;
mod rendered;
mod replicas;
mod schemas;

/// Overlays, which users apply.
const OVERLAYS: [&str; 2] = ["single", "replicated"];
/// Label that selects the pods of a service.
const NAME_LABEL: &str = "app.kubernetes.io/name";
