//! Members of templates with their places, and the bundles that they name. Names match in any case, since early
//! documentation had them in upper case.

use std::collections::BTreeMap;

use located_yaml::Position;
use located_yaml::v1_1::{Located, LocatedMember, Value};

use crate::registry_v1::RenderedBundle;
use crate::schema::decode::is_same_folded;

/// Rendered bundles by image.
pub type Bundles = BTreeMap<String, RenderedBundle>;

/// A bundle image with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateImage {
    pub image: String,
    pub place: Position,
}

/// A member that does not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Misfit {
    pub(super) place: Position,
    pub(super) why: String,
}

impl Misfit {
    pub(super) fn new(place: Position, why: impl Into<String>) -> Self {
        Self {
            place,
            why: why.into(),
        }
    }
}

/// Members of an object; none of null.
pub(super) fn members<'a>(value: &'a Located, what: &str) -> Result<&'a [LocatedMember], Misfit> {
    match &value.value {
        Value::Object(members) => Ok(members),
        Value::Null => Ok(&[]),
        _ => Err(Misfit::new(
            value.place,
            format!("{what} must be an object"),
        )),
    }
}

/// The value of a member; the last of duplicates.
pub(super) fn member<'a>(members: &'a [LocatedMember], name: &str) -> Option<&'a Located> {
    let mut named = members.iter().rev();
    let found = named.find(|it| is_same_folded(name, &it.name))?;
    Some(&found.value)
}

/// Refuses members besides `known`, and duplicates.
pub(super) fn only(members: &[LocatedMember], known: &[&str], what: &str) -> Result<(), Misfit> {
    let mut seen: Vec<&str> = Vec::new();
    for member in members {
        let found = known.iter().find(|name| is_same_folded(name, &member.name));
        let Some(found) = found else {
            let known = known.join(", ");
            let why = format!(
                "{what} has no member {:?}; its members are {known}",
                member.name
            );
            return Err(Misfit::new(member.place, why));
        };
        if seen.contains(found) {
            return Err(Misfit::new(member.place, format!("{found} is there twice")));
        }
        seen.push(found);
    }
    Ok(())
}

/// Values of a list; none of null or an absent one.
pub(super) fn list<'a>(value: Option<&'a Located>, what: &str) -> Result<&'a [Located], Misfit> {
    match value.map(|it| (&it.value, it.place)) {
        Some((Value::List(list), _)) => Ok(list),
        None | Some((Value::Null, _)) => Ok(&[]),
        Some((_, place)) => Err(Misfit::new(place, format!("{what} must be a list"))),
    }
}

/// A text; empty for null or an absent one.
pub(super) fn text<'a>(value: Option<&'a Located>, what: &str) -> Result<&'a str, Misfit> {
    match value.map(|it| (&it.value, it.place)) {
        Some((Value::Text(text), _)) => Ok(text),
        None | Some((Value::Null, _)) => Ok(""),
        Some((_, place)) => Err(Misfit::new(place, format!("{what} must be a string"))),
    }
}

/// A text that must not be empty, with its place: that of the object `around` where it is absent.
pub(super) fn filled(
    value: Option<&Located>,
    around: Position,
    what: &str,
) -> Result<TemplateImage, Misfit> {
    let place = value.map_or(around, |it| it.place);
    match text(value, what)? {
        "" => Err(Misfit::new(place, format!("{what} must be set"))),
        text => Ok(TemplateImage {
            image: text.to_owned(),
            place,
        }),
    }
}

/// A boolean; false for null or an absent one.
pub(super) fn boolean(value: Option<&Located>, what: &str) -> Result<bool, Misfit> {
    match value.map(|it| (&it.value, it.place)) {
        Some((Value::Bool(value), _)) => Ok(*value),
        None | Some((Value::Null, _)) => Ok(false),
        Some((_, place)) => Err(Misfit::new(place, format!("{what} must be true or false"))),
    }
}
