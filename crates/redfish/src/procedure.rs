//! Procedures: booting a host from an image, and leaving it to its disk after the installation.

use std::fmt;

use url::Url;

use super::bmc::Bmc;
use super::boot_order::BootOrder;
use super::boot_override::BootTarget;
use super::boot_step::{BootStep, StoppedPower};
use super::boot_url::{BootUrlError, ImageLoader, boot_url_warnings, check_boot_url};
use super::error::BmcError;
use super::power::{PowerAction, PowerState};

/// The medium of a boot.
#[derive(Clone, PartialEq, Eq)]
pub enum BootMedium {
    /// A live image as virtual CD.
    VirtualMedia {
        /// Address of the image, for the BMC.
        image: Url,
        /// Its size, if it is known. Units: bytes.
        size_bytes: Option<u64>,
    },
    /// UEFI HTTP boot: keeps Secure Boot, and has no limit of size.
    UefiHttp {
        /// Address of the image or boot program, for the host's firmware.
        uri: Url,
    },
}

impl fmt::Debug for BootMedium {
    /// Without the queries of addresses, which hold tokens.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, url) = match self {
            Self::VirtualMedia { image, .. } => ("VirtualMedia", image),
            Self::UefiHttp { uri } => ("UefiHttp", uri),
        };
        f.debug_tuple(name).field(&net::web::shown(url)).finish()
    }
}

impl BootMedium {
    /// Checks the address before any BMC is asked.
    ///
    /// Errors: its loader cannot load it.
    pub fn check(&self) -> Result<(), BootUrlError> {
        let (url, loader) = self.address();
        check_boot_url(url, loader)
    }

    /// Warnings of an address that its loader may not reach or take.
    pub fn warnings(&self) -> Vec<String> {
        let (url, loader) = self.address();
        boot_url_warnings(url, loader)
    }

    /// The address, and the one that loads it.
    fn address(&self) -> (&Url, ImageLoader) {
        match self {
            Self::VirtualMedia { image, .. } => (image, ImageLoader::Bmc),
            Self::UefiHttp { uri } => (uri, ImageLoader::Firmware),
        }
    }

    fn target(&self) -> BootTarget {
        match self {
            Self::VirtualMedia { .. } => BootTarget::VirtualCd,
            Self::UefiHttp { uri } => BootTarget::UefiHttp(uri.clone()),
        }
    }
}

/// Runs a step after reporting it.
macro_rules! step {
    ($report:ident, $step:expr, $action:expr) => {{
        $report($step);
        $action.await.map_err(|error| BmcError::Step {
            step: $step,
            power: None,
            source: Box::new(error),
        })?
    }};
}

/// Boots a host from a medium. An unusable address and a BMC that cannot do it are found before the host is touched; a
/// repetition starts over.
///
/// The boot source is set while the host is off: some BMCs forget it at a power-off.
///
/// Errors: Step – the failed step and its cause, and that the host is off.
pub async fn boot_from(
    bmc: &mut Bmc,
    medium: &BootMedium,
    report: impl Fn(BootStep) + Send + Sync,
) -> Result<(), BmcError> {
    let target = medium.target();
    step!(report, BootStep::Check, check(bmc, medium, &target));
    let started = start_from(bmc, medium, &target, report).await;
    match started {
        Ok(()) => Ok(()),
        Err(error) => Err(with_power(bmc, error).await),
    }
}

/// Switches a host off, and starts it.
async fn start_from(
    bmc: &mut Bmc,
    medium: &BootMedium,
    target: &BootTarget,
    report: impl Fn(BootStep) + Send + Sync,
) -> Result<(), BmcError> {
    step!(report, BootStep::PowerOff, bmc.power(PowerAction::ForceOff));
    if let BootMedium::VirtualMedia { image, size_bytes } = medium {
        step!(
            report,
            BootStep::InsertMedium,
            bmc.insert_image(image, *size_bytes)
        );
    }
    step!(report, BootStep::SetBootSource, bmc.boot_once(target));
    step!(report, BootStep::PowerOn, bmc.power(PowerAction::On));
    Ok(())
}

/// The failure of a step, with the power that the host has now: it may have been switched off before.
async fn with_power(bmc: &mut Bmc, mut error: BmcError) -> BmcError {
    if let BmcError::Step { power, .. } = &mut error {
        *power = match bmc.power_state().await {
            Ok(PowerState::Off) => Some(StoppedPower::Off),
            Ok(PowerState::On | PowerState::PoweringOn) => None,
            Ok(_) | Err(_) => Some(StoppedPower::Unknown),
        };
    }
    error
}

async fn check(bmc: &mut Bmc, medium: &BootMedium, target: &BootTarget) -> Result<(), BmcError> {
    medium.check()?;
    bmc.check_power_state().await?;
    if let BootMedium::VirtualMedia { image, size_bytes } = medium {
        bmc.check_image(image, *size_bytes).await?;
    }
    bmc.check_boot_target(target).await
}

/// Leaves a host to its disk after the installation: no image, no override. The boot order is the BMC's word on the next
/// starts.
///
/// Errors: Step – the failed step and its cause.
pub async fn finish_installation(
    bmc: &mut Bmc,
    report: impl Fn(BootStep) + Send + Sync,
) -> Result<BootOrder, BmcError> {
    step!(report, BootStep::EjectMedium, eject(bmc));
    step!(report, BootStep::ClearBootSource, bmc.clear_boot_override());
    Ok(step!(report, BootStep::ReadBootOrder, bmc.boot_order()))
}

/// Mends a host that booted its image again after the installation: image and override end, and it starts from its disk.
///
/// Errors: Step – the failed step and its cause.
pub async fn boot_from_disk(
    bmc: &mut Bmc,
    report: impl Fn(BootStep) + Send + Sync,
) -> Result<BootOrder, BmcError> {
    let order = finish_installation(bmc, &report).await?;
    match start_from_disk(bmc, report).await {
        Ok(()) => Ok(order),
        Err(error) => Err(with_power(bmc, error).await),
    }
}

async fn start_from_disk(
    bmc: &mut Bmc,
    report: impl Fn(BootStep) + Send + Sync,
) -> Result<(), BmcError> {
    step!(report, BootStep::PowerOff, bmc.power(PowerAction::ForceOff));
    step!(
        report,
        BootStep::SetBootSource,
        bmc.boot_once(&BootTarget::Disk)
    );
    step!(report, BootStep::PowerOn, bmc.power(PowerAction::On));
    Ok(())
}

/// Ejects images; a host without drives has none.
async fn eject(bmc: &mut Bmc) -> Result<(), BmcError> {
    match bmc.eject_images().await {
        Err(BmcError::Unsupported { .. }) => Ok(()),
        done => done,
    }
}
