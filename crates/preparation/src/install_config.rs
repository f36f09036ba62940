//! Text of the install-config.

use model::Error;
use rules::install_config::{self, ImageMirror};
use secrecy::ExposeSecret;

use crate::context::{InstallContext, PreparationInput};

/// The install-config as JSON, a subset of YAML.
///
/// Errors: `Invalid` – a member that the installer needs is missing, or the overrides do not fit.
pub fn build(ctx: &InstallContext, input: &PreparationInput) -> Result<String, Error> {
    let mirrors = ctx.options().registry.mirrors.get();
    let mut sources: Vec<ImageMirror> = mirrors
        .iter()
        .flat_map(|mirrors| mirrors.mirrors.sources())
        .filter(|source| !source.mirrors.is_empty())
        .map(|source| ImageMirror {
            source: source.location.to_owned(),
            mirrors: source.mirrors.into_iter().map(str::to_owned).collect(),
        })
        .collect();
    let catalogs = &ctx.options().catalogs;
    for catalog in catalogs.of(&input.snapshot.cluster.openshift_version) {
        for (source, mirrors) in catalog.mirrors {
            // Those of releases and of the configuration win.
            if !sources.iter().any(|known| known.source == source) {
                let mirrors = mirrors.into_iter().collect();
                sources.push(ImageMirror { source, mirrors });
            }
        }
    }
    let trust_bundles: Vec<String> = mirrors
        .as_ref()
        .and_then(|mirrors| mirrors.ca_bundle.clone())
        .into_iter()
        .chain(
            input
                .infra_envs
                .iter()
                .map(|infra_env| infra_env.additional_trust_bundle.clone()),
        )
        .filter(|pem| !pem.trim().is_empty())
        .collect();
    let config = install_config::build(
        &input.snapshot,
        &install_config::InstallConfigContext {
            pull_secret: input.pull_secret.expose_secret(),
            mirrors: &sources,
            trust_bundles: &trust_bundles,
        },
    )?;
    Ok(config.to_string())
}
