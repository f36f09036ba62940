//! The script of a rehearsal: the site, its machines, and their faults.

use std::collections::BTreeMap;

use declarations::site::{self, Site, SiteFinding};
use host_sim::{Hardware, HostFault, InstallationProfile, Network, add_faults, choose};

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

    /// Name of the cluster.
    pub fn name(&self) -> &str {
        &self.site.declaration.name
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MAX_FAULTS, MAX_MACHINES, MAX_SITE_BYTES};

    /// A site whose hosts no document names.
    fn site(workers: usize) -> String {
        let profile = InstallationProfile::parse("3+0").unwrap();
        let text = sample::site(profile);
        let text = text.split("\n---\n").next().unwrap();
        text.replace("replicas: 0", &format!("replicas: {workers}"))
            .replace("cidr: 192.168.126.0/24", "cidr: 192.168.0.0/16")
    }

    fn of_site(text: String) -> RehearsalRequest {
        RehearsalRequest {
            site: Some(text),
            ..RehearsalRequest::default()
        }
    }

    /// The unacceptable member.
    fn invalid(request: &RehearsalRequest) -> Option<&'static str> {
        match Script::new(request) {
            Ok(script) => {
                assert!(script.is_ok(), "{:?}", script.err());
                None
            }
            Err(Error::Invalid { field, .. }) => Some(field),
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn machines_of_a_request_are_bounded() {
        let joining = |workers: usize| RehearsalRequest {
            profile: Some("day2".to_owned()),
            ..of_site(site(workers))
        };
        let workers = MAX_MACHINES - 3;
        assert_eq!(invalid(&of_site(site(workers))), None);
        assert_eq!(invalid(&of_site(site(workers + 1))), Some("site"));
        assert_eq!(invalid(&joining(workers - 1)), None);
        assert_eq!(invalid(&joining(workers)), Some("site"));
        // Refused before any machine is made.
        let most = usize::try_from(i64::MAX).unwrap();
        assert_eq!(invalid(&of_site(site(most))), Some("site"));
        let script = Script::unbounded(&of_site(site(workers + 1))).unwrap();
        assert_eq!(script.ok().unwrap().machines.len(), MAX_MACHINES + 1);
    }

    #[test]
    fn texts_and_faults_of_a_request_are_bounded() {
        let padded = |bytes: usize| {
            let text = site(0);
            let padding = bytes - text.len() - 2;
            of_site(format!("{text}\n#{}", " ".repeat(padding)))
        };
        assert_eq!(invalid(&padded(MAX_SITE_BYTES)), None);
        assert_eq!(invalid(&padded(MAX_SITE_BYTES + 1)), Some("site"));
        let faults = |count: usize| RehearsalRequest {
            faults: vec!["ntp".to_owned(); count],
            ..of_site(site(0))
        };
        assert_eq!(invalid(&faults(MAX_FAULTS)), None);
        assert_eq!(invalid(&faults(MAX_FAULTS + 1)), Some("faults"));
    }

    #[test]
    fn errors_name_the_member_of_the_request() {
        let request = |profile: &str, fault: &str| RehearsalRequest {
            profile: Some(profile.to_owned()),
            faults: vec![fault.to_owned()],
            ..RehearsalRequest::default()
        };
        assert_eq!(invalid(&RehearsalRequest::default()), Some("site"));
        assert_eq!(invalid(&request("2+0", "ram")), Some("profile"));
        assert_eq!(invalid(&request("3+0", "fan")), Some("faults"));
        assert_eq!(invalid(&request("3+0", "ram@master-9")), Some("faults"));
        assert_eq!(invalid(&request("3+0", "ram@master-2")), None);
        let finding = Script::new(&of_site("a: [".to_owned())).unwrap();
        assert_eq!(finding.err().unwrap().id, "refused");
    }

    #[test]
    fn a_seed_chooses_the_host_of_a_fault() {
        let host = |seed: &str| {
            let request = RehearsalRequest {
                profile: Some("5+0".to_owned()),
                faults: vec!["ram".to_owned()],
                seed: seed.to_owned(),
                ..RehearsalRequest::default()
            };
            let script = Script::new(&request).unwrap().ok().unwrap();
            let mut machines = script.machines.iter();
            machines.position(|one| one.has(HostFault::Ram)).unwrap()
        };
        assert_eq!(host("1"), host("1"));
        assert!((0..20).any(|seed| host(&seed.to_string()) != host("1")));
    }
}
