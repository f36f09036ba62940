//! The images that hosts run to install a cluster: those of the settings, else those of the release.
//!
//! They are read when a cluster or an infra-env is created, so that nothing is missing when hosts boot, and stored
//! beside its record.

use std::sync::Arc;

use ::preparation::InstallContext;
use model::Error;
use model::cluster::ClusterKind;
use model::infra_env::InfraEnv;
use model::release_payload::{Component, ComponentImages};
use model::versions::CpuArchitecture;
use secrecy::SecretString;

use super::StoredSnapshot;
use super::known_release::KnownRelease;
use super::offer::CurrentOffer;

/// Source of the images.
#[derive(Debug)]
pub(crate) struct ComponentSource {
    /// Those of the settings.
    pub(super) set: ComponentImages,
    pub(super) offer: Arc<CurrentOffer>,
    pub(super) install: InstallContext,
}

impl ComponentSource {
    fn is_complete(&self) -> bool {
        self.set.missing().next().is_none()
    }

    /// The release that a new cluster installs; none if the settings name all images.
    ///
    /// Errors: Invalid – the release cannot be read, or lacks an image that the settings do not name; the pull secret
    /// has no entry for one of its registries; Unavailable – the registry.
    pub(super) async fn of_release(
        &self,
        image: &str,
        pull_secret: &str,
    ) -> Result<Option<KnownRelease>, Error> {
        if self.is_complete() {
            return Ok(None);
        }
        let secret = SecretString::from(pull_secret.to_owned());
        let read = self.install.release(image, &secret).await;
        let release = read.map_err(|failure| {
            if failure.is_temporary {
                let what = "the registry of the release image, whose images hosts run";
                return Error::unavailable(what, failure);
            }
            let settings = settings(self.set.missing());
            let reason = format!(
                "{failure}: hosts run images of the release, unless the operator sets {settings}"
            );
            Error::invalid("openshift_version", reason)
        })?;
        let components = self.set.or(&release.components);
        if let Some(missing) = components.missing().next() {
            let (name, setting) = (missing.name, missing.setting);
            let reason = format!(
                "release {} has no image {name}, as those before 4.12: the operator sets {setting} to an image of it",
                release.version
            );
            return Err(Error::invalid("openshift_version", reason));
        }
        self.check_pull_secret(&release.components, pull_secret)?;
        Ok(Some(KnownRelease::from(&release)))
    }

    /// Checks that a pull secret covers the registries of the images of a release.
    ///
    /// Errors: Invalid – it does not.
    pub(super) fn check_pull_secret(
        &self,
        release: &ComponentImages,
        pull_secret: &str,
    ) -> Result<(), Error> {
        let components = self.set.or(release);
        let images: Vec<&str> = components.known().collect();
        rules::input::pull_secret(pull_secret, &images, &self.offer.get().public_registries)
    }

    /// The images for the hosts of a new infra-env: those of its cluster's release, else of its version's, else of the
    /// default. None if the settings name all, or if there is no release and the hosts can do without: their agent is
    /// inside the discovery image, and the release of the cluster that they are bound to has the others.
    ///
    /// Errors: as [`Self::of_release`].
    pub(super) async fn of_infra_env(
        &self,
        infra_env: &InfraEnv,
        cluster: Option<&StoredSnapshot>,
        pull_secret: &str,
    ) -> Result<Option<ComponentImages>, Error> {
        if self.is_complete() {
            return Ok(None);
        }
        let known = cluster.map(|stored| &stored.release.components);
        if let Some(known) = known.filter(|known| self.set.or(known).missing().next().is_none()) {
            return Ok(Some(known.clone()));
        }
        // An installed cluster has no release here that its new hosts could take the images of.
        let is_day2 =
            cluster.is_some_and(|it| it.snapshot.cluster.kind == ClusterKind::AddHostsCluster);
        let is_needed = is_day2 || !infra_env.embedded_agent;
        let read = match self.release_for(infra_env, cluster) {
            Some(image) => self.of_release(&image, pull_secret).await,
            None => Err(Error::invalid("openshift_version", self.without_release())),
        };
        match read {
            Ok(release) => Ok(release.map(|release| release.components)),
            Err(error) if is_needed => Err(error),
            Err(error) => {
                tracing::warn!(infra_env.id = %infra_env.id, error = error.chain(), "images of hosts unknown");
                Ok(None)
            }
        }
    }

    fn release_for(
        &self,
        infra_env: &InfraEnv,
        cluster: Option<&StoredSnapshot>,
    ) -> Option<String> {
        let own = cluster.map(|stored| stored.snapshot.cluster.ocp_release_image.clone());
        if let Some(own) = own.filter(|image| !image.is_empty()) {
            return Some(own);
        }
        let offer = self.offer.get();
        let architecture = infra_env
            .cpu_architecture
            .unwrap_or(CpuArchitecture::X86_64);
        let of_version = offer.release(&infra_env.openshift_version, architecture);
        let default = || offer.releases.iter().find(|release| release.default);
        let of_version = of_version.map(|release| release.image).ok();
        of_version.or_else(|| default().map(|release| release.url.clone()))
    }

    fn without_release(&self) -> String {
        let settings = settings(self.set.missing());
        format!(
            "no release is on offer whose images hosts could run: mirror one and name it in RELEASE_IMAGES, or set \
             {settings}"
        )
    }
}

fn settings(missing: impl Iterator<Item = &'static Component>) -> String {
    let names: Vec<_> = missing.map(|component| component.setting).collect();
    names.join(", ")
}
