//! The script of a rehearsal: the site, its machines, and their faults.

use std::fs;

use host_sim::{Hardware, HostFault, InstallationProfile, Network, add_faults, choose};
use rules::site::{self, Site, SiteFinding};
use service::Error;

use super::{DOING, RehearseArgs, machines, sample};

/// A site with its machines.
#[derive(Debug, Clone)]
pub(crate) struct Script {
    /// The inventory.
    pub(crate) site: Site,
    /// Machines; their indexes are their positions.
    pub(crate) machines: Vec<Hardware>,
    /// Their networks.
    pub(crate) network: Network,
    /// Seed of chance events.
    pub(crate) seed: String,
}

impl Script {
    /// The script of the arguments; a site file that cannot be read as one is a finding.
    ///
    /// Errors: an unreadable file; a fault or host that does not exist.
    pub(super) fn read(arguments: &RehearseArgs) -> Result<Result<Self, SiteFinding>, Error> {
        let text = match (&arguments.site, arguments.profile) {
            (Some(path), _) => fs::read_to_string(path)
                .map_err(|e| Error::new(format!("reading {}", path.display()), e))?,
            (None, Some(profile)) => sample::site(profile),
            (None, None) => return Err(Error::new(DOING, "name a site file or a profile")),
        };
        let site = match site::parse(&text) {
            Ok(site) => site,
            Err(error) => return Ok(Err(refused(&error))),
        };
        let mut script = Self::of(site, arguments.profile, &arguments.seed)?;
        let faults = script.chosen(arguments)?;
        add_faults(&mut script.machines, &faults).map_err(|e| Error::new(DOING, e.chain()))?;
        Ok(Ok(script))
    }

    /// The script of a site with the machines of a profile, without faults.
    fn of(site: Site, profile: Option<&InstallationProfile>, seed: &str) -> Result<Self, Error> {
        Ok(Self {
            machines: machines::of_site(&site, profile, seed)?,
            network: machines::network(&site),
            seed: seed.to_owned(),
            site,
        })
    }

    /// Faults of the profile and of the arguments, with their hosts.
    fn chosen(&self, arguments: &RehearseArgs) -> Result<Vec<(String, HostFault)>, Error> {
        let by_seed = |fault: HostFault| {
            // Those that join later are not part of the installation.
            let hosts: Vec<&Hardware> = self.machines.iter().filter(|one| !one.joins).collect();
            let purpose = format!("fault/{fault:?}");
            let at = choose(&self.seed, &purpose, hosts.len().max(1));
            let host = hosts.get(at).map(|host| host.hostname.clone());
            host.map(|host| (host, fault))
        };
        let of_profile = arguments.profile.iter().flat_map(|profile| profile.faults);
        let mut chosen: Vec<(String, HostFault)> =
            of_profile.filter_map(|fault| by_seed(*fault)).collect();
        for text in &arguments.faults {
            let (name, host) = match text.split_once('@') {
                Some((name, host)) => (name, Some(host)),
                None => (text.as_str(), None),
            };
            let fault = HostFault::parse(name).map_err(|reason| Error::new("--fault", reason))?;
            chosen.extend(match host {
                Some(host) => Some((host.to_owned(), fault)),
                None => by_seed(fault),
            });
        }
        Ok(chosen)
    }

    /// The script for the copy at `at`: hosts with identities of their own, and another name of the cluster.
    pub(super) fn copy(&self, at: usize) -> Self {
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
pub(super) fn refused(error: &model::Error) -> SiteFinding {
    SiteFinding {
        id: "refused".to_owned(),
        observed: error.to_string(),
        ..SiteFinding::default()
    }
}
