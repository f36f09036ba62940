//! A BMC with a login: its system, its managers, its family.

use std::fmt;

use super::access::{BmcAccess, FirmwareMode};
use super::document::RedfishDocument;
use super::error::BmcError;
use super::link::RedfishPath;
use super::quirks::{BmcIdentity, BmcQuirks};
use super::session::RedfishSession;

/// Managers of one system that are read.
const MANAGER_LIMIT: usize = 4;

/// A login to a BMC, for one of its systems. Close it: BMCs have few sessions.
pub struct Bmc {
    pub(super) session: RedfishSession,
    /// Address of the system, for messages.
    pub(super) endpoint: String,
    pub(super) system: RedfishPath,
    pub(super) managers: Vec<RedfishPath>,
    /// The first manager, as read at the login.
    pub(super) manager: Option<RedfishDocument>,
    pub(super) quirks: &'static BmcQuirks,
    /// Mode in which the host starts.
    pub(super) mode: FirmwareMode,
    /// Virtual CD drives, once they were found.
    pub(super) media_paths: Option<Vec<RedfishPath>>,
}

impl fmt::Debug for Bmc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bmc")
            .field("endpoint", &self.endpoint)
            .field("family", &self.quirks.name)
            .finish_non_exhaustive()
    }
}

impl Bmc {
    /// Logs in to the BMC whose root was read.
    pub(super) async fn log_in(
        mut session: RedfishSession,
        access: &BmcAccess,
    ) -> Result<Self, BmcError> {
        let by_root = BmcQuirks::of(&identity(session.root(), None, None));
        session.log_in(by_root.login).await?;
        match Self::identified(&mut session, access).await {
            Ok((system, managers, manager)) => Ok(Self {
                endpoint: format!(
                    "{}{}",
                    access.endpoint.origin().as_str().trim_end_matches('/'),
                    system.path
                ),
                quirks: BmcQuirks::of(&identity(session.root(), Some(&system), manager.as_ref())),
                system: system.path,
                managers,
                mode: access.mode,
                manager,
                media_paths: None,
                session,
            }),
            Err(error) => {
                session.close().await;
                Err(error)
            }
        }
    }

    async fn identified(
        session: &mut RedfishSession,
        access: &BmcAccess,
    ) -> Result<(RedfishDocument, Vec<RedfishPath>, Option<RedfishDocument>), BmcError> {
        let path = match access.endpoint.system() {
            Some(path) => path.clone(),
            None => only_system(session).await?,
        };
        let system = match session.get(&path).await {
            Err(BmcError::NotFound { path, .. }) => {
                return Err(BmcError::NotFound {
                    path,
                    remedy: format!(": its systems are {}", systems(session).await?),
                });
            }
            system => system?,
        };
        let mut managers = system.links("/Links/ManagedBy", MANAGER_LIMIT)?;
        if managers.is_empty()
            && let Some(all) = session.root().link("/Managers")?
        {
            managers = session.members(&all).await?;
            managers.truncate(MANAGER_LIMIT);
        }
        let manager = match managers.first().cloned() {
            Some(first) => Some(session.get(&first).await?),
            None => None,
        };
        Ok((system, managers, manager))
    }

    /// Ends the login.
    pub async fn close(mut self) {
        self.session.close().await;
    }

    /// The family of the BMC.
    pub fn quirks(&self) -> &'static BmcQuirks {
        self.quirks
    }

    /// Address of the system.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    pub(super) async fn read_system(&mut self) -> Result<RedfishDocument, BmcError> {
        let path = self.system.clone();
        self.session.get(&path).await
    }
}

/// The only system of a BMC.
async fn only_system(session: &mut RedfishSession) -> Result<RedfishPath, BmcError> {
    let members = system_paths(session).await?;
    match members.as_slice() {
        [only] => Ok(only.clone()),
        _ => Err(BmcError::Address {
            address: session.root().origin.to_string(),
            reason: format!(
                "add the path of one system; the BMC has {}",
                systems(session).await?
            ),
        }),
    }
}

async fn system_paths(session: &mut RedfishSession) -> Result<Vec<RedfishPath>, BmcError> {
    // Its presence was checked when the root was read.
    let collection = session.root().link("/Systems")?;
    match collection {
        Some(collection) => session.members(&collection).await,
        None => Ok(Vec::new()),
    }
}

/// The paths of systems, for messages.
async fn systems(session: &mut RedfishSession) -> Result<String, BmcError> {
    let paths = system_paths(session).await?;
    let shown: Vec<String> = paths.iter().take(8).map(ToString::to_string).collect();
    Ok(if shown.is_empty() {
        "none".to_owned()
    } else {
        shown.join(", ")
    })
}

fn identity(
    root: &RedfishDocument,
    system: Option<&RedfishDocument>,
    manager: Option<&RedfishDocument>,
) -> BmcIdentity {
    let mut vendors: Vec<String> = Vec::new();
    vendors.extend(root.owned_text("/Vendor"));
    vendors.extend(root.owned_text("/Product"));
    let extensions = root.at("/Oem").as_object();
    vendors.extend(extensions.into_iter().flat_map(|it| it.keys().cloned()));
    vendors.extend(system.and_then(|it| it.owned_text("/Manufacturer")));
    let models = [system, manager].into_iter().flatten();
    BmcIdentity {
        vendors,
        models: models.filter_map(|it| it.owned_text("/Model")).collect(),
    }
}
