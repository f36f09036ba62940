//! `atoll node` and `atoll host` on the API of a cluster: a real kube-apiserver with the kinds of the platform.

mod approve;
mod backup;
mod cluster;
mod lease;
mod status;
