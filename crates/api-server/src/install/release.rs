//! What a release image says about itself.

use std::collections::BTreeMap;
use std::sync::Mutex;

/// The images of a release that an installation names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReleaseInfo {
    /// The release image itself, pinned by digest.
    pub release_image: String,
    /// Full version, `4.18.7`.
    pub version: String,
    /// Machine config operator, for `mco_image`.
    pub mco_image: String,
    /// must-gather of the platform, for the key `ocp` of `must_gather_image`.
    pub must_gather_image: String,
    /// The image that the installer program is taken from.
    pub installer_program_image: String,
}

/// Release images read so far, by their digest-pinned reference.
#[derive(Debug, Default)]
pub(super) struct Cache(pub(super) Mutex<BTreeMap<String, ReleaseInfo>>);
