//! Use cases of declarations: the agent-based installer's files are applied and exported.

use std::sync::Arc;

use declarations::{ApplyPlan, CurrentState, Declaration, FileText};
use model::Error;
use model::cluster::Cluster;
use model::declaration::{AppliedDeclaration, DeclaredChange};
use model::expected_hosts::ExpectedHost;
use model::ids::{ClusterId, InfraEnvId};
use model::infra_env::InfraEnv;
use secrecy::ExposeSecret as _;

use super::ClusterStore;
use super::access::{AccessControl, PathIds};
use super::clusters::Clusters;
use super::expected_hosts::{ExpectedHosts, expected_list};
use super::infra_envs::{self, InfraEnvs};
use super::install_config::update_install_config;
use super::offer::CurrentOffer;
use super::preparation::pull_secret;
use super::request::{self, RequestProperties};
use crate::auth::Caller;
use crate::db::{Database, clusters, tx};

/// Longest body with both files. Units: bytes.
pub(crate) const BODY_BYTES: usize = 2 << 20;

/// The records that a declaration is applied to.
struct DeclarationTarget {
    cluster: Cluster,
    infra_env: Option<InfraEnv>,
    expected: Option<Vec<ExpectedHost>>,
}

impl DeclarationTarget {
    fn state(&self) -> CurrentState<'_> {
        CurrentState {
            cluster: &self.cluster,
            infra_env: self.infra_env.as_ref(),
            expected: self.expected.as_deref(),
        }
    }
}

/// Declarations of clusters by files.
#[derive(Debug)]
pub(crate) struct Declarations {
    pub(super) db: Database,
    pub(super) store: Arc<ClusterStore>,
    pub(super) clusters: Arc<Clusters>,
    pub(super) infra_envs: Arc<InfraEnvs>,
    pub(super) expected_hosts: Arc<ExpectedHosts>,
    pub(super) access: Arc<AccessControl>,
    pub(super) offer: Arc<CurrentOffer>,
}

impl Declarations {
    /// Applies files to the cluster that they name, and to its infra-env; both are created if they do not exist.
    /// Idempotent: the same files change nothing the next time. `version` is that of a new cluster; empty: the default.
    ///
    /// Errors: Invalid; Conflict – several clusters or infra-envs have the name, or the status forbids changes.
    pub(crate) async fn apply(
        &self,
        caller: &Caller,
        files: &[FileText],
        version: &str,
    ) -> Result<AppliedDeclaration, Error> {
        let wanted = declarations::parse(files)?;
        let applied = async {
            let Some(cluster) = self.declared_cluster(caller, &wanted).await? else {
                return Box::pin(self.create_declared(caller, &wanted, version)).await;
            };
            let infra_env = self.only_infra_env(caller, cluster.id).await?;
            Box::pin(self.apply_to(caller, &wanted, cluster, infra_env)).await
        };
        applied.await.map_err(|error| wanted.located(error))
    }

    /// Applies files to an infra-env and its cluster.
    ///
    /// Errors: NotFound; Invalid – the infra-env has no cluster, or a malformed file; Conflict – the status forbids
    /// changes.
    pub(crate) async fn apply_to_infra_env(
        &self,
        caller: &Caller,
        id: InfraEnvId,
        files: &[FileText],
    ) -> Result<AppliedDeclaration, Error> {
        let wanted = declarations::parse(files)?;
        let infra_env = infra_envs::infra_env(&self.db, id).await?;
        let cluster = self.store.stored(cluster_of(&infra_env)?).await?;
        let cluster = cluster.snapshot.cluster.clone();
        let applied = Box::pin(self.apply_to(caller, &wanted, cluster, Some(infra_env))).await;
        applied.map_err(|error| wanted.located(error))
    }

    /// Both files of an infra-env and its cluster, as two YAML documents without secrets.
    ///
    /// Errors: NotFound; Invalid – the infra-env has no cluster.
    pub(crate) async fn export(&self, caller: &Caller, id: InfraEnvId) -> Result<String, Error> {
        let infra_env = infra_envs::infra_env(&self.db, id).await?;
        let cluster = cluster_of(&infra_env)?;
        let ids = PathIds {
            cluster: Some(cluster),
            infra_env: None,
        };
        self.access.check_subjects(caller, ids).await?;
        let cluster = self.store.stored(cluster).await?;
        let target = DeclarationTarget {
            cluster: cluster.snapshot.cluster.clone(),
            infra_env: Some(infra_env),
            expected: expected_list(&self.db, id).await?,
        };
        declarations::print(&declarations::declare(target.state()))
    }

    /// The cluster of the declared name and domain among those of the caller; none if there is none.
    async fn declared_cluster(
        &self,
        caller: &Caller,
        wanted: &Declaration,
    ) -> Result<Option<Cluster>, Error> {
        let named = tx("find clusters by name", async || {
            let mut connection = self.db.pool()?.acquire().await?;
            clusters::ids_of_name(&mut connection, &wanted.name).await
        })
        .await?;
        let mut found = Vec::new();
        for id in named {
            let cluster = match self.store.stored(id).await {
                Ok(stored) => stored.snapshot.cluster.clone(),
                // Deleted meanwhile.
                Err(Error::NotFound { .. }) => continue,
                Err(error) => return Err(error),
            };
            let domain = wanted.base_domain.as_ref();
            if self
                .access
                .lists(caller, &cluster.user_name, &cluster.org_id)
                && domain.is_none_or(|domain| *domain == cluster.base_dns_domain)
            {
                found.push(cluster);
            }
        }
        if found.len() > 1 {
            return Err(Error::conflict(format!(
                "{} clusters are named {}: apply the files to an infra-env of one of them",
                found.len(),
                wanted.name
            )));
        }
        Ok(found.pop())
    }

    async fn only_infra_env(
        &self,
        caller: &Caller,
        cluster: ClusterId,
    ) -> Result<Option<InfraEnv>, Error> {
        let mut found = self.infra_envs.list(caller, cluster).await?;
        if found.len() > 1 {
            return Err(Error::conflict(format!(
                "cluster {cluster} has {} infra-envs: apply the files to one of them",
                found.len()
            )));
        }
        Ok(found.pop())
    }

    async fn create_declared(
        &self,
        caller: &Caller,
        wanted: &Declaration,
        version: &str,
    ) -> Result<AppliedDeclaration, Error> {
        let offer = self.offer.get();
        let default = offer.releases.iter().find(|release| release.default);
        let version = match default {
            Some(release) if version.is_empty() => release.version.as_str(),
            _ => version,
        };
        let params = declarations::cluster_params(wanted, version)?;
        let is_dry_run = request::is_dry_run();
        // All parts are checked before the first is written.
        let cluster = as_dry_run(Box::pin(self.clusters.register(caller, params.clone()))).await?;
        let env_version = cluster.openshift_version.clone();
        let env_params = declarations::infra_env_params(wanted, None, &env_version)?;
        as_dry_run(Box::pin(
            self.infra_envs.register(caller, env_params.clone()),
        ))
        .await?;
        let state = CurrentState {
            cluster: &cluster,
            infra_env: None,
            expected: None,
        };
        let plan = declarations::plan(wanted, state, &params.pull_secret)?;
        check_parts(&cluster, &plan)?;
        let created = |field: &str, name: &str| DeclaredChange {
            field: field.to_owned(),
            before: String::new(),
            after: name.to_owned(),
        };
        let mut result = AppliedDeclaration {
            created: true,
            changes: vec![
                created("cluster", &cluster.name),
                created("infra-env", &env_params.name),
            ],
            notes: plan.notes.clone(),
            ..AppliedDeclaration::default()
        };
        let hosts = plan.expected.iter().flatten();
        result
            .changes
            .extend(hosts.map(|host| created("expected host", &host.name)));
        if is_dry_run {
            return Ok(result);
        }
        let cluster = self.clusters.register(caller, params).await?.id;
        let env_params = declarations::infra_env_params(wanted, Some(cluster), &env_version)?;
        let infra_env = self.infra_envs.register(caller, env_params).await?.id;
        self.apply_parts(
            caller,
            cluster,
            infra_env,
            &ApplyPlan {
                cluster: None,
                infra_env: None,
                ..plan
            },
        )
        .await?;
        result.cluster_id = Some(cluster);
        result.infra_env_id = Some(infra_env);
        Ok(result)
    }

    async fn apply_to(
        &self,
        caller: &Caller,
        wanted: &Declaration,
        cluster: Cluster,
        infra_env: Option<InfraEnv>,
    ) -> Result<AppliedDeclaration, Error> {
        self.access.check_named_cluster(caller, cluster.id).await?;
        let expected = match &infra_env {
            Some(infra_env) => expected_list(&self.db, infra_env.id).await?,
            None => None,
        };
        let target = DeclarationTarget {
            cluster,
            infra_env,
            expected,
        };
        let id = target.cluster.id;
        let known_secret = pull_secret(&self.db, id).await?;
        let plan = declarations::plan(wanted, target.state(), known_secret.expose_secret())?;
        let mut result = AppliedDeclaration {
            cluster_id: Some(id),
            infra_env_id: target.infra_env.as_ref().map(|one| one.id),
            changes: plan.changes.clone(),
            notes: plan.notes.clone(),
            ..AppliedDeclaration::default()
        };
        check_parts(&target.cluster, &plan)?;
        let Some(infra_env) = &target.infra_env else {
            // Left by an interrupted request, or deleted.
            let version = target.cluster.openshift_version.clone();
            let params = declarations::infra_env_params(wanted, Some(id), &version)?;
            result.created = true;
            if let Some(update) = &plan.cluster {
                as_dry_run(Box::pin(self.clusters.update(id, update))).await?;
            }
            let infra_env = self.infra_envs.register(caller, params).await?.id;
            if !request::is_dry_run() {
                result.infra_env_id = Some(infra_env);
                self.apply_parts(
                    caller,
                    id,
                    infra_env,
                    &ApplyPlan {
                        infra_env: None,
                        ..plan
                    },
                )
                .await?;
            }
            return Ok(result);
        };
        // All parts are checked before the first is written.
        as_dry_run(Box::pin(self.apply_parts(caller, id, infra_env.id, &plan))).await?;
        if !request::is_dry_run() {
            self.apply_parts(caller, id, infra_env.id, &plan).await?;
        }
        Ok(result)
    }

    async fn apply_parts(
        &self,
        caller: &Caller,
        cluster: ClusterId,
        infra_env: InfraEnvId,
        plan: &ApplyPlan,
    ) -> Result<(), Error> {
        if let Some(update) = &plan.cluster {
            self.clusters.update(cluster, update).await?;
        }
        if let Some(overrides) = &plan.overrides {
            update_install_config(&self.store, cluster, overrides).await?;
        }
        if let Some(update) = &plan.infra_env {
            self.infra_envs.update(caller, infra_env, update).await?;
        }
        match &plan.expected {
            Some(list) if !request::is_dry_run() => self
                .expected_hosts
                .set(infra_env, list.clone())
                .await
                .map(drop),
            _ => Ok(()),
        }
    }
}

/// Checks of parts that have no dry run of their own.
fn check_parts(cluster: &Cluster, plan: &ApplyPlan) -> Result<(), Error> {
    if let Some(list) = &plan.expected {
        rules::host::expected_hosts::check(list.clone())?;
    }
    if let Some(overrides) = &plan.overrides {
        rules::cluster::update::accepts_changes(cluster)?;
        rules::install_config::check(overrides)?;
    }
    Ok(())
}

fn cluster_of(infra_env: &InfraEnv) -> Result<ClusterId, Error> {
    infra_env.cluster_id.ok_or_else(|| {
        let reason = format!(
            "infra-env {} has no cluster: the files describe a cluster with its infra-env",
            infra_env.id
        );
        Error::invalid("infra_env_id", reason)
    })
}

/// Runs a part of a request as a dry run.
async fn as_dry_run<T>(part: impl Future<Output = T>) -> T {
    let properties = RequestProperties {
        id: request::id().unwrap_or_default(),
        is_dry_run: true,
    };
    request::scope(properties, part).await
}
