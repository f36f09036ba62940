//! Versions of the configuration.

/// Versions of the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConfigVersion {
    V1Alpha2,
    V2Alpha1,
}

impl ConfigVersion {
    pub(super) const ALL: &'static [Self] = &[Self::V1Alpha2, Self::V2Alpha1];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::V1Alpha2 => "v1alpha2",
            Self::V2Alpha1 => "v2alpha1",
        }
    }

    /// The version of an `apiVersion` of any group.
    pub(super) fn of(api_version: &str) -> Option<Self> {
        let (_, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        let mut all = Self::ALL.iter().copied();
        all.find(|it| it.name() == version)
    }
}
