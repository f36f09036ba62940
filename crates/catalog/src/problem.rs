//! Validation errors of a catalog.

use std::fmt;

use crate::DocumentOrigin;

/// A broken rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogProblem {
    /// The offending document; `None` when no single one is at fault.
    pub origin: Option<DocumentOrigin>,
    /// Package of the document; empty when unknown.
    pub package: String,
    pub rule: Rule,
    /// Message with the remedy; begins as opm's does.
    pub text: String,
}

/// All validation errors: unreadable files in walk order, then package by package.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CatalogProblems(pub Vec<CatalogProblem>);

macro_rules! rules {
    ($($(#[$doc:meta])* $rule:ident = $name:literal,)*) => {
        /// Validation rules. Source: operator-registry, `alpha/declcfg/declcfg_to_model.go`, `alpha/model/model.go`,
        /// unless noted.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Rule {
            $($(#[$doc])* $rule,)*
        }

        impl Rule {
            /// All rules.
            pub const ALL: &[Self] = &[$(Self::$rule),*];

            /// Identifier in reports.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$rule => $name,)*
                }
            }
        }
    };
}

rules! {
    /// A file or folder can be read.
    Readable = "readable",
    /// A file is JSON or YAML.
    Syntax = "syntax",
    /// A document is an object with a schema; schema, package and name are strings, and no two keys are equal under
    /// case folding. Source: `alpha/declcfg/declcfg.go`.
    Document = "document",
    /// Members have the types of their schema.
    Members = "members",
    /// A package has a name.
    PackageNamed = "package-named",
    /// A package has one `olm.package` document.
    PackageUnique = "package-unique",
    /// A package's name is a DNS-1123 label.
    PackageName = "package-name",
    /// A channel's package exists.
    ChannelPackage = "channel-package",
    /// A channel has a name.
    ChannelNamed = "channel-named",
    /// Channel names are unique in a package.
    ChannelUnique = "channel-unique",
    /// Entries of a channel are unique.
    EntryUnique = "entry-unique",
    /// A bundle names its package.
    BundlePackage = "bundle-package",
    /// A bundle's package exists.
    BundlePackageKnown = "bundle-package-known",
    /// A bundle has a name.
    BundleNamed = "bundle-named",
    /// Bundle names are unique in a package.
    BundleUnique = "bundle-unique",
    /// Property values fit their type.
    Property = "property",
    /// A bundle has exactly one `olm.package` property.
    PackageProperty = "package-property",
    /// The `olm.package` property names the bundle's package.
    PackagePropertyName = "package-property-name",
    /// Images are valid references.
    PullSpec = "pull-spec",
    /// Versions are semantic versions.
    Version = "version",
    /// Releases are dot-separated pre-release identifiers.
    Release = "release",
    /// A bundle is an entry of some channel.
    BundleInChannel = "bundle-in-channel",
    /// Entries of a channel have `olm.bundle` documents.
    EntryBundle = "entry-bundle",
    /// Members of deprecations have the types of their schema.
    DeprecationsMembers = "deprecations-members",
    /// Deprecations name their package.
    DeprecationsPackage = "deprecations-package",
    /// The package of deprecations exists.
    DeprecationsPackageKnown = "deprecations-package-known",
    /// A package has at most one `olm.deprecations` document.
    DeprecationsUnique = "deprecations-unique",
    /// A deprecation names the schema of a package, channel or bundle.
    DeprecationSchema = "deprecation-schema",
    /// Deprecation references are unique.
    DeprecationUnique = "deprecation-unique",
    /// The deprecated channel or bundle exists.
    DeprecationTarget = "deprecation-target",
    /// The reference of a deprecated package has no name.
    DeprecationPackageName = "deprecation-package-name",
    /// A deprecation has a message.
    DeprecationMessage = "deprecation-message",
    /// A package names its default channel.
    DefaultChannel = "default-channel",
    /// The default channel exists.
    DefaultChannelKnown = "default-channel-known",
    /// A package has a channel.
    PackageChannels = "package-channels",
    /// A channel has a bundle.
    ChannelEntries = "channel-entries",
    /// A channel has exactly one head.
    ChannelHead = "channel-head",
    /// The replaces chain has no cycle.
    ReplacesCycle = "replaces-cycle",
    /// No bundle is stranded: each is in the replaces chain or skipped. Source: opm from 1.58 on stops before skipped
    /// entries.
    Stranded = "stranded",
    /// Versions of bundles are unique in a package.
    UniqueVersions = "unique-versions",
    /// Skips are not empty.
    Skips = "skips",
    /// A skipRange parses.
    SkipRange = "skip-range",
    /// A bundle has an image or `olm.bundle.object` properties.
    BundleImage = "bundle-image",
    /// The name of a bundle with a release is `PACKAGE-vVERSION-RELEASE`.
    ReleaseName = "release-name",
    /// A version with a release has no build metadata.
    ReleaseBuild = "release-build",
    /// Data of `olm.bundle.object` is JSON or YAML.
    BundleObject = "bundle-object",
    /// A bundle has at most one `olm.csv.metadata` property. Source: `opm serve`; `opm validate` does not check it.
    CsvMetadata = "csv-metadata",
    /// Name and package of a custom document are strings, and no two keys are equal under case folding. Source:
    /// `alpha/declcfg/declcfg.go`.
    CustomDocument = "custom-document",
    /// Custom schemas and their packages match `^[a-zA-Z0-9][a-zA-Z0-9._-]*$`. Source: `opm serve`; `opm validate` does
    /// not check it.
    CustomSchema = "custom-schema",
}

/// Rules that opm got after it served file-based catalogs, with the version that introduced each. Catalogs that break
/// them are served by older versions, which ignore the offending value. Source: history of operator-registry.
const YOUNG: &[(&str, &[Rule])] = &[
    ("1.28", &[Rule::CustomDocument]),
    (
        "1.32",
        &[
            Rule::DeprecationsMembers,
            Rule::DeprecationsPackage,
            Rule::DeprecationsPackageKnown,
            Rule::DeprecationsUnique,
            Rule::DeprecationSchema,
            Rule::DeprecationUnique,
            Rule::DeprecationTarget,
            Rule::DeprecationPackageName,
            Rule::DeprecationMessage,
        ],
    ),
    ("1.41", &[Rule::PackageName]),
    ("1.47", &[Rule::UniqueVersions]),
    ("1.58", &[Rule::Stranded]),
    (
        "1.62",
        &[Rule::Release, Rule::ReleaseName, Rule::ReleaseBuild],
    ),
    ("1.64", &[Rule::PullSpec]),
    ("1.69", &[Rule::SkipRange, Rule::CustomSchema]),
];

impl Rule {
    /// The first version of opm with a rule that older versions lack; `None` for rules of all versions that serve
    /// file-based catalogs.
    pub fn since(self) -> Option<&'static str> {
        let young = YOUNG.iter().find(|(_, rules)| rules.contains(&self));
        young.map(|(version, _)| *version)
    }
}

impl CatalogProblems {
    /// The oldest version of opm that refuses a catalog for them; `None` when some version refuses it for a rule that
    /// all have, or without problems.
    pub fn since(&self) -> Option<&'static str> {
        let oldest = YOUNG.iter().find(|(_, rules)| {
            let mut problems = self.0.iter();
            problems.any(|problem| rules.contains(&problem.rule))
        });
        let is_young = self.0.iter().all(|problem| problem.rule.since().is_some());
        oldest.filter(|_| is_young).map(|(version, _)| *version)
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// `file:line: package: text [rule]`.
impl fmt::Display for CatalogProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(origin) = &self.origin {
            write!(f, "{origin}: ")?;
        }
        if !self.package.is_empty() {
            write!(f, "package {}: ", self.package)?;
        }
        write!(f, "{} [{}]", self.text, self.rule)
    }
}

impl fmt::Display for CatalogProblems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.0.iter().enumerate() {
            let newline = if index == 0 { "" } else { "\n" };
            write!(f, "{newline}{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for CatalogProblems {}

impl From<CatalogProblem> for CatalogProblems {
    fn from(problem: CatalogProblem) -> Self {
        Self(vec![problem])
    }
}
