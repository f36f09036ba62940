//! Use cases of boots by BMCs: the discovery image of an infra-env on a list of hosts.
//!
//! Invariants: credentials are in the memory of the server that accepted them, and nowhere else; a boot whose server ended
//! becomes a failure; a host is booted by one request at a time.

mod eject;
mod image;
mod networks;
mod progress;
mod reporter;
mod run;
mod targets;
mod upkeep;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use model::Error;
use model::bmc_boot::{BmcBootHost, BmcBootMedium, BmcBootParams};
use model::ids::InfraEnvId;
use redfish::{BMC_CONCURRENCY, BootMedium, RedfishConnector, RedfishTiming};
use tokio::sync::{Notify, Semaphore};
use uuid::Uuid;

use super::infra_envs::find_infra_env;
use super::offer::CurrentOffer;
use super::token_validity::InfraEnvTokens;
use crate::auth::Caller;
use crate::blocking;
use crate::db::bmc_boots::{self, NewBmcBoots};
use crate::db::{Database, tx};
use crate::settings::Settings;
pub(crate) use progress::ERROR_LENGTH;
use progress::PendingProgress;
use reporter::{BmcBootRun, StopReason};
use run::BmcBootRequest;
pub(crate) use targets::{ADDRESS_BYTES, CREDENTIAL_BYTES, MAX_BMCS, NAME_BYTES};
use upkeep::{LockHolder, MissingHolders};

/// Hosts that wait for their BMC or are served by it, of all infra-envs.
pub(crate) const UNDER_WAY: i64 = 1000;
/// Ended boots of other hosts that a new request leaves in an infra-env.
pub(crate) const KEPT_BOOTS: i64 = 1000;

/// Boots by BMCs, and the requests of this process.
#[derive(Debug)]
pub(crate) struct BmcBoots {
    db: Database,
    settings: Arc<Settings>,
    offer: Arc<CurrentOffer>,
    tokens: Arc<InfraEnvTokens>,
    /// Wakes the task that looks after requests.
    pub(crate) started: Notify,
    /// BMCs at a time, of all requests.
    permits: Arc<Semaphore>,
    progress: Arc<PendingProgress>,
    runs: Mutex<HashMap<Uuid, Arc<BmcBootRun>>>,
    /// There while requests are under way. Requests are added while it is locked.
    holder: tokio::sync::Mutex<Option<LockHolder>>,
    missing: Mutex<MissingHolders>,
}

impl BmcBoots {
    /// Boots of the discovery images on offer, without any request yet.
    pub(super) fn new(
        db: Database,
        settings: Arc<Settings>,
        offer: Arc<CurrentOffer>,
        tokens: Arc<InfraEnvTokens>,
    ) -> Self {
        Self {
            db,
            settings,
            offer,
            tokens,
            started: Notify::new(),
            permits: Arc::new(Semaphore::new(BMC_CONCURRENCY)),
            progress: Arc::default(),
            runs: Mutex::default(),
            holder: tokio::sync::Mutex::default(),
            missing: Mutex::default(),
        }
    }

    fn runs(&self) -> MutexGuard<'_, HashMap<Uuid, Arc<BmcBootRun>>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn missing(&self) -> MutexGuard<'_, MissingHolders> {
        self.missing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stop_all(&self, reason: StopReason) {
        for run in self.runs().values() {
            run.stop(reason);
        }
    }

    /// Boots hosts from the discovery image of an infra-env; their progress is listed.
    ///
    /// Errors: NotFound; Invalid – a malformed BMC; Conflict – a host is under way, too many are, or no image is offered.
    pub(crate) async fn start(
        self: &Arc<Self>,
        caller: &Caller,
        infra_env: InfraEnvId,
        params: BmcBootParams,
    ) -> Result<Vec<BmcBootHost>, Error> {
        let checked = targets::check(params.bmcs)?;
        let image = self.image(caller, infra_env, params.image_type).await?;
        let connector = redfish_connector(&self.settings).await?;
        let mut holder = self.holder.lock().await;
        let mut new = NewBmcBoots {
            infra_env,
            request: Uuid::new_v4(),
            holder: self.hold(&mut holder).await?,
            requested_by: caller.user_name().to_owned(),
            names: Vec::new(),
            addresses: Vec::new(),
            systems: Vec::new(),
        };
        let mut targets = Vec::new();
        for bmc in checked {
            new.names.push(bmc.target.name.clone());
            new.addresses.push(bmc.address);
            new.systems.push(bmc.system);
            targets.push(bmc.target);
        }
        self.insert(&new).await?;
        tracing::info!(infra_env.id = %infra_env, request = %new.request, hosts = targets.len(), "boots by BMCs started");
        let medium = match params.medium {
            BmcBootMedium::VirtualMedia => BootMedium::VirtualMedia {
                image: image.clone(),
                size_bytes: None,
            },
            BmcBootMedium::UefiHttp => BootMedium::UefiHttp { uri: image.clone() },
        };
        let request = BmcBootRequest {
            id: new.request,
            infra_env,
            targets,
            medium,
            image_path: image.path().to_owned(),
            ejects: params.eject_after_install,
        };
        self.run(connector, request);
        drop(holder);
        self.started.notify_one();
        self.stored(infra_env).await
    }

    /// The last boot of each host of an infra-env, by name.
    ///
    /// Errors: NotFound.
    pub(crate) async fn list(&self, infra_env: InfraEnvId) -> Result<Vec<BmcBootHost>, Error> {
        find_infra_env(&self.db, infra_env).await?;
        self.stored(infra_env).await
    }

    /// Cancels the boots of an infra-env that are under way: they end within seconds, whichever server runs them.
    ///
    /// Errors: NotFound.
    pub(crate) async fn cancel(&self, infra_env: InfraEnvId) -> Result<Vec<BmcBootHost>, Error> {
        find_infra_env(&self.db, infra_env).await?;
        tx("cancel boots by BMCs", async || {
            let mut connection = self.db.pool()?.acquire().await?;
            bmc_boots::cancel(&mut connection, infra_env).await
        })
        .await?;
        self.stored(infra_env).await
    }

    async fn stored(&self, infra_env: InfraEnvId) -> Result<Vec<BmcBootHost>, Error> {
        tx("list boots by BMCs", async || {
            let mut connection = self.db.pool()?.acquire().await?;
            bmc_boots::list(&mut connection, infra_env).await
        })
        .await
    }

    async fn insert(&self, new: &NewBmcBoots) -> Result<(), Error> {
        let now = service::clock::now();
        tx("start boots by BMCs", async || {
            let mut tx = self.db.pool()?.begin().await?;
            bmc_boots::lock(&mut tx).await?;
            if let Some((name, is_other)) = bmc_boots::conflicting(&mut tx, new).await? {
                let place = if is_other { " of another infra-env" } else { "" };
                return Err(Error::conflict(format!(
                    "the BMC of {name}{place} is under way: wait for its end, or cancel it"
                ))
                .into());
            }
            let count = bmc_boots::count_under_way(&mut tx).await?;
            let added = i64::try_from(new.names.len()).unwrap_or(i64::MAX);
            if count.saturating_add(added) > UNDER_WAY {
                return Err(Error::conflict(format!(
                    "{count} BMCs are under way, and {UNDER_WAY} may be: wait for their end, or cancel them"
                ))
                .into());
            }
            bmc_boots::insert(&mut tx, new, KEPT_BOOTS, now).await?;
            tx.commit().await?;
            Ok(())
        })
        .await
    }
}

/// Reads BMC_CA_FILE for each request: a new authority needs no restart.
pub(super) async fn redfish_connector(settings: &Settings) -> Result<RedfishConnector, Error> {
    let path = settings.bmc_ca_file.clone();
    let doing = "reading BMC_CA_FILE";
    let connector = blocking::run(doing, move || {
        let ca = path.map(std::fs::read).transpose();
        let ca = ca.map_err(|error| Error::internal(doing, error))?;
        RedfishConnector::new(ca.as_deref(), RedfishTiming::default())
            .map_err(|error| Error::internal(doing, error))
    });
    let networks = networks::of_bmcs(settings);
    let (connector, networks) = tokio::join!(connector, networks);
    Ok(connector?.within(networks))
}
