//! Substitution templates: a catalog, and bundles that take the places of others in its channels. Source:
//! operator-registry, `alpha/template/substitutes`.

use std::collections::BTreeMap;

use located_yaml::v1_1::Located;
use serde_json::{Value, json};

use super::basic::entries;
use super::fields::{Bundles, Misfit, TemplateImage, filled, list, member, members};
use super::legacy_release::package_property;
use crate::content::PackageModel;
use crate::schema::decode::{decode, is_same_folded};
use crate::schema::{BUNDLE, CHANNEL, ChannelDocument};
use crate::{CatalogProblems, Document, read};

/// Schema of substitution templates.
pub(super) const SUBSTITUTES: &str = "olm.template.substitutes";

/// A substitution template.
#[derive(Debug)]
pub(super) struct SubstitutesTemplate {
    documents: Vec<Document>,
    substitutions: Vec<Substitution>,
}

#[derive(Debug)]
struct Substitution {
    image: TemplateImage,
    /// Name of the bundle that is substituted.
    base: TemplateImage,
}

/// Failure to substitute.
pub(super) enum SubstituteError {
    Misfit(Misfit),
    Invalid(CatalogProblems),
}

impl From<Misfit> for SubstituteError {
    fn from(misfit: Misfit) -> Self {
        Self::Misfit(misfit)
    }
}

/// An entry of a channel.
#[derive(Default)]
struct SubstitutedEntry {
    name: String,
    replaces: String,
    skips: Vec<String>,
    skip_range: String,
}

impl SubstitutesTemplate {
    pub(super) fn read(root: &Located, document: &Document, first: usize) -> Result<Self, Misfit> {
        let documents = entries(root, document, first)?;
        let all = members(root, "a template")?;
        let mut substitutions: Vec<Substitution> = Vec::new();
        for substitution in list(member(all, "substitutions"), "substitutions")? {
            let of = members(substitution, "a substitution")?;
            let image = filled(member(of, "name"), substitution.place, "name")?;
            let base = filled(member(of, "base"), substitution.place, "base")?;
            let wrong = |why: String| Err(Misfit::new(base.place, why));
            if image.image == base.image {
                return wrong("name and base of a substitution cannot be the same".to_owned());
            }
            for other in &substitutions {
                if other.base.image == base.image {
                    return wrong(format!("cannot reuse the same base {:?}", base.image));
                }
                if other.image.image == image.image {
                    let why = format!("cannot reuse the same substitution {:?}", image.image);
                    return Err(Misfit::new(image.place, why));
                }
            }
            substitutions.push(Substitution { image, base });
        }
        Ok(Self {
            documents: documents
                .into_iter()
                .map(|(_, document)| document)
                .collect(),
            substitutions,
        })
    }

    pub(super) fn images(&self) -> impl Iterator<Item = &TemplateImage> {
        self.substitutions.iter().map(|it| &it.image)
    }

    pub(super) fn shift(&mut self, lines: usize) {
        for Substitution { image, base } in &mut self.substitutions {
            image.place.line += lines;
            base.place.line += lines;
        }
    }

    pub(super) fn expand(&self, bundles: &Bundles) -> Result<Vec<Document>, SubstituteError> {
        let mut documents = self.documents.clone();
        validate(&documents)?;
        for substitution in &self.substitutions {
            let bundle = substitution.bundle(&documents, bundles)?;
            for document in &mut documents {
                if document.schema == CHANNEL {
                    substitution.apply(document, &bundle.name)?;
                }
            }
            documents.push(bundle);
            validate(&documents)?;
        }
        Ok(documents)
    }
}

impl Substitution {
    /// The bundle that takes the place: of a higher version or release than the one in `documents`.
    fn bundle(&self, documents: &[Document], bundles: &Bundles) -> Result<Document, Misfit> {
        let Self { image, base } = self;
        let Some(bundle) = bundles.get(&image.image) else {
            let why = format!("{} is not rendered", image.image);
            return Err(Misfit::new(image.place, why));
        };
        let found = documents
            .iter()
            .find(|it| it.schema == BUNDLE && it.name == base.image);
        let Some(found) = found else {
            let why = format!("base bundle {:?} does not exist in entries", base.image);
            return Err(Misfit::new(base.place, why));
        };
        let new = package_property(&bundle.document);
        let new = new.map_err(|why| Misfit::new(image.place, why))?;
        let old = package_property(found).map_err(|why| Misfit::new(base.place, why))?;
        if (&old.version, &old.release) >= (&new.version, &new.release) {
            let why = format!(
                "base bundle {:?} is not less than substitute bundle {:?}",
                base.image, bundle.document.name
            );
            return Err(Misfit::new(base.place, why));
        }
        Ok(bundle.document.clone())
    }

    /// Gives the edges of the base in a channel to `bundle`.
    fn apply(&self, channel: &mut Document, bundle: &str) -> Result<(), Misfit> {
        let base = &self.base.image;
        let wrong = |why: String| Misfit::new(self.base.place, why);
        let read: ChannelDocument<'_> = decode(&channel.json).map_err(wrong)?;
        let mut entries: Vec<SubstitutedEntry> = read
            .entries
            .into_iter()
            .map(SubstitutedEntry::from)
            .collect();
        let mut added = Vec::new();
        for entry in &mut entries {
            if entry.name == *base {
                let mut new = SubstitutedEntry {
                    name: bundle.to_owned(),
                    ..std::mem::take(entry)
                };
                entry.name.clone_from(base);
                new.skips.push(base.clone());
                added.push(new);
            }
        }
        if added.is_empty() && !entries.iter().any(|it| it.leads_to(base)) {
            return Ok(());
        }
        for entry in &mut entries {
            if entry.replaces == *base {
                bundle.clone_into(&mut entry.replaces);
                entry.skips.push(base.clone());
            } else if entry.skips.contains(base) {
                entry.skips.push(bundle.to_owned());
                entry.skips.retain(|it| it != base);
            }
        }
        // The last of several is substituted first. Source: operator-registry.
        entries.extend(added.into_iter().rev());
        let mut json: Value =
            serde_json::from_str(&channel.json).map_err(|e| wrong(e.to_string()))?;
        if let Value::Object(members) = &mut json {
            members.retain(|name, _| !is_same_folded("entries", name));
            let entries: Vec<Value> = entries.iter().map(SubstitutedEntry::output).collect();
            members.insert("entries".to_owned(), json!(entries));
        }
        *channel = read::document(&json.to_string(), channel.origin.clone()).map_err(wrong)?;
        Ok(())
    }
}

impl From<crate::schema::ChannelEntry<'_>> for SubstitutedEntry {
    fn from(entry: crate::schema::ChannelEntry<'_>) -> Self {
        Self {
            name: entry.name.into_owned(),
            replaces: entry.replaces.into_owned(),
            skips: entry.skips.into_iter().map(Into::into).collect(),
            skip_range: entry.skip_range.into_owned(),
        }
    }
}

impl SubstitutedEntry {
    fn leads_to(&self, base: &String) -> bool {
        self.replaces == *base || self.skips.contains(base)
    }

    fn output(&self) -> Value {
        let mut entry = json!({"name": self.name});
        for (name, value) in [
            ("replaces", &self.replaces),
            ("skipRange", &self.skip_range),
        ] {
            if !value.is_empty() {
                entry[name] = json!(value);
            }
        }
        if !self.skips.is_empty() {
            entry["skips"] = json!(self.skips);
        }
        entry
    }
}

/// Validates package by package.
fn validate(documents: &[Document]) -> Result<(), SubstituteError> {
    let mut packages: BTreeMap<&str, Vec<Document>> = BTreeMap::new();
    for document in documents {
        let package = packages.entry(document.group()).or_default();
        package.push(document.clone());
    }
    let mut problems = CatalogProblems::default();
    for documents in packages.values() {
        let (_, found) = PackageModel::validate(documents);
        problems.0.extend(found.errors.0);
    }
    if problems.0.is_empty() {
        Ok(())
    } else {
        Err(SubstituteError::Invalid(problems))
    }
}
