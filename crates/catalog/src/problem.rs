//! What is wrong with a catalog.

use std::fmt;

use crate::DocumentOrigin;

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogProblem {
    /// Where; nothing where no single document is to blame.
    pub origin: Option<DocumentOrigin>,
    /// Whose; empty where that is not known.
    pub package: String,
    pub rule: Rule,
    /// What is wrong, and what to do about it.
    pub text: String,
}

/// All that is wrong: what cannot be read in the order of the files, then package by package.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CatalogProblems(pub Vec<CatalogProblem>);

macro_rules! rules {
    ($($(#[$doc:meta])* $rule:ident = $name:literal,)*) => {
        /// What a catalog has to keep to.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Rule {
            $($(#[$doc])* $rule,)*
        }

        impl Rule {
            /// Every one.
            pub const ALL: &[Self] = &[$(Self::$rule),*];

            /// How people and programs call it.
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
    /// A document is an object with a schema; schema, package and name are texts, and no two members have names that
    /// differ in case only.
    Document = "document",
    /// Members have the types that their schema gives them.
    Members = "members",
    /// A package has a name.
    PackageNamed = "package-named",
    /// A package is described once.
    PackageUnique = "package-unique",
    /// A package's name is a label of DNS.
    PackageName = "package-name",
    /// A channel is of a package that is there.
    ChannelPackage = "channel-package",
    /// A channel has a name.
    ChannelNamed = "channel-named",
    /// A channel is described once.
    ChannelUnique = "channel-unique",
    /// A bundle is in a channel once.
    EntryUnique = "entry-unique",
    /// A bundle says of which package it is.
    BundlePackage = "bundle-package",
    /// The package that it names is there.
    BundlePackageKnown = "bundle-package-known",
    /// A bundle has a name.
    BundleNamed = "bundle-named",
    /// A bundle is described once.
    BundleUnique = "bundle-unique",
    /// Properties have the values that their type asks for.
    Property = "property",
    /// A bundle has one `olm.package` property.
    PackageProperty = "package-property",
    /// That property names the bundle's package.
    PackagePropertyName = "package-property-name",
    /// Images are named by valid references.
    PullSpec = "pull-spec",
    /// Versions are semantic versions.
    Version = "version",
    /// Releases are identifiers with dots between.
    Release = "release",
    /// A bundle is in a channel.
    BundleInChannel = "bundle-in-channel",
    /// The bundles of a channel are there.
    EntryBundle = "entry-bundle",
    /// Deprecations say of which package they are.
    DeprecationsPackage = "deprecations-package",
    /// The package that they name is there.
    DeprecationsPackageKnown = "deprecations-package-known",
    /// A package has one document of deprecations.
    DeprecationsUnique = "deprecations-unique",
    /// A deprecation names the schema of a package, channel or bundle.
    DeprecationSchema = "deprecation-schema",
    /// A thing is deprecated once.
    DeprecationUnique = "deprecation-unique",
    /// What is deprecated is there.
    DeprecationTarget = "deprecation-target",
    /// The deprecation of a package repeats no name.
    DeprecationPackageName = "deprecation-package-name",
    /// A deprecation says why.
    DeprecationMessage = "deprecation-message",
    /// A package names its default channel.
    DefaultChannel = "default-channel",
    /// The default channel is there.
    DefaultChannelKnown = "default-channel-known",
    /// A package has a channel.
    PackageChannels = "package-channels",
    /// A channel has a bundle.
    ChannelEntries = "channel-entries",
    /// A channel has one head.
    ChannelHead = "channel-head",
    /// What is replaced does not lead back.
    ReplacesCycle = "replaces-cycle",
    /// Every bundle of a channel can be upgraded to its head.
    Stranded = "stranded",
    /// No two bundles of a package have one version.
    UniqueVersions = "unique-versions",
    /// What is skipped has a name.
    Skips = "skips",
    /// What is skipped by version is a range.
    SkipRange = "skip-range",
    /// A bundle has an image, or carries its objects itself.
    BundleImage = "bundle-image",
    /// The name of a bundle with a release has its version and release.
    ReleaseName = "release-name",
    /// A version with a release says nothing of its build.
    ReleaseBuild = "release-build",
    /// Objects that a bundle carries are JSON or YAML.
    BundleObject = "bundle-object",
    /// A bundle has one `olm.csv.metadata` property at most.
    CsvMetadata = "csv-metadata",
    /// Schemas of an author's own, and their packages, have plain names.
    CustomSchema = "custom-schema",
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
