//! The script of a rehearsal: the site, its machines, and their faults.

use std::collections::BTreeMap;

use host_sim::{Hardware, HostFault, InstallationProfile, Network, add_faults, choose};
use rules::site::{self, Site, SiteFinding};

use crate::request::{RehearsalRequest, RequestBounds};
use crate::{Error, machines, sample};

/// A site with its machines.
#[derive(Clone)]
pub struct Script {
    /// The inventory.
    pub(crate) site: Site,
    /// Machines; their indexes are their positions.
    pub(crate) machines: Vec<Hardware>,
    /// Their networks.
    pub(crate) network: Network,
    /// Seed of chance events.
    pub(crate) seed: String,
    /// Version of the release; none: the server's default.
    pub(crate) release: Option<String>,
}

impl Script {
    /// The script of a request; a site that cannot be read as one is a finding.
    ///
    /// Errors: Invalid – neither site nor profile, a profile, fault or host that does not exist, too few addresses, more
    /// than [`MAX_SITE_BYTES`](crate::MAX_SITE_BYTES), [`MAX_MACHINES`](crate::MAX_MACHINES) or
    /// [`MAX_FAULTS`](crate::MAX_FAULTS).
    pub fn new(request: &RehearsalRequest) -> Result<Result<Self, SiteFinding>, Error> {
        Self::within(request, RequestBounds::CLIENT)
    }

    /// [`Script::new`] without bounds, for programs that play on the machine of their user.
    ///
    /// Errors: as [`Script::new`], without the last three.
    pub fn unbounded(request: &RehearsalRequest) -> Result<Result<Self, SiteFinding>, Error> {
        Self::within(request, RequestBounds::NONE)
    }

    fn within(
        request: &RehearsalRequest,
        bounds: RequestBounds,
    ) -> Result<Result<Self, SiteFinding>, Error> {
        let profile = request.profile.as_deref().map(InstallationProfile::parse);
        let profile = profile
            .transpose()
            .map_err(|reason| Error::invalid("profile", reason))?;
        let text = match (&request.site, profile) {
            (Some(text), _) if text.len() > bounds.site_bytes => {
                let reason = format!("has more than {} bytes", bounds.site_bytes);
                return Err(Error::invalid("site", reason));
            }
            (Some(text), _) => text,
            (None, Some(profile)) => &sample::site(profile),
            (None, None) => return Err(Error::invalid("site", "name a site file or a profile")),
        };
        if request.faults.len() > bounds.faults {
            let reason = format!("has more than {} faults", bounds.faults);
            return Err(Error::invalid("faults", reason));
        }
        let site = match site::parse(text) {
            Ok(site) => site,
            Err(error) => return Ok(Err(refused(&error))),
        };
        let count = machines::count(&site, profile);
        if count > bounds.machines {
            let reason = format!(
                "has {count} machines, at most {} are played",
                bounds.machines
            );
            return Err(Error::invalid("site", reason));
        }
        let mut script = Self {
            machines: machines::of_site(&site, profile, &request.seed)?,
            network: machines::network(&site),
            seed: request.seed.clone(),
            release: request.release.clone(),
            site,
        };
        let faults = script.chosen(profile, &request.faults)?;
        add_faults(&mut script.machines, &faults).map_err(|error| {
            let reason = match error {
                host_sim::Error::Invalid { reason, .. } => reason,
                other => other.chain(),
            };
            Error::invalid("faults", reason)
        })?;
        Ok(Ok(script))
    }

    /// Findings of the data alone: no host is simulated.
    pub fn check(&self) -> Vec<SiteFinding> {
        site::check(&self.site)
    }

    /// Faults of the profile and of the request, with their hosts.
    fn chosen(
        &self,
        profile: Option<&InstallationProfile>,
        faults: &[String],
    ) -> Result<Vec<(String, HostFault)>, Error> {
        let by_seed = |fault: HostFault| {
            // Those that join later are not part of the installation.
            let hosts: Vec<&Hardware> = self.machines.iter().filter(|one| !one.joins).collect();
            let purpose = format!("fault/{fault:?}");
            let at = choose(&self.seed, &purpose, hosts.len().max(1));
            let host = hosts.get(at).map(|host| host.hostname.clone());
            host.map(|host| (host, fault))
        };
        let of_profile = profile.iter().flat_map(|profile| profile.faults);
        let mut chosen: Vec<(String, HostFault)> =
            of_profile.filter_map(|fault| by_seed(*fault)).collect();
        for text in faults {
            let (name, host) = match text.split_once('@') {
                Some((name, host)) => (name, Some(host)),
                None => (text.as_str(), None),
            };
            let fault =
                HostFault::parse(name).map_err(|reason| Error::invalid("faults", reason))?;
            chosen.extend(match host {
                Some(host) => Some((host.to_owned(), fault)),
                None => by_seed(fault),
            });
        }
        Ok(chosen)
    }

    /// Names of the machines by their host ids.
    pub(crate) fn names(&self) -> BTreeMap<String, String> {
        let machines = self.machines.iter();
        machines
            .map(|machine| (machine.host_id.to_string(), machine.hostname.clone()))
            .collect()
    }

    /// The script for the copy at `at`: hosts with identities of their own, and another name of the cluster.
    pub(crate) fn copy(&self, at: usize) -> Self {
        let mut copy = self.clone();
        if at > 0 {
            copy.site.declaration.name = format!("{}-{at}", self.site.declaration.name);
            copy.seed = format!("{}/{at}", self.seed);
            for machine in &mut copy.machines {
                let serial = format!("{}-{at}", machine.serial);
                machine.set_serial(&serial);
            }
            copy.network = machines::network(&copy.site);
        }
        copy
    }
}

/// The finding about a refused file or request.
pub(crate) fn refused(error: &model::Error) -> SiteFinding {
    SiteFinding {
        id: "refused".to_owned(),
        observed: error.to_string(),
        ..SiteFinding::default()
    }
}
