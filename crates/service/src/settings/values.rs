//! Texts of variables: environment over file.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use config::{Config, ConfigError, Environment, Map, Source};

use super::kinds::{Setting, Shape, Variable};
use super::problem::{Problem, Problems};

/// Units: characters. Longer values are not repeated in messages.
const SHOWN_VALUE: usize = 60;
/// Separator after the credentials in a URL: values with it are not repeated either.
const AFTER_CREDENTIALS: char = '@';

/// The texts that variables have, by lower-case name.
#[derive(Debug, Clone, Default)]
pub struct Values(BTreeMap<String, Value>);

#[derive(Debug, Clone)]
struct Value {
    text: String,
    /// Origin, when that is not the variable, as in `config.yml, line 7`.
    place: Option<String>,
}

impl Values {
    /// Reads the environment over `file`.
    ///
    /// Errors: when the file cannot be read or one of its lines is no `NAME=value`.
    pub fn read(file: Option<&Path>) -> Result<Self, Problems> {
        let mut builder = Config::builder();
        if let Some(path) = file {
            builder = builder.add_source(EnvFile(path.to_owned()));
        }
        builder
            .add_source(Environment::default())
            .build()
            .and_then(Config::try_deserialize::<HashMap<String, String>>)
            .map(Self::from_iter)
            .map_err(|error| Problems(vec![Problem::new("--config", error.to_string())]))
    }

    /// Texts by lower-case name, for tests.
    pub fn from_pairs<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let owned = |(name, text): (&str, &str)| (name.to_owned(), text.to_owned());
        pairs.into_iter().map(owned).collect()
    }

    /// The text of the variable `name`, in lower case.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(|value| value.text.as_str())
    }

    /// Origin of the text of `name`, when that is not the variable.
    pub fn place(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.place.as_deref()
    }

    /// The names that begin with `prefix` and have a text, though it be empty, sorted.
    pub fn names<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = &'a str> {
        self.0
            .range(prefix.to_owned()..)
            .map(|(name, _)| name.as_str())
            .take_while(move |name| name.starts_with(prefix))
    }

    /// Sets the text of `name`, which comes from `place`, unless it has one.
    pub fn set_below(&mut self, name: &str, text: &str, place: &str) {
        self.0.entry(name.to_owned()).or_insert_with(|| Value {
            text: text.to_owned(),
            place: Some(place.to_owned()),
        });
    }

    /// The same texts, and `defaults` for names that have none.
    pub fn with_defaults(&self, defaults: &[(&str, &str)]) -> Cow<'_, Self> {
        let is_unset = |name: &str| self.text(name).is_none_or(str::is_empty);
        let mut values = Cow::Borrowed(self);
        for (name, text) in defaults.iter().filter(|(name, _)| is_unset(name)) {
            values.to_mut().set(name, text);
        }
        values
    }

    /// Overrides the text of `name`.
    pub fn set(&mut self, name: &str, text: &str) {
        let (text, place) = (text.to_owned(), None);
        self.0.insert(name.to_owned(), Value { text, place });
    }

    /// Removes the text of `name`.
    pub fn take(&mut self, name: &str) -> Option<String> {
        self.0.remove(name).map(|value| value.text)
    }

    /// Parses the variable of `field`; of one that does not parse, a problem is added and the default taken. An
    /// empty variable counts as unset.
    ///
    /// Panics: when `default` does not parse, which is a mistake in the declaration.
    pub fn parse<T: Setting>(&self, field: &str, default: &str, problems: &mut Problems) -> T {
        match self.parsed(field) {
            Ok(Some(value)) => return value,
            Ok(None) => {}
            Err(problem) => problems.0.push(problem),
        }
        T::parse(default).unwrap_or_else(|reason| {
            unreachable!("the default of {}: {reason}", field.to_uppercase())
        })
    }

    fn parsed<T: Setting>(&self, field: &str) -> Result<Option<T>, Problem> {
        let text = self.whole::<T>(field)?;
        let parts = self.parts(field);
        let parsed = match &text {
            Some(text) => T::parse(text),
            None if T::SHAPE == Shape::Parts && !parts.is_empty() => T::parse_parts(&parts),
            None => return Ok(None),
        };
        parsed.map(Some).map_err(|reason| {
            let mut message = String::new();
            if let Some(place) = self.place(field) {
                message.extend([place, ": "]);
            }
            if let Some(text) = text.filter(|_| !T::SECRET) {
                message += &shown(&text);
            }
            let expected = T::EXPECTED;
            let message = format!("{message}{reason} (expected: {expected})");
            Problem::new(field.to_uppercase(), message)
        })
    }

    fn whole<T: Setting>(&self, field: &str) -> Result<Option<String>, Problem> {
        if let Some(text) = self.text(field).filter(|text| !text.is_empty()) {
            return Ok(Some(text.to_owned()));
        }
        if T::SHAPE == Shape::List {
            let items: Vec<_> = (0..)
                .map_while(|index| self.text(&format!("{field}_{index}")))
                .collect();
            return Ok(Some(items.join(",")).filter(|text| !text.is_empty()));
        }
        let file = format!("{field}_file");
        match self.text(&file) {
            Some(path) if T::SECRET && !path.is_empty() => std::fs::read_to_string(path)
                .map(|text| Some(text.trim_end_matches(['\r', '\n']).to_owned()))
                .map_err(|error| {
                    Problem::new(
                        file.to_uppercase(),
                        format!("{path} cannot be read: {error}"),
                    )
                }),
            _ => Ok(None),
        }
    }

    /// The text of `variable`, or `default`, and the texts of its parts.
    pub(super) fn texts<'a>(
        &'a self,
        variable: &Variable,
        default: &'a str,
    ) -> (&'a str, BTreeMap<&'a str, &'a str>) {
        let text = self.text(variable.field).map(str::trim);
        let text = text.filter(|text| !text.is_empty());
        let parts = match variable.shape {
            Shape::Whole => BTreeMap::new(),
            Shape::List | Shape::Parts => self.parts(variable.field),
        };
        (text.unwrap_or(default), parts)
    }

    /// Texts of the variables below `field` that are not empty.
    fn parts(&self, field: &str) -> BTreeMap<&str, &str> {
        let prefix = format!("{field}_");
        self.0
            .range(prefix.clone()..)
            .map_while(|(name, value)| Some((name.strip_prefix(&prefix)?, value.text.as_str())))
            .filter(|(_, text)| !text.is_empty())
            .collect()
    }
}

impl FromIterator<(String, String)> for Values {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(pairs: I) -> Self {
        let value = |text| Value { text, place: None };
        let pairs = pairs.into_iter().map(|(name, text)| (name, value(text)));
        Self(pairs.collect())
    }
}

/// `text` as a prefix of an error, or nothing when it is long or may hold credentials.
pub fn shown(text: &str) -> String {
    if text.contains(AFTER_CREDENTIALS) || text.chars().count() > SHOWN_VALUE {
        String::new()
    } else {
        format!("{text:?}: ")
    }
}

/// A file in the shape of container engines' `--env-file`: `NAME=value` lines, `#` comments, quotes optional.
#[derive(Debug, Clone)]
struct EnvFile(PathBuf);

impl Source for EnvFile {
    fn clone_into_box(&self) -> Box<dyn Source + Send + Sync> {
        Box::new(self.clone())
    }

    fn collect(&self) -> Result<Map<String, config::Value>, ConfigError> {
        let path = self.0.display();
        let text = std::fs::read_to_string(&self.0)
            .map_err(|error| ConfigError::Message(format!("{path} cannot be read: {error}")))?;
        let origin = path.to_string();
        let lines =
            env_lines(&text).map_err(|number| ConfigError::Message(not_a_line(&self.0, number)))?;
        let mut values = Map::new();
        for (name, value) in lines {
            values.insert(
                name.to_lowercase(),
                config::Value::new(Some(&origin), value.to_owned()),
            );
        }
        Ok(values)
    }
}

/// Names and values of a file in the shape of container engines' `--env-file`, in its order.
///
/// Errors: the number of the first line that is no `NAME=value`.
pub fn env_lines(text: &str) -> Result<Vec<(&str, &str)>, usize> {
    text.lines()
        .map(str::trim)
        .enumerate()
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
        .map(|(index, line)| {
            let (name, value) = line.split_once('=').ok_or(index + 1)?;
            let name = name.trim().trim_start_matches("export ");
            Ok((name, unquoted(value.trim())))
        })
        .collect()
}

/// Error about line `number` of `path`.
pub fn not_a_line(path: &Path, number: usize) -> String {
    format!("{}, line {number}: expected NAME=value", path.display())
}

fn unquoted(text: &str) -> &str {
    ['"', '\'']
        .into_iter()
        .find_map(|quote| text.strip_prefix(quote)?.strip_suffix(quote))
        .unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_line_by_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("env");
        std::fs::write(
            &path,
            "# comment\nSERVICE_FQDN='a.b'\n\nOS_IMAGES=[{\"x\":\"=\"}]\n",
        )
        .unwrap();
        let values = EnvFile(path).collect().unwrap();
        assert_eq!(values["service_fqdn"].to_string(), "a.b");
        assert_eq!(values["os_images"].to_string(), "[{\"x\":\"=\"}]");
    }

    #[test]
    fn a_wrong_value_is_repeated_unless_it_may_be_secret() {
        for (text, is_shown) in [("no-port", true), ("http://user:secret@api", false)] {
            let mut problems = Problems::default();
            Values::from_pairs([("port", text)]).parse::<u16>("port", "1", &mut problems);
            assert_eq!(problems.to_string().contains(text), is_shown, "{problems}");
        }
    }

    #[test]
    fn a_wrong_line_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("env");
        std::fs::write(&path, "A=1\nnonsense\n").unwrap();
        let text = Values::read(Some(&path)).unwrap_err().to_string();
        assert!(text.contains("line 2"), "{text}");
    }
}
