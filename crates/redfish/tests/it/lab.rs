//! A rack of simulated BMCs with a connector that trusts them.

use std::sync::Arc;
use std::time::Duration;

use host_sim::bmc::{BMC_PROFILES, BmcProfile, BmcRack, BmcRackPlan, SimulatedBmc};
use redfish::{
    Bmc, BmcAccess, BmcCredentials, BmcError, BmcTarget, FirmwareMode, RedfishConnector,
    RedfishEndpoint, RedfishTiming,
};

pub(crate) const PASSWORD: &str = "correct-horse";
/// An image with a token in its address.
pub(crate) const IMAGE: &str = "http://10.0.0.9:8888/images/full.iso?image_token=s3cret-token";
pub(crate) const OTHER_IMAGE: &str = "http://10.0.0.9:8888/images/other.iso";

/// Deadlines that no busy machine misses.
pub(crate) fn patient() -> RedfishTiming {
    RedfishTiming {
        poll: Duration::from_millis(5),
        first_pause: Duration::from_millis(2),
        longest_pause: Duration::from_millis(10),
        ..RedfishTiming::default()
    }
}

/// Deadlines that end: for states that never come.
pub(crate) fn hasty() -> RedfishTiming {
    RedfishTiming {
        attempts: 3,
        settle: Duration::from_millis(40),
        power: Duration::from_millis(40),
        shutdown: Duration::from_millis(40),
        task: Duration::from_millis(40),
        ..patient()
    }
}

pub(crate) struct Lab {
    pub(crate) rack: BmcRack,
    pub(crate) connector: RedfishConnector,
}

impl Lab {
    pub(crate) async fn of(family: &str, count: usize) -> Self {
        Self::with(family, count, patient()).await
    }

    pub(crate) async fn with(family: &str, count: usize, timing: RedfishTiming) -> Self {
        let profile = BmcProfile::find(family).unwrap();
        Self::start(BmcRackPlan::of(profile, count), timing).await
    }

    pub(crate) async fn start(plan: BmcRackPlan, timing: RedfishTiming) -> Self {
        let rack = BmcRack::start(plan).await.unwrap();
        let ca = rack.ca_pem().as_bytes();
        let connector = RedfishConnector::new(Some(ca), timing).unwrap();
        Self { rack, connector }
    }

    pub(crate) fn bmc(&self) -> &Arc<SimulatedBmc> {
        &self.rack.bmcs()[0]
    }

    /// Access to the system of a BMC by TLS, verified.
    pub(crate) fn access(&self, index: usize) -> BmcAccess {
        let path = self.rack.bmcs()[index].profile.system_path();
        access(&self.rack.origin(index, "https"), Some(&path))
    }

    pub(crate) fn targets(&self) -> Vec<BmcTarget> {
        let targets = self.rack.bmcs().iter().map(|bmc| BmcTarget {
            name: bmc.host.name.clone(),
            access: self.access(bmc.index),
        });
        targets.collect()
    }

    pub(crate) async fn connect(&self) -> Result<Bmc, BmcError> {
        self.connector.connect(&self.access(0)).await
    }
}

pub(crate) fn access(origin: &str, path: Option<&str>) -> BmcAccess {
    BmcAccess {
        endpoint: RedfishEndpoint::new(origin, path).unwrap(),
        credentials: BmcCredentials {
            user: "admin".to_owned(),
            password: PASSWORD.into(),
        },
        verifies_certificate: true,
        mode: FirmwareMode::default(),
    }
}

/// Names of all families.
pub(crate) fn families() -> impl Iterator<Item = &'static str> {
    BMC_PROFILES.iter().map(|profile| profile.name)
}

/// The text of an error, which must not show any secret.
pub(crate) fn text(error: &BmcError) -> String {
    let text = error.to_string();
    let all = format!("{text} {error:?}");
    for secret in [PASSWORD, "s3cret-token"] {
        assert!(!all.contains(secret), "{all}");
    }
    text
}
