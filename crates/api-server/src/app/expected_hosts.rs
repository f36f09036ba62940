//! Use cases of expected hosts: the list of an infra-env, and its comparison with the hosts.

use std::sync::Arc;

use model::Error;
use model::expected_hosts::{ExpectedHost, ExpectedHostList};
use model::ids::{HostId, InfraEnvId};
use rules::HostState;

use super::{ApiServer, ClusterTransaction, Scope};
use crate::blocking;
use crate::db::{expected_hosts, hosts, infra_envs, tx};

impl ApiServer {
    /// The list of an infra-env, compared with its hosts.
    ///
    /// Errors: NotFound – the infra-env, or its list.
    pub(crate) async fn expected_hosts(&self, id: InfraEnvId) -> Result<ExpectedHostList, Error> {
        self.infra_env_row(id).await?;
        let (list, rows) = tx("read expected hosts", async || {
            let mut connection = self.pool()?.acquire().await?;
            let list = expected_hosts::find(&mut connection, id).await?;
            Ok((
                list,
                hosts::of_infra_env(&mut connection, &self.keys().await, id).await?,
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

    /// The list of an infra-env alone; none without one.
    pub(super) async fn expected_list(
        &self,
        id: InfraEnvId,
    ) -> Result<Option<Vec<ExpectedHost>>, Error> {
        tx("read expected hosts", async || {
            let mut connection = self.pool()?.acquire().await?;
            expected_hosts::find(&mut connection, id).await
        })
        .await
    }

    /// Replaces the list of an infra-env; its hosts are compared with the new one.
    ///
    /// Errors: NotFound; Invalid – a malformed entry.
    pub(crate) async fn set_expected_hosts(
        &self,
        id: InfraEnvId,
        list: Vec<ExpectedHost>,
    ) -> Result<ExpectedHostList, Error> {
        let list = rules::host::expected_hosts::check(list)?;
        let now = service::clock::now();
        tx("store expected hosts", async || {
            let mut tx = self.pool()?.begin().await?;
            // Locked: an infra-env is not deleted meanwhile.
            if infra_envs::find_for_update(&mut tx, &self.keys().await, id)
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
        self.expected_hosts(id).await
    }

    /// Removes the list of an infra-env.
    ///
    /// Errors: NotFound – the infra-env, or its list.
    pub(crate) async fn delete_expected_hosts(&self, id: InfraEnvId) -> Result<(), Error> {
        self.infra_env_row(id).await?;
        let is_deleted = tx("delete expected hosts", async || {
            let mut connection = self.pool()?.acquire().await?;
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
            let mut connection = self.pool()?.acquire().await?;
            hosts::of_infra_env(&mut connection, &self.keys().await, infra_env).await
        })
        .await?;
        let ids: Vec<HostId> = rows.into_iter().map(|row| row.record.id).collect();
        let mut last = None;
        for id in ids {
            let (app, list) = (self.clone(), list.clone());
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
