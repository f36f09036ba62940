//! Use cases of expected hosts: the list of an infra-env, and its comparison with the hosts.

use std::sync::Arc;

use model::Error;
use model::expected_hosts::{ExpectedHost, ExpectedHostList};
use model::ids::{HostId, InfraEnvId};
use rules::HostState;

use super::infra_envs::find_infra_env;
use super::{ClusterStore, ClusterTransaction, Scope};
use crate::blocking;
use crate::db::{Database, expected_hosts, hosts, infra_envs, tx};

/// Expected hosts of infra-envs.
#[derive(Debug)]
pub(crate) struct ExpectedHosts {
    pub(super) db: Database,
    pub(super) clusters: Arc<ClusterStore>,
}

impl ExpectedHosts {
    /// The list of an infra-env, compared with its hosts.
    ///
    /// Errors: NotFound – the infra-env, or its list.
    pub(crate) async fn get(&self, id: InfraEnvId) -> Result<ExpectedHostList, Error> {
        find_infra_env(&self.db, id).await?;
        let (list, rows) = tx("read expected hosts", async || {
            let mut connection = self.db.pool()?.acquire().await?;
            let list = expected_hosts::find(&mut connection, id).await?;
            Ok((
                list,
                hosts::of_infra_env(&mut connection, &self.db.keys().await, id).await?,
            ))
        })
        .await?;
        let list =
            list.ok_or_else(|| Error::not_found("list of expected hosts of infra-env", id))?;
        Ok(blocking::unless_short(rows.len() > 1, || {
            let registered: Vec<HostState> = rows
                .into_iter()
                .map(|row| HostState::new(row.record))
                .collect();
            ExpectedHostList {
                hosts: rules::host::expected_hosts::compare(&list, &registered),
            }
        }))
    }

    /// Replaces the list of an infra-env; its hosts are compared with the new one.
    ///
    /// Errors: NotFound; Invalid – a malformed entry.
    pub(crate) async fn set(
        &self,
        id: InfraEnvId,
        list: Vec<ExpectedHost>,
    ) -> Result<ExpectedHostList, Error> {
        let list = rules::host::expected_hosts::check(list)?;
        let now = service::clock::now();
        tx("store expected hosts", async || {
            let mut tx = self.db.pool()?.begin().await?;
            // Locked: an infra-env is not deleted meanwhile.
            if infra_envs::find_for_update(&mut tx, &self.db.keys().await, id)
                .await?
                .is_none()
            {
                return Err(Error::not_found("infra-env", id).into());
            }
            expected_hosts::set(&mut tx, id, &list, now).await?;
            tx.commit().await?;
            Ok(())
        })
        .await?;
        self.compare_hosts(id, Some(&list)).await?;
        self.get(id).await
    }

    /// Removes the list of an infra-env.
    ///
    /// Errors: NotFound – the infra-env, or its list.
    pub(crate) async fn delete(&self, id: InfraEnvId) -> Result<(), Error> {
        find_infra_env(&self.db, id).await?;
        let is_deleted = tx("delete expected hosts", async || {
            let mut connection = self.db.pool()?.acquire().await?;
            expected_hosts::delete(&mut connection, id).await
        })
        .await?;
        if !is_deleted {
            return Err(Error::not_found("list of expected hosts of infra-env", id));
        }
        self.compare_hosts(id, None).await
    }

    /// Compares every host of an infra-env with its new list.
    async fn compare_hosts(
        &self,
        infra_env: InfraEnvId,
        list: Option<&[ExpectedHost]>,
    ) -> Result<(), Error> {
        let list: Option<Arc<[ExpectedHost]>> = list.map(Arc::from);
        let rows = tx("list hosts", async || {
            let mut connection = self.db.pool()?.acquire().await?;
            hosts::of_infra_env(&mut connection, &self.db.keys().await, infra_env).await
        })
        .await?;
        let ids: Vec<HostId> = rows.into_iter().map(|row| row.record.id).collect();
        let mut last = None;
        for id in ids {
            let list = list.clone();
            let decide = move |change: &mut ClusterTransaction| {
                let (host, cluster) = change.host(id)?;
                let event = rules::host::expected_hosts::assign(host, cluster, list.as_deref());
                change.events.extend(event);
                change.refresh();
                Ok(())
            };
            let scope = Scope::Host(infra_env, id);
            match self
                .clusters
                .change_one("compare with expected hosts", scope, id, decide)
                .await
            {
                Ok(changed) => last = changed.refresh.or(last),
                // Deleted meanwhile.
                Err(Error::NotFound { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        // Coalesced: the last refresh of a cluster serves all its hosts.
        if let Some(refresh) = last {
            refresh.wait().await;
        }
        Ok(())
    }
}

/// The list of an infra-env alone; none without one.
pub(super) async fn expected_list(
    db: &Database,
    id: InfraEnvId,
) -> Result<Option<Vec<ExpectedHost>>, Error> {
    tx("read expected hosts", async || {
        let mut connection = db.pool()?.acquire().await?;
        expected_hosts::find(&mut connection, id).await
    })
    .await
}
