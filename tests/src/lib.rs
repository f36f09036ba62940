//! Tests of the whole system: an installation per test, injected faults, and checks of the surviving state.
//!
//! Everything is driven from outside, as users and machines do it: the real `atoll up`, its children by their
//! process ids, the pod's containers through their engine, HTTP. A test's processes end with it, also when it fails.

mod api;
mod browser;
mod distribution;
mod download;
mod installation;
mod journey;
mod kube_api_server;
mod ledger;
pub mod machine;
mod openid_provider;
pub mod pod;
pub mod process;
mod scratch;
mod site_proxy;
mod snapshot;
mod wait;

pub use api::{ApiClient, ApiResponse, client};
pub use browser::{Browser, LoadedPage};
pub use distribution::Distribution;
pub use download::{DownloadedImage, ImageDownload, image_url};
pub use installation::{Installation, InstallationState};
pub use journey::{Stage, installed_in_spite_of, journey_with};
pub use kube_api_server::{
    BOOTSTRAPPER_TOKEN, CONTROL_NODE_TOKEN, HOST_CONTROLLER_TOKEN, KubeApiServer, NODE_TOKEN,
};
pub use ledger::Ledger;
pub use openid_provider::OpenIdProvider;
pub use scratch::Scratch;
pub use site_proxy::SiteProxy;
pub use snapshot::ApiSnapshot;
pub use testkit::ports::free_ports;
pub use wait::until;
