//! Composite templates: components of catalogs, each by a template in a file of its own. Source: operator-registry
//! until v1.49, `alpha/template/composite`.

use located_yaml::v1_1::Located;

use super::basic::BASIC;
use super::fields::{Misfit, TemplateImage, filled, list, member, members, only, text};
use super::semver::SEMVER;

/// Schema of composite templates.
pub(super) const COMPOSITE: &str = "olm.composite";
/// Destinations of composite templates, which have no documents.
pub(super) const COMPOSITE_CATALOGS: &str = "olm.composite.catalogs";

/// A composite template.
#[derive(Debug)]
pub struct CompositeTemplate {
    pub components: Vec<CatalogComponent>,
}

/// A component of a catalog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogComponent {
    /// Name of the catalog.
    pub catalog: String,
    /// Path of its file.
    pub input: TemplateImage,
    pub kind: InputKind,
}

/// Content of a component's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputKind {
    Basic,
    Semver,
    /// Documents of a catalog.
    Raw,
}

const BUILDERS: &[(&str, InputKind)] = &[
    ("olm.builder.basic", InputKind::Basic),
    ("olm.builder.semver", InputKind::Semver),
    ("olm.builder.raw", InputKind::Raw),
];
const CUSTOM: &str = "olm.builder.custom";

impl InputKind {
    /// Schema of the template in the file; `None` for documents.
    pub fn schema(self) -> Option<&'static str> {
        match self {
            Self::Basic => Some(BASIC),
            Self::Semver => Some(SEMVER),
            Self::Raw => None,
        }
    }
}

impl CompositeTemplate {
    pub(super) fn read(root: &Located) -> Result<Self, Misfit> {
        let all = members(root, "a template")?;
        let components = list(member(all, "components"), "components")?.iter();
        let components = components.map(component).collect::<Result<_, _>>()?;
        Ok(Self { components })
    }

    pub(super) fn shift(&mut self, lines: usize) {
        for component in &mut self.components {
            component.input.place.line += lines;
        }
    }
}

fn component(component: &Located) -> Result<CatalogComponent, Misfit> {
    let all = members(component, "a component")?;
    let catalog = text(member(all, "name"), "the name of a component")?;
    let strategy = member(all, "strategy").unwrap_or(component);
    let template = member(members(strategy, "strategy")?, "template").unwrap_or(strategy);
    let all = members(template, "template")?;
    let schema = filled(member(all, "schema"), template.place, "template.schema")?;
    let builder = BUILDERS.iter().find(|(name, _)| *name == schema.image);
    let Some((_, kind)) = builder else {
        let known: Vec<_> = BUILDERS.iter().map(|(name, _)| *name).collect();
        let why = match schema.image.as_str() {
            CUSTOM => format!(
                "{CUSTOM} runs a command, and no command of a file is run here: run it, and name its output under olm.builder.raw"
            ),
            other => format!("unknown builder {other:?}; known are {}", known.join(", ")),
        };
        return Err(Misfit::new(schema.place, why));
    };
    let config = member(all, "config").unwrap_or(template);
    let all = members(config, "config")?;
    only(all, &["input", "output"], "config")?;
    let input = filled(member(all, "input"), config.place, "config.input")?;
    Ok(CatalogComponent {
        catalog: catalog.to_owned(),
        input,
        kind: *kind,
    })
}
