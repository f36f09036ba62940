//! Texts of variables: environment over file.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use config::{Config, ConfigError, Environment, Map, Source, Value};

use super::kinds::Setting;
use super::problems::{Problem, Problems};

/// Units: characters. Longer values are not repeated in messages.
const SHOWN_VALUE: usize = 60;
/// Stands behind the credentials in a URL: values that have it are not repeated either.
const AFTER_CREDENTIALS: char = '@';

/// The texts that variables have, by lower-case name.
#[derive(Debug, Clone, Default)]
pub struct Values(HashMap<String, String>);

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
            .and_then(Config::try_deserialize)
            .map(Self)
            .map_err(|error| Problems(vec![Problem::new("--config", error.to_string())]))
    }

    /// Texts by lower-case name, for tests.
    pub fn from_pairs<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        Self(
            pairs
                .into_iter()
                .map(|(name, text)| (name.to_owned(), text.to_owned()))
                .collect(),
        )
    }

    /// Parses the variable of `field`; of one that does not parse, a problem is added and the default taken. An
    /// empty variable counts as unset.
    ///
    /// Panics: when `default` does not parse, which is a mistake in the declaration.
    pub fn parse<T: Setting>(&self, field: &str, default: &str, problems: &mut Problems) -> T {
        let variable = field.to_uppercase();
        let text = self.text::<T>(field).unwrap_or_else(|problem| {
            problems.0.push(problem);
            None
        });
        if let Some(text) = text {
            match T::parse(&text) {
                Ok(value) => return value,
                Err(reason) => {
                    let shown = if T::SECRET {
                        String::new()
                    } else {
                        shown(&text)
                    };
                    problems.0.push(Problem::new(
                        &variable,
                        format!("{shown}{reason} (expected: {})", T::EXPECTED),
                    ));
                }
            }
        }
        T::parse(default)
            .unwrap_or_else(|reason| unreachable!("the default of {variable}: {reason}"))
    }

    fn text<T: Setting>(&self, field: &str) -> Result<Option<String>, Problem> {
        if let Some(text) = self.0.get(field).filter(|text| !text.is_empty()) {
            return Ok(Some(text.clone()));
        }
        if T::LIST {
            let items: Vec<_> = (0..)
                .map_while(|index| self.0.get(&format!("{field}_{index}")))
                .map(String::as_str)
                .collect();
            return Ok(Some(items.join(",")).filter(|text| !text.is_empty()));
        }
        let file = format!("{field}_file");
        match self.0.get(&file) {
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
}

/// `text` before what is wrong with it, or nothing when it is long or may hold credentials.
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

    fn collect(&self) -> Result<Map<String, Value>, ConfigError> {
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
                Value::new(Some(&origin), value.to_owned()),
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

/// What is wrong with line `number` of `path`.
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
