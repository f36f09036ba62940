//! Validated bundles.

use std::borrow::Cow;

use serde::Serialize;

use crate::check::{ProblemReport, pull_spec_flaw};
use crate::csv::{CsvMetadata, to_json};
use crate::schema::decode::decode;
use crate::schema::{
    BundleDocument, BundleObject, ChannelProperty, Gvk, PackageProperty, Property, RelatedImage,
    RequiredPackage, kind,
};
use crate::version::{BundleRelease, BundleVersion};
use crate::{DocumentOrigin, Rule, yaml_to_json};

/// A valid bundle. It borrows from its document.
#[derive(Debug)]
pub struct Bundle<'a> {
    pub package: &'a str,
    pub name: &'a str,
    pub origin: &'a DocumentOrigin,
    /// Bundle image; empty when the bundle has its manifests inline.
    pub image: Cow<'a, str>,
    pub version: BundleVersion,
    /// The version, verbatim.
    pub version_text: Cow<'a, str>,
    /// Release of the version; usually none.
    pub release: BundleRelease,
    /// All properties, verbatim.
    pub properties: Vec<Property<'a>>,
    pub provided_apis: Vec<Gvk<'a>>,
    pub required_apis: Vec<Gvk<'a>>,
    pub dependencies: Vec<BundleDependency<'a>>,
    pub related_images: Vec<RelatedImage<'a>>,
    /// Deprecation message.
    pub deprecation: Option<Cow<'a, str>>,
}

/// A dependency of a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BundleDependency<'a> {
    /// `olm.gvk` or `olm.package`.
    pub kind: &'static str,
    /// JSON in the normal form.
    pub value: Cow<'a, str>,
}

impl<'a> Bundle<'a> {
    /// Parses the properties and validates the bundle by itself.
    pub(super) fn read(
        name: &'a str,
        origin: &'a DocumentOrigin,
        document: BundleDocument<'a>,
        report: &mut ProblemReport<'a>,
    ) -> Option<(Self, InstallProperties<'a>)> {
        let mut reading = BundleReader {
            name,
            origin,
            report,
        };
        reading.check_images(&document);
        let typed = reading.properties(&document.properties);
        let package = reading.package_property(typed.packages)?;
        let version = reading.version(&package);
        // Versions of opm without releases ignore a malformed one.
        let release = reading.release(&package).unwrap_or_default();
        let version = version?;
        reading.check_release(&version, &release);
        let bundle = Self {
            package: reading.report.package(),
            name,
            origin,
            image: document.image,
            version,
            version_text: package.version,
            release,
            properties: document.properties,
            provided_apis: typed.provided,
            required_apis: typed.required,
            dependencies: typed.dependencies,
            related_images: document.related_images,
            deprecation: None,
        };
        Some((bundle, typed.load))
    }

    /// Properties that clients get, without manifests and CSV metadata. Source: operator-registry,
    /// `pkg/api/model_to_api.go`.
    pub fn served_properties(&self) -> impl Iterator<Item = &Property<'a>> {
        self.properties.iter().filter(|property| {
            ![kind::BUNDLE_OBJECT, kind::CSV_METADATA].contains(&&*property.kind)
        })
    }

    /// Version and release: unique in a package.
    pub fn full_version(&self) -> String {
        full_version(&self.version, &self.release)
    }
}

fn full_version(version: &BundleVersion, release: &BundleRelease) -> String {
    if release.is_empty() {
        version.to_string()
    } else {
        format!("{version}-{release}")
    }
}

#[derive(Default)]
struct Typed<'a> {
    packages: Vec<PackageProperty<'a>>,
    provided: Vec<Gvk<'a>>,
    required: Vec<Gvk<'a>>,
    dependencies: Vec<BundleDependency<'a>>,
    load: InstallProperties<'a>,
}

/// Invalid property.
enum PropertyError {
    Value(String),
    /// The value is valid, the object in it is not.
    Object(String),
}

impl From<String> for PropertyError {
    fn from(text: String) -> Self {
        Self::Value(text)
    }
}

impl<'a> Typed<'a> {
    fn add(&mut self, property: &Property<'a>) -> Result<(), PropertyError> {
        let value = property.value();
        match &*property.kind {
            _ if value.is_empty() => {
                return Err(PropertyError::Value(
                    "unexpected end of JSON input".to_owned(),
                ));
            }
            kind::PACKAGE => self.packages.push(decode(value)?),
            kind::GVK => self.provided.push(decode(value)?),
            kind::GVK_REQUIRED => {
                self.required.push(decode(value)?);
                self.depend(kind::GVK, value);
            }
            kind::PACKAGE_REQUIRED => {
                let required: RequiredPackage<'_> = decode(value)?;
                self.depend(kind::PACKAGE, range_property(&required));
            }
            kind::CSV_METADATA => self.load.metadata.push(decode(value)?),
            kind::CHANNEL => drop(decode::<ChannelProperty<'_>>(value)?),
            kind::BUNDLE_OBJECT => {
                let BundleObject { data } = decode(value)?;
                let object = object(data).map_err(PropertyError::Object)?;
                self.load.objects.push(object);
            }
            _ => {}
        }
        Ok(())
    }

    fn depend(&mut self, kind: &'static str, value: impl Into<Cow<'a, str>>) {
        let value = value.into();
        self.dependencies.push(BundleDependency { kind, value });
    }
}

/// The dependency value of `olm.package.required`: its range under the name `version`. Source: operator-registry,
/// `pkg/api/model_to_api.go`.
fn range_property(required: &RequiredPackage<'_>) -> String {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct PackageDependency<'a> {
        package_name: &'a str,
        version: &'a str,
    }
    let asked = PackageDependency {
        package_name: &required.package_name,
        version: &required.version_range,
    };
    to_json(&asked)
}

/// Parser and validator of a bundle.
struct BundleReader<'r, 'a> {
    name: &'a str,
    origin: &'a DocumentOrigin,
    report: &'r mut ProblemReport<'a>,
}

impl<'a> BundleReader<'_, 'a> {
    fn add(&mut self, rule: Rule, text: impl Into<String>) {
        self.report
            .add_of_bundle(self.name, rule, self.origin, text);
    }

    fn check_images(&mut self, document: &BundleDocument<'_>) {
        let (package, name) = (self.report.package(), self.name);
        let bundle = format!("package {package:?} bundle {name:?}");
        let related = document.related_images.iter().enumerate();
        let related = related.map(|(i, image)| (format!("relatedImages[{i}].image"), &image.image));
        for (what, image) in [("image".to_owned(), &document.image)]
            .into_iter()
            .chain(related)
        {
            if let Some(flaw) = pull_spec_flaw(image).filter(|_| !image.is_empty()) {
                let text = format!("{bundle} {what}: invalid image pull spec {image:?}: {flaw}");
                self.add(Rule::PullSpec, text);
            }
        }
        let carries = |property: &Property<'_>| property.kind == kind::BUNDLE_OBJECT;
        if document.image.is_empty() && !document.properties.iter().any(carries) {
            let text = format!("invalid bundle {name:?}: bundle image must be set");
            self.add(Rule::BundleImage, text);
        }
    }

    fn properties(&mut self, properties: &[Property<'a>]) -> Typed<'a> {
        let name = self.name;
        let mut typed = Typed::default();
        for (index, property) in properties.iter().enumerate() {
            let kind = &property.kind;
            match typed.add(property) {
                Ok(()) => {}
                Err(PropertyError::Value(e)) => {
                    let text = format!(
                        "parse properties for bundle {name:?}: parse property[{index}] of type {kind:?}: {e}"
                    );
                    self.add(Rule::Property, text);
                }
                Err(PropertyError::Object(e)) => {
                    let text = format!(
                        "bundle {name:?}: convert bundle object property at index {index} to JSON: {e}"
                    );
                    self.add(Rule::BundleObject, text);
                }
            }
        }
        let metadata = typed.load.metadata.len();
        if metadata > 1 {
            let text = format!(
                "bundle {name:?}: expected at most 1 property of type \"olm.csv.metadata\", found {metadata}"
            );
            self.add(Rule::CsvMetadata, text);
        }
        typed
    }

    fn package_property(
        &mut self,
        mut properties: Vec<PackageProperty<'a>>,
    ) -> Option<PackageProperty<'a>> {
        let (package, name) = (self.report.package(), self.name);
        if properties.len() != 1 {
            let text = format!(
                "package {package:?} bundle {name:?} must have exactly 1 \"olm.package\" property, found {}",
                properties.len()
            );
            self.add(Rule::PackageProperty, text);
            return None;
        }
        let property = properties.pop()?;
        if property.package_name != package {
            let text = format!(
                "package {package:?} does not match \"olm.package\" property {:?} of bundle {name:?}",
                property.package_name
            );
            self.add(Rule::PackagePropertyName, text);
        }
        Some(property)
    }

    fn version(&mut self, property: &PackageProperty<'_>) -> Option<BundleVersion> {
        let (name, version) = (self.name, &property.version);
        let text = |e| format!("error parsing bundle {name:?} version {version:?}: {e}");
        version
            .parse()
            .map_err(|e| self.add(Rule::Version, text(e)))
            .ok()
    }

    fn release(&mut self, property: &PackageProperty<'_>) -> Option<BundleRelease> {
        let (name, release) = (self.name, &property.release);
        let text = |e| format!("error parsing bundle {name:?} release version {release:?}: {e}");
        release
            .parse()
            .map_err(|e| self.add(Rule::Release, text(e)))
            .ok()
    }

    fn check_release(&mut self, version: &BundleVersion, release: &BundleRelease) {
        if release.is_empty() {
            return;
        }
        let (package, name) = (self.report.package(), self.name);
        let normal = format!("{package}-v{}", full_version(version, release));
        if name != normal {
            let text = format!("name {name:?} does not match normalized name {normal:?}");
            self.add(Rule::ReleaseName, text);
        }
        if version.has_build() {
            let text = format!(
                "invalid bundle {name:?}: cannot use build metadata in version with a release version"
            );
            self.add(Rule::ReleaseBuild, text);
        }
    }
}

/// Properties that hold manifests.
#[derive(Default)]
pub(super) struct InstallProperties<'a> {
    /// Decoded `olm.bundle.object` data: JSON verbatim, YAML converted to JSON.
    pub(super) objects: Vec<String>,
    /// At most one in valid bundles.
    pub(super) metadata: Vec<CsvMetadata<'a>>,
}

/// Decodes a manifest: JSON verbatim, anything else as YAML. Source: `opm serve`.
fn object(data: Vec<u8>) -> Result<String, String> {
    let text = String::from_utf8(data).map_err(|e| format!("it is not UTF-8: {e}"))?;
    if text.trim_start().starts_with('{') {
        return Ok(text);
    }
    yaml_to_json(&text).map_err(|e| e.to_string())
}
