//! State of a simulated BMC and its host.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use tokio::time::Instant;

use super::fault::{BmcFault, BmcFaultRule};
use super::profile::BmcProfile;

/// Requests that are remembered.
const RECORD_LIMIT: usize = 10_000;

/// Power of a simulated host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SimulatedPower {
    /// On.
    On,
    /// Off.
    Off,
    /// Off, and soon on.
    PoweringOn,
    /// On, and soon off.
    PoweringOff,
}

impl SimulatedPower {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::On => "On",
            Self::Off => "Off",
            Self::PoweringOn => "PoweringOn",
            Self::PoweringOff => "PoweringOff",
        }
    }
}

/// The medium that a host started from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BmcBootSource {
    /// The image of a virtual CD; its address.
    VirtualCd(String),
    /// UEFI HTTP boot; its address, if the BMC has it.
    Http(Option<String>),
    /// The disk.
    Disk,
}

/// A boot override.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimulatedOverride {
    /// `None`, `Cd`, `UefiHttp` …
    pub target: String,
    /// `Once`, `Continuous` or `Disabled`.
    pub enabled: String,
    /// `UEFI` or `Legacy`.
    pub mode: String,
    /// Address of UEFI HTTP boot.
    pub http_uri: Option<String>,
}

impl Default for SimulatedOverride {
    fn default() -> Self {
        Self {
            target: "None".to_owned(),
            enabled: "Disabled".to_owned(),
            mode: "UEFI".to_owned(),
            http_uri: None,
        }
    }
}

/// The credentials of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CredentialUse {
    /// None.
    None,
    /// User name and password.
    Basic,
    /// A token.
    Session,
}

/// A request as received.
#[derive(Debug, Clone, PartialEq)]
pub struct BmcRequestRecord {
    /// Method.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// Its credentials.
    pub credentials: CredentialUse,
    /// The body, without passwords; null if it is not JSON.
    pub body: Value,
    /// The header `If-Match`.
    pub if_match: Option<String>,
}

/// A virtual medium.
#[derive(Debug, Clone, Default)]
pub(super) struct Medium {
    /// The address of the image; may stay after an eject.
    pub(super) image: Option<String>,
    pub(super) is_connected: bool,
    pub(super) is_inserted: bool,
    pub(super) version: u64,
}

/// An effect of a task at its end.
#[derive(Debug, Clone)]
pub(super) enum TaskEffect {
    Nothing,
    Insert { medium: usize, image: String },
    BootVirtualCd,
}

#[derive(Debug, Clone)]
pub(super) struct BmcTask {
    pub(super) polls_left: u32,
    pub(super) ends_at: Instant,
    pub(super) fails: bool,
    pub(super) effect: TaskEffect,
}

/// Everything that requests change.
#[derive(Debug)]
pub(super) struct BmcState {
    pub(super) power: SimulatedPower,
    /// The power after the running change, and its time.
    pub(super) pending: Option<(SimulatedPower, Instant)>,
    pub(super) media: Vec<Medium>,
    pub(super) boot: SimulatedOverride,
    /// Set by iDRAC's import.
    pub(super) boots_virtual_cd: bool,
    /// Whether the boot order has the virtual CD in front of the disk.
    pub(super) has_cd_first: bool,
    pub(super) version: u64,
    pub(super) ejects_left: u32,
    pub(super) off_left: u32,
    pub(super) start_left: u32,
    pub(super) sessions: BTreeMap<u64, String>,
    pub(super) session_count: u64,
    pub(super) refused_logins: u32,
    pub(super) tasks: BTreeMap<u64, BmcTask>,
    pub(super) task_count: u64,
    pub(super) boots: Vec<BmcBootSource>,
    pub(super) records: Vec<BmcRequestRecord>,
    pub(super) rules: Vec<BmcFaultRule>,
}

impl BmcState {
    pub(super) fn new(profile: &BmcProfile) -> Self {
        Self {
            power: SimulatedPower::Off,
            pending: None,
            media: vec![Medium::default(); profile.media.len()],
            boot: SimulatedOverride::default(),
            boots_virtual_cd: false,
            has_cd_first: false,
            version: 1,
            ejects_left: 0,
            off_left: 0,
            start_left: 0,
            sessions: BTreeMap::new(),
            session_count: 0,
            refused_logins: 0,
            tasks: BTreeMap::new(),
            task_count: 0,
            boots: Vec::new(),
            records: Vec::new(),
            rules: Vec::new(),
        }
    }

    pub(super) fn record(&mut self, record: BmcRequestRecord) {
        if self.records.len() < RECORD_LIMIT {
            self.records.push(record);
        }
    }

    /// The faults of a request, in the order of their rules.
    pub(super) fn faults(&mut self, method: &str, path: &str) -> Vec<BmcFault> {
        let rules = self.rules.iter_mut();
        rules
            .filter_map(|rule| rule.take(method, path).then(|| rule.fault.clone()))
            .collect()
    }

    /// Whether a rule has this fault, which is not one of requests.
    pub(super) fn has(&self, fault: &BmcFault) -> bool {
        self.rules.iter().any(|rule| rule.fault == *fault)
    }

    /// Inserts an image.
    pub(super) fn insert(&mut self, medium: usize, image: &str) {
        let medium = &mut self.media[medium];
        medium.image = Some(image.to_owned());
        medium.is_connected = true;
        medium.is_inserted = true;
        medium.version += 1;
    }

    /// Ejects the image of a medium. `keeps_all`: only its connection ends.
    pub(super) fn eject(&mut self, medium: usize, profile: &BmcProfile, keeps_all: bool) {
        let medium = &mut self.media[medium];
        medium.is_connected = false;
        if !keeps_all {
            medium.is_inserted = false;
            if !profile.keeps_image {
                medium.image = None;
            }
        }
        medium.version += 1;
        self.ejects_left = profile.eject_lasts;
    }

    /// Starts the host: the source that it boots from. An override for one boot ends with it.
    pub(super) fn boot(&mut self, profile: &BmcProfile) -> BmcBootSource {
        let cd = self
            .media
            .iter()
            .zip(profile.media)
            .find_map(|(medium, kind)| {
                let is_disc = kind.types.contains(&"CD") && kind.takes_images;
                let image = medium
                    .image
                    .clone()
                    .filter(|_| is_disc && medium.is_connected);
                image.map(BmcBootSource::VirtualCd)
            });
        let source = self.source(profile, cd);
        self.boots_virtual_cd = false;
        if self.boot.enabled == "Once" {
            self.boot = SimulatedOverride {
                mode: self.boot.mode.clone(),
                ..SimulatedOverride::default()
            };
        }
        self.version += 1;
        self.start_left = profile.start_lasts;
        self.boots.push(source.clone());
        source
    }

    fn source(&self, profile: &BmcProfile, cd: Option<BmcBootSource>) -> BmcBootSource {
        // The images boot by UEFI.
        let cd = cd.filter(|_| self.boot.mode == "UEFI");
        if let Some(cd) = cd.clone().filter(|_| self.boots_virtual_cd) {
            return cd;
        }
        let is_on = self.boot.enabled != "Disabled";
        let target = self.boot.target.as_str();
        match target {
            "UefiHttp" if is_on && self.boot.mode == "UEFI" => {
                BmcBootSource::Http(self.boot.http_uri.clone())
            }
            // A drive in the machine: empty.
            _ if is_on && Some(target) == profile.cd_target => cd.unwrap_or(BmcBootSource::Disk),
            _ if is_on && target != "None" => BmcBootSource::Disk,
            _ => cd
                .filter(|_| self.has_cd_first)
                .unwrap_or(BmcBootSource::Disk),
        }
    }

    pub(super) fn add_session(&mut self, token: String) -> u64 {
        self.session_count += 1;
        self.sessions.insert(self.session_count, token);
        self.session_count
    }

    pub(super) fn add_task(&mut self, task: BmcTask) -> u64 {
        self.task_count += 1;
        self.tasks.insert(self.task_count, task);
        self.task_count
    }

    /// Tokens of open sessions.
    pub(super) fn tokens(&self) -> BTreeSet<&str> {
        self.sessions.values().map(String::as_str).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn booted(name: &str, prepare: impl Fn(&mut BmcState)) -> BmcBootSource {
        let profile = BmcProfile::find(name).unwrap();
        let mut state = BmcState::new(profile);
        let disc = profile
            .media
            .iter()
            .position(|it| it.takes_images && it.types.contains(&"CD"));
        state.insert(disc.unwrap(), "http://a/b.iso");
        prepare(&mut state);
        state.boot(profile)
    }

    fn once(target: &str) -> impl Fn(&mut BmcState) {
        let target = target.to_owned();
        move |state: &mut BmcState| {
            state.boot.target.clone_from(&target);
            "Once".clone_into(&mut state.boot.enabled);
        }
    }

    #[test]
    fn hosts_boot_what_their_family_boots() {
        let image = BmcBootSource::VirtualCd("http://a/b.iso".to_owned());
        assert_eq!(booted("standard", |_| {}), BmcBootSource::Disk);
        assert_eq!(booted("standard", once("Cd")), image);
        assert_eq!(booted("standard", |state| state.has_cd_first = true), image);
        assert_eq!(booted("supermicro", once("Cd")), BmcBootSource::Disk);
        assert_eq!(booted("supermicro", once("UsbCd")), image);
        assert_eq!(booted("idrac9", once("Cd")), BmcBootSource::Disk);
        assert_eq!(
            booted("idrac9", |state| state.boots_virtual_cd = true),
            image
        );
        assert_eq!(
            booted("standard", once("UefiHttp")),
            BmcBootSource::Http(None)
        );
        let legacy = |state: &mut BmcState| {
            once("Cd")(state);
            "Legacy".clone_into(&mut state.boot.mode);
        };
        assert_eq!(booted("standard", legacy), BmcBootSource::Disk);
    }

    #[test]
    fn an_override_for_one_boot_ends_with_it() {
        let profile = BmcProfile::find("standard").unwrap();
        let mut state = BmcState::new(profile);
        once("UefiHttp")(&mut state);
        state.boot(profile);
        assert_eq!(state.boot(profile), BmcBootSource::Disk);
        assert_eq!(state.boots.len(), 2);
    }
}
