//! Owners of clusters and infra-envs, and their shares of the bounds of stored records.

use cluster_files::FileOwner;
use model::Error;
use model::ids::ClusterId;

use crate::db::{Database, RecordCounts, owners, tx};
use crate::settings::Settings;

/// A bound of stored records, and the share of one owner in it.
#[derive(Debug, Clone, Copy)]
pub(super) struct RecordBound {
    /// In the plural, as in `clusters`.
    noun: &'static str,
    /// Bound and variable.
    total: (u32, &'static str),
    /// Share and variable; 0: none.
    share: (u32, &'static str),
}

impl RecordBound {
    pub(super) fn of_clusters(settings: &Settings) -> Self {
        Self {
            noun: "clusters",
            total: (settings.max_clusters, "MAX_CLUSTERS"),
            share: (settings.max_clusters_per_owner, "MAX_CLUSTERS_PER_OWNER"),
        }
    }

    pub(super) fn of_infra_envs(settings: &Settings) -> Self {
        Self {
            noun: "infra-envs",
            total: (settings.max_infra_envs, "MAX_INFRA_ENVS"),
            share: (
                settings.max_infra_envs_per_owner,
                "MAX_INFRA_ENVS_PER_OWNER",
            ),
        }
    }

    /// Checks that `owner` may add a record to those that are counted.
    ///
    /// Errors: Conflict – the bound is reached, or the share of the owner.
    pub(super) fn check(&self, counts: RecordCounts, owner: &str) -> Result<(), Error> {
        let (noun, (limit, variable), (share, share_variable)) =
            (self.noun, self.total, self.share);
        if !owner.is_empty() && share > 0 && counts.own >= share.into() {
            return Err(Error::conflict(format!(
                "{owner} has {share} {noun}, as many as one owner may have: delete some, or raise {share_variable}"
            )));
        }
        if counts.all >= limit.into() {
            return Err(Error::conflict(format!(
                "limit of {limit} {noun} reached: delete some, or raise {variable}"
            )));
        }
        Ok(())
    }
}

/// The owner of a cluster's files.
pub(super) async fn file_owner(db: &Database, id: ClusterId) -> Result<FileOwner, Error> {
    let found = tx("find owner of files", async || {
        let mut connection = db.pool()?.acquire().await?;
        owners::of_cluster(&mut connection, id).await
    })
    .await?;
    Ok(match found {
        Some((name, clusters)) => FileOwner::new(id, name, clusters),
        None => id.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_of_an_owner_is_checked_before_the_whole() {
        let settings = Settings {
            max_clusters: 4,
            max_clusters_per_owner: 2,
            ..Settings::default()
        };
        let bound = RecordBound::of_clusters(&settings);
        let refused = |all, own, owner| {
            let refused = bound.check(RecordCounts { all, own }, owner).err();
            refused.map(|error| error.to_string()).unwrap_or_default()
        };
        assert_eq!(refused(3, 1, "alice"), "");
        assert!(refused(3, 2, "alice").contains("MAX_CLUSTERS_PER_OWNER"));
        assert!(refused(4, 1, "alice").contains("MAX_CLUSTERS"));
        assert_eq!(refused(3, 3, ""), "", "without an owner: the whole");
        assert!(refused(4, 4, "").contains("raise MAX_CLUSTERS"));
    }
}
