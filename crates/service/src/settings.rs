//! Settings from the environment, an optional file and defaults; all errors are reported together.
//!
//! A server declares its variables once with [`settings!`](crate::settings!); names, defaults, meanings, the
//! reference table and the parsing come from there. The only reader of the process's environment.

mod kinds;
mod problem;
mod values;

pub use kinds::{CommaList, JsonVar, Secret, Setting, Shape, Variable};
pub use problem::{Problem, Problems};
pub use values::{Values, env_lines, not_a_line, shown};

/// Settings that [`settings!`](crate::settings!) declares.
pub trait FromValues: Sized {
    /// Every variable of its own, in the order of declaration.
    const VARIABLES: &'static [Variable];
    /// The variables of its groups, group by group.
    const GROUPS: &'static [&'static [Variable]] = &[];
    /// Defaults of this server for variables of its groups: field and text.
    const GROUP_DEFAULTS: &'static [(&'static str, &'static str)] = &[];

    /// Parses every variable. Those that do not parse are added to `problems` and have their defaults, so that the
    /// others can be checked as well.
    fn read(values: &Values, problems: &mut Problems) -> Self;

    /// Parses every variable; all problems at once.
    fn from_values(values: &Values) -> Result<Self, Problems> {
        let mut problems = Problems::default();
        let settings = Self::read(values, &mut problems);
        problems.none()?;
        Ok(settings)
    }
}

/// The reference table of `S` in Markdown.
pub fn reference<S: FromValues>() -> String {
    let mut table = String::from("| Variable | Value | Default | Meaning |\n|---|---|---|---|\n");
    let groups = S::GROUPS.iter().copied().flatten();
    let own_default = |field: &str| {
        let mut defaults = S::GROUP_DEFAULTS.iter();
        defaults.find_map(|(name, text)| (*name == field).then_some(*text))
    };
    for variable in S::VARIABLES.iter().chain(groups) {
        let default = match own_default(variable.field).unwrap_or(variable.default) {
            "" => String::new(),
            text => format!("`{text}`"),
        };
        let meaning: Vec<_> = variable.meaning.iter().map(|line| line.trim()).collect();
        let name = variable.field.to_uppercase();
        let row = [
            format!("`{name}`"),
            variable.expected.to_owned(),
            default,
            meaning.join(" "),
        ];
        table += &markdown_row(row);
    }
    table
}

/// Upper-case names of the variables of `S` whose texts differ. An unset variable has the text of its default.
pub(crate) fn changed<S: FromValues>(before: &Values, after: &Values) -> Vec<String> {
    let groups = S::GROUPS.iter().copied().flatten();
    let default = |variable: &Variable| {
        let mut defaults = S::GROUP_DEFAULTS.iter();
        let own = defaults.find(|(name, _)| *name == variable.field);
        own.map_or(variable.default, |(_, text)| text)
    };
    S::VARIABLES
        .iter()
        .chain(groups)
        .filter(|variable| {
            let texts = |values| Values::texts(values, variable, default(variable));
            texts(before) != texts(after)
        })
        .map(|variable| variable.field.to_uppercase())
        .collect()
}

/// A line of a table in Markdown.
pub(crate) fn markdown_row<const N: usize>(cells: [String; N]) -> String {
    let cells = cells.map(|cell| cell.replace('|', "\\|"));
    format!("| {} |\n", cells.join(" | "))
}

/// Declares a server's settings: a struct with public fields, each read from the variable of its upper-case
/// name. Defaults are text and go through the same parser. Groups are settings that several servers share;
/// a server may give their variables defaults of its own.
///
/// ```
/// service::settings! {
///     /// Settings of the example.
///     pub struct Settings {
///         /// Where to listen.
///         port: u16 = "8080",
///         /// Interval of health checks.
///         interval: std::time::Duration = "10s",
///     } with {
///         /// Settings of all servers.
///         http: service::server::HttpSettings { header_timeout = "5s" },
///     }
/// }
/// assert_eq!(Settings::default().port, 8080);
/// assert_eq!(Settings::default().http.header_timeout.as_secs(), 5);
/// ```
#[macro_export]
macro_rules! settings {
    ($(#[$meta:meta])* pub struct $name:ident {
        $($(#[doc = $doc:literal])* $field:ident : $kind:ty = $default:literal),* $(,)?
    } $(with {
        $($(#[doc = $group_doc:literal])* $group:ident : $group_kind:ty
            $({ $($member:ident = $member_default:literal),* $(,)? })?),* $(,)?
    })?) => {
        $(#[$meta])*
        #[derive(Debug, Clone)]
        pub struct $name {
            $($(#[doc = $doc])* pub $field: $kind,)*
            $($($(#[doc = $group_doc])* pub $group: $group_kind,)*)?
        }

        impl $name {
            /// Reads the environment over `file` (lines `NAME=value`) over the defaults.
            ///
            /// Errors: every variable that does not parse, together.
            pub fn load(file: Option<&std::path::Path>) -> Result<Self, $crate::settings::Problems> {
                let values = $crate::settings::Values::read(file)?;
                <Self as $crate::settings::FromValues>::from_values(&values)
            }
        }

        impl $crate::settings::FromValues for $name {
            const VARIABLES: &'static [$crate::settings::Variable] = &[
                $($crate::settings::Variable {
                    field: stringify!($field),
                    expected: <$kind as $crate::settings::Setting>::EXPECTED,
                    default: $default,
                    meaning: &[$($doc),*],
                    shape: <$kind as $crate::settings::Setting>::SHAPE,
                    is_secret: <$kind as $crate::settings::Setting>::SECRET,
                },)*
            ];
            const GROUPS: &'static [&'static [$crate::settings::Variable]] = &[
                $($(<$group_kind as $crate::settings::FromValues>::VARIABLES,)*)?
            ];
            const GROUP_DEFAULTS: &'static [(&'static str, &'static str)] = &[
                $($($($((stringify!($member), $member_default),)*)?)*)?
            ];

            fn read(
                values: &$crate::settings::Values,
                problems: &mut $crate::settings::Problems,
            ) -> Self {
                Self {
                    $($field: values.parse::<$kind>(stringify!($field), $default, problems),)*
                    $($($group: <$group_kind as $crate::settings::FromValues>::read(
                        &values.with_defaults(Self::GROUP_DEFAULTS),
                        problems,
                    ),)*)?
                }
            }
        }

        impl Default for $name {
            fn default() -> Self {
                let values = $crate::settings::Values::default();
                let mut problems = $crate::settings::Problems::default();
                <Self as $crate::settings::FromValues>::read(&values, &mut problems)
            }
        }
    };
}

#[cfg(test)]
#[expect(
    unreachable_pub,
    dead_code,
    reason = "the macro declares exports of servers"
)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    crate::settings! {
        /// For the tests below.
        pub struct Sample {
            /// A port.
            port: u16 = "8090",
            /// A switch.
            dummy_ignition: bool = "false",
            /// Names.
            registries: CommaList = "",
            /// A password.
            db_pass: Secret = "",
            /// JSON.
            images: JsonVar<Vec<u32>> = "[]",
            /// Maybe.
            extra: Option<u16> = "",
            /// How long.
            wait: std::time::Duration = "1m",
        }
    }

    crate::settings! {
        /// A server that shares the settings above, with another default.
        pub struct Sharing {
            /// Its own.
            name: String = "a",
        } with {
            /// Those above.
            sample: Sample { wait = "5m" },
        }
    }

    #[test]
    fn a_server_gives_a_shared_variable_its_own_default() {
        let wait = |sharing: Sharing| sharing.sample.wait.as_secs();
        assert_eq!(wait(Sharing::default()), 300);
        for (text, seconds) in [("", 300), ("7s", 7)] {
            let values = Values::from_pairs([("wait", text), ("port", "1")]);
            let sharing = Sharing::from_values(&values).unwrap();
            assert_eq!(sharing.sample.port, 1);
            assert_eq!(wait(sharing), seconds);
        }
        let table = reference::<Sharing>();
        assert!(table.contains("| `5m` | How long. |"), "{table}");
        assert!(table.contains("| `8090` | A port. |"), "{table}");
    }

    #[test]
    fn defaults_parse() {
        let sample = Sample::default();
        assert_eq!(
            (sample.port, sample.dummy_ignition, sample.extra),
            (8090, false, None)
        );
        assert_eq!(sample.wait.as_secs(), 60);
    }

    #[test]
    fn all_problems_are_reported_together_without_secrets() {
        let values = Values::from_pairs([
            ("port", "eighty"),
            ("dummy_ignition", "maybe"),
            ("images", "[1,"),
            ("wait", "5 parsecs"),
            ("db_pass", "hunter2"),
        ]);
        let text = Sample::from_values(&values).unwrap_err().to_string();
        for name in ["PORT", "DUMMY_IGNITION", "IMAGES", "WAIT"] {
            assert!(text.contains(name), "{name} is missing in {text}");
        }
        assert!(!text.contains("hunter2"), "{text}");
    }

    #[test]
    fn invalid_values_get_their_default() {
        let values = Values::from_pairs([("port", "eighty"), ("extra", "7")]);
        let mut problems = Problems::default();
        let sample = Sample::read(&values, &mut problems);
        assert_eq!((sample.port, sample.extra), (8090, Some(7)));
        assert_eq!(problems.0.len(), 1);
    }

    #[test]
    fn the_variable_of_a_missing_file_is_named() {
        let values = Values::from_pairs([("db_pass_file", "/none/x")]);
        let text = Sample::from_values(&values).unwrap_err().to_string();
        assert!(text.contains("DB_PASS_FILE: /none/x"), "{text}");
    }

    #[test]
    fn an_empty_variable_is_unset() {
        let values = Values::from_pairs([("port", ""), ("registries", " a, b ,"), ("extra", "7")]);
        let sample = Sample::from_values(&values).unwrap();
        assert_eq!(sample.port, 8090);
        assert_eq!(*sample.registries, ["a", "b"]);
        assert_eq!(sample.extra, Some(7));
    }

    #[test]
    fn items_of_a_list_may_come_one_by_one() {
        let one_by_one = [
            ("registries_0", "a"),
            ("registries_1", "b"),
            ("registries_3", "d"),
        ];
        let sample = Sample::from_values(&Values::from_pairs(one_by_one)).unwrap();
        assert_eq!(*sample.registries, ["a", "b"]);
        let both = Values::from_pairs([("registries_0", "a"), ("registries", "b")]);
        assert_eq!(*Sample::from_values(&both).unwrap().registries, ["b"]);
    }

    /// For the test below: names and texts.
    #[derive(Debug, Default, PartialEq)]
    pub struct Pairs(Vec<(String, String)>);

    impl Setting for Pairs {
        const EXPECTED: &'static str = "pairs";
        const SHAPE: Shape = Shape::Parts;

        fn parse(text: &str) -> Result<Self, String> {
            text.is_empty()
                .then(Self::default)
                .ok_or("not whole".to_owned())
        }

        fn parse_parts(parts: &BTreeMap<&str, &str>) -> Result<Self, String> {
            let pairs = parts
                .iter()
                .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
            Ok(Self(pairs.collect()))
        }
    }

    #[test]
    fn parts_come_with_their_names() {
        let mut problems = Problems::default();
        let mut values = Values::from_pairs([("headers_x-a_0", "1"), ("headers_x-b", "2")]);
        values.set_below("headers_x-b", "no", "file, line 3");
        values.set_below("headers_x-c", "3", "file, line 4");
        let Pairs(pairs) = values.parse("headers", "", &mut problems);
        let pairs: Vec<_> = pairs
            .iter()
            .map(|(name, text)| (&**name, &**text))
            .collect();
        assert_eq!(pairs, [("x-a_0", "1"), ("x-b", "2"), ("x-c", "3")]);
        assert!(problems.0.is_empty());
    }

    #[test]
    fn an_invalid_value_is_reported_with_its_origin() {
        let mut problems = Problems::default();
        let mut values = Values::default();
        values.set_below("port", "eighty", "config.yml, line 7");
        values.parse::<u16>("port", "1", &mut problems);
        let message = problems.to_string();
        assert!(
            message.contains("PORT: config.yml, line 7: \"eighty\""),
            "{message}"
        );
    }

    #[test]
    fn every_spelling_of_a_boolean() {
        for text in ["true", "True", "TRUE", "t", "T", "1", "yes", "on"] {
            let values = Values::from_pairs([("dummy_ignition", text)]);
            assert!(
                Sample::from_values(&values).unwrap().dummy_ignition,
                "{text}"
            );
        }
        for text in ["false", "False", "FALSE", "f", "F", "0", "no", "off"] {
            let values = Values::from_pairs([("dummy_ignition", text)]);
            assert!(
                !Sample::from_values(&values).unwrap().dummy_ignition,
                "{text}"
            );
        }
    }

    #[test]
    fn a_secret_may_come_from_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pass");
        std::fs::write(&path, "s3cret\n").unwrap();
        let values = Values::from_pairs([("db_pass_file", path.to_str().unwrap())]);
        let sample = Sample::from_values(&values).unwrap();
        assert_eq!(
            secrecy::ExposeSecret::expose_secret(&sample.db_pass),
            "s3cret"
        );
        assert!(!format!("{sample:?}").contains("s3cret"));
    }

    #[test]
    fn the_reference_names_every_variable() {
        let table = reference::<Sample>();
        assert!(
            table.contains("| `DUMMY_IGNITION` | boolean | `false` | A switch. |"),
            "{table}"
        );
    }
}
