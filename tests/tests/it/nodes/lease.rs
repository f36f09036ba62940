//! Two people repair at the same time.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use kubernetes::{ClusterAddress, ClusterLease, KubernetesCluster, LeaseTerms, REPAIR_LEASE};

use super::cluster::Cluster;

/// Long enough for a renewal in between.
const TERMS: LeaseTerms = LeaseTerms {
    duration: Duration::from_secs(3),
    poll_interval: Duration::from_millis(100),
};

#[tokio::test(flavor = "multi_thread")]
async fn one_repair_at_a_time() -> Result<()> {
    let Some(cluster) = Cluster::start().await? else {
        return Ok(());
    };
    let api = KubernetesCluster::new(ClusterAddress {
        kubeconfig: Some(&cluster.kubeconfig),
        context: None,
    })
    .await?;

    // A live one: the second person learns whose it is.
    let mut first = ClusterLease::take(&api, &REPAIR_LEASE, "alice@one, process 1", TERMS).await?;
    let (stop, mut stopped) = tokio::sync::oneshot::channel();
    let renewing = tokio::spawn(async move {
        while stopped.try_recv().is_err() {
            first.renew().await?;
            tokio::time::sleep(TERMS.duration / 10).await;
        }
        Ok::<_, model::Error>(first)
    });
    let second = ClusterLease::take(&api, &REPAIR_LEASE, "bob@two, process 2", TERMS).await;
    let reason = second.err().context("two have the lease")?.to_string();
    ensure!(reason.contains("alice@one, process 1"), "{reason}");
    ensure!(reason.contains("since 20"), "{reason}");
    stop.send(()).ok();
    let mut abandoned = renewing.await??;

    // An abandoned one is taken over, and its holder may change nothing more.
    let second = ClusterLease::take(&api, &REPAIR_LEASE, "bob@two, process 2", TERMS).await?;
    let reason = abandoned
        .renew()
        .await
        .err()
        .context("two have the lease")?;
    ensure!(reason.to_string().contains("bob@two"), "{reason}");
    abandoned.release().await?;
    let third = ClusterLease::take(&api, &REPAIR_LEASE, "carol@three, process 3", TERMS);
    let (third, other) = tokio::join!(
        third,
        ClusterLease::take(&api, &REPAIR_LEASE, "dave@four, process 4", TERMS)
    );
    // Of two that wait for an abandoned one, one gets it.
    ensure!(third.is_ok() != other.is_ok(), "{third:?} {other:?}");
    drop(second);
    let holder = third.or(other)?;
    holder.release().await?;
    ClusterLease::take(&api, &REPAIR_LEASE, "erin@five, process 5", TERMS)
        .await?
        .release()
        .await?;
    Ok(())
}
