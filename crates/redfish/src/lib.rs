//! Redfish: BMCs that give hosts power, media and a boot source.
//!
//! A [`Bmc`] is one login to one BMC; its operations read back their effect and do not believe a status alone.
//! [`RedfishConnector`] makes it, [`boot_from`] and [`finish_installation`] are procedures, [`BmcRunner`] does a job on many
//! BMCs. Differences between vendors are rows of [`QUIRKS`].
//!
//! Invariants: credentials go to the origin of the endpoint alone, neither redirects nor links lead elsewhere; every
//! answer, list, wait and repetition has a bound; a password that was refused is not sent again.
//! Source: DMTF DSP0266 (protocol), DSP0268 (schemas).

mod access;
mod authentication;
mod bmc;
mod boot_order;
mod boot_override;
mod boot_step;
mod boot_url;
mod connector;
mod dell;
mod disks;
mod document;
mod endpoint;
mod error;
mod http;
mod image_address;
mod insert_form;
mod inventory;
mod link;
mod many;
mod media;
mod media_slot;
mod message;
mod networks;
mod patch;
mod power;
mod procedure;
mod quirks;
mod remote_media;
mod retry;
mod session;
mod system_path;
mod task;
mod timing;

pub use access::{BmcAccess, BmcCredentials, FirmwareMode};
pub use bmc::Bmc;
pub use boot_order::{BootOrder, BootOrderEntry, BootSourceKind};
pub use boot_override::{BootOverride, BootTarget};
pub use boot_step::{BootStep, StoppedPower};
pub use boot_url::{BootUrlError, ImageLoader, boot_url, boot_url_warnings, check_boot_url};
pub use connector::RedfishConnector;
pub use disks::BmcDisk;
pub use endpoint::RedfishEndpoint;
pub use error::{BmcError, InsertAttempt};
pub use insert_form::{InsertForm, InsertWay};
pub use inventory::{BmcInventory, BmcNic};
pub use many::{
    BMC_CONCURRENCY, BmcEvent, BmcJob, BmcProgress, BmcRunner, BmcTarget, BootJob, FenceJob,
    FinishJob, InventoryJob, PowerJob, PowerStateJob,
};
pub use media_slot::MediaSlot;
pub use message::RedfishMessage;
pub use networks::BmcNetworks;
pub use power::{FencedHost, PowerAction, PowerState};
pub use procedure::{BootMedium, boot_from, boot_from_disk, finish_installation};
pub use quirks::{BmcQuirks, LoginMethod, OverrideModeUse, QUIRKS, VirtualCdBoot};
pub use system_path::{SystemPathError, system_id};
pub use timing::{RedfishTiming, observation_timing};
