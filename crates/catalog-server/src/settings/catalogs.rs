//! The setting CATALOGS.

use std::collections::BTreeSet;

use service::settings::Setting;

use crate::source::CatalogSource;

/// Most catalogs of one process; each takes memory, at times a thread, and possibly a port.
const CATALOGS_LIMIT: usize = 64;
/// Longest name. Units: characters. Source: RFC 1123.
const NAME_LIMIT: usize = 253;
/// Longest label of a name. Units: characters.
const LABEL_LIMIT: usize = 63;
/// Name of an unnamed catalog.
pub(crate) const UNNAMED: &str = "catalog";

/// One catalog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogConfig {
    /// A DNS subdomain.
    pub name: String,
    /// A dedicated port.
    pub port: Option<u16>,
    /// Its source.
    pub source: CatalogSource,
}

/// Catalogs with unique names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CatalogList(pub Vec<CatalogConfig>);

impl Setting for CatalogList {
    const EXPECTED: &'static str = "NAME=SOURCE or NAME:PORT=SOURCE, separated by commas";

    fn parse(text: &str) -> Result<Self, String> {
        let items: Vec<_> = text
            .split(',')
            .map(str::trim)
            .filter(|item| !item.is_empty())
            .collect();
        if items.len() > CATALOGS_LIMIT {
            return Err(format!("more than {CATALOGS_LIMIT} catalogs"));
        }
        let is_single = items.len() == 1;
        let catalogs: Vec<_> = items
            .into_iter()
            .map(|item| one(item, is_single))
            .collect::<Result<_, _>>()?;
        let mut names = BTreeSet::new();
        match catalogs.iter().find(|catalog| !names.insert(&catalog.name)) {
            Some(twice) => Err(format!("the name {:?} is used twice", twice.name)),
            None => Ok(Self(catalogs)),
        }
    }
}

fn one(item: &str, is_single: bool) -> Result<CatalogConfig, String> {
    let (named, source) = match item.split_once('=') {
        Some((named, source)) => (named.trim(), source.trim()),
        None if is_single => (UNNAMED, item),
        None => return Err(format!("{item:?} has no name: write NAME=SOURCE")),
    };
    let (name, port) = match named.split_once(':') {
        Some((name, port)) => {
            let port = port
                .parse()
                .map_err(|_| format!("{port:?} is not a port of {name}"))?;
            (name, Some(port))
        }
        None => (named, None),
    };
    check_name(name)?;
    Ok(CatalogConfig {
        name: name.to_owned(),
        port,
        source: source.parse()?,
    })
}

/// Errors: `name` is not a DNS-1123 subdomain.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    let is_label = |label: &str| {
        let is_inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        (1..=LABEL_LIMIT).contains(&label.len())
            && label.bytes().all(is_inner)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    if name.len() <= NAME_LIMIT && name.split('.').all(is_label) {
        return Ok(());
    }
    Err(format!(
        "{name:?} is not a catalog name: use lower-case letters, digits, - and . with a letter or digit at both ends"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn catalogs_have_names_ports_and_sources() {
        let parsed = CatalogList::parse(
            "redhat:50052=registry.example.org:5000/redhat:v4.20, own.x=/configs,",
        );
        let [redhat, own] = parsed.unwrap().0.try_into().unwrap();
        assert_eq!((redhat.name.as_str(), redhat.port), ("redhat", Some(50052)));
        assert!(matches!(redhat.source, CatalogSource::Registry(_)));
        assert_eq!((own.name.as_str(), own.port), ("own.x", None));
        assert_eq!(own.source, CatalogSource::Folder("/configs".into()));
        let [only] = CatalogList::parse("/configs")
            .unwrap()
            .0
            .try_into()
            .unwrap();
        assert_eq!(only.name, "catalog");
        assert_eq!(CatalogList::parse("").unwrap().0, []);
    }

    #[test]
    fn malformed_lists_are_refused() {
        for (text, reason) in [
            ("/a,/b", "has no name"),
            ("a=/a,a=/b", "used twice"),
            ("A=/a", "is not a catalog name"),
            ("-a=/a", "is not a catalog name"),
            ("a..b=/a", "is not a catalog name"),
            ("=/a", "is not a catalog name"),
            ("a:x=/a", "is not a port"),
            ("a=", "neither"),
            ("a=oci:", "expected a folder"),
        ] {
            let refused = CatalogList::parse(text).unwrap_err();
            assert!(refused.contains(reason), "{text}: {refused}");
        }
        let many: Vec<_> = (0..=CATALOGS_LIMIT).map(|i| format!("a{i}=/a")).collect();
        assert!(CatalogList::parse(&many.join(",")).is_err());
    }
}
