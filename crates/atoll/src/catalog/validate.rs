//! Everything that is wrong with a catalog.

use std::io;

use ::catalog::write::{self, Format};
use ::catalog::{Problem, Problems};
use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use service::Error;

use super::source::{Access, Failure};
use crate::terminal;

/// What is checked, and how it is told.
#[derive(Debug, Clone, Args)]
pub(crate) struct Arguments {
    /// A folder, an index.db, or an image as in registry.example.org/catalogs/community:v4.20
    catalog: String,
    /// How the verdict is printed
    #[arg(short, long, value_enum, default_value_t)]
    output: Form,
    #[command(flatten)]
    access: Access,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum Form {
    /// Only what is wrong.
    #[default]
    Text,
    /// For programs.
    Json,
    /// The same.
    Yaml,
}

/// Checks and tells.
///
/// Errors: there are problems, or no catalog.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Error> {
    let Arguments {
        catalog,
        output,
        access,
    } = arguments;
    let problems = match access.open()?.checked(catalog) {
        Ok(_) => Problems::default(),
        Err(Failure::Problems(problems)) => problems,
        Err(Failure::Other(error)) => return Err(error),
    };
    match output {
        Form::Text => problems
            .0
            .iter()
            .for_each(|it| terminal::say(&it.to_string())),
        Form::Json => terminal::say(&verdict(&problems).to_string()),
        Form::Yaml => write::document(
            &verdict(&problems).to_string(),
            Format::Yaml,
            &mut io::stdout(),
        )
        .map_err(|e| Error::new("writing the verdict", e))?,
    }
    match problems.0.len() {
        0 => Ok(()),
        count => {
            let reason = format!("{count} problems were found");
            Err(Error::new(format!("validating {catalog}"), reason))
        }
    }
}

/// As `opm validate` has it, and each problem besides.
fn verdict(problems: &Problems) -> Value {
    if problems.0.is_empty() {
        return json!({ "passed": true });
    }
    let each: Vec<_> = problems.0.iter().map(each).collect();
    json!({ "passed": false, "error": { "message": problems.to_string() }, "problems": each })
}

fn each(problem: &Problem) -> Value {
    let Problem {
        origin,
        package,
        rule,
        text,
    } = problem;
    let (file, line) = match origin {
        Some(origin) => (json!(origin.file), json!(origin.line)),
        None => (Value::Null, Value::Null),
    };
    json!({ "file": file, "line": line, "package": package, "rule": rule.name(), "text": text })
}
