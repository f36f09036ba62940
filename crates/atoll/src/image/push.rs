//! `atoll image push`: a live image becomes an artifact, which registries store and `atoll mirror` carries.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use clap::Args;
use model::size::mib;
use oci::{Reference, live_image};
use oci_client::client::BlobSource;
use service::runtime;
use service::{Error, ResultExt as _};

use super::input::{open, sha256_of};
use crate::catalog::RegistryAccessArgs;
use crate::terminal;

const REPORT_INTERVAL: Duration = Duration::from_secs(1);

/// Arguments of `push`.
#[derive(Debug, Clone, Args)]
pub(crate) struct PushArgs {
    /// Live image
    image: PathBuf,
    /// host[:port]/repository[:tag], or oci://folder:repository[:tag] for `additionalImages` of an image set
    reference: String,
    #[command(flatten)]
    access: RegistryAccessArgs,
}

/// Pushes the image.
///
/// Errors: it is no live image or is truncated; the registry's.
pub(super) fn push(arguments: &PushArgs) -> Result<(), Error> {
    let doing = || format!("pushing to {}", arguments.reference);
    let failed = |error: model::Error| Error::new(doing(), error);
    let reference = Reference::parse_local(&arguments.reference).map_err(failed)?;
    let image = open(&arguments.image)?;
    let checked = image.check_sizes(&arguments.image);
    checked.doing("opening the image")?;
    let digest = format!("sha256:{}", sha256_of(image.whole())?);
    let title = format!("{}.iso", image.volume_id);
    let digest = digest.parse().map_err(failed)?;
    let layer = live_image::layer(digest, image.length, title);
    let client = arguments.access.client()?;
    let (sent, source) = (Arc::default(), BlobSource::File(arguments.image.clone()));
    let pushed = oci_client::live_image::push(&client, &reference, &layer, &source, &sent);
    let pushed = runtime::block_on(while_shown(pushed, &sent, layer.size))?;
    let manifest = pushed.map_err(failed)?;
    terminal::clear_progress();
    terminal::print(&format!("{reference}@{}", manifest.digest));
    Ok(())
}

/// Shows the progress of an upload until it ends.
async fn while_shown<T>(upload: impl Future<Output = T>, sent: &AtomicU64, size: u64) -> T {
    let mut upload = std::pin::pin!(upload);
    let mut interval = tokio::time::interval(REPORT_INTERVAL);
    loop {
        tokio::select! {
            done = &mut upload => return done,
            _ = interval.tick() => {
                let sent = mib(sent.load(Ordering::Relaxed));
                terminal::progress(&format!("{sent} of {}", mib(size)));
            }
        }
    }
}
