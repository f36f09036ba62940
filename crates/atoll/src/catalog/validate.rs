//! `atoll catalog validate`: all problems of a catalog.

use std::io;

use ::catalog::write::{self, CatalogFormat};
use ::catalog::{CatalogProblem, CatalogProblems};
use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use service::Error;

use super::source::{OpenError, RegistryAccessArgs};
use crate::terminal;

/// Arguments of `atoll catalog validate`.
#[derive(Debug, Clone, Args)]
pub(crate) struct ValidateArgs {
    /// Catalog: a folder, an index.db, or an image as in registry.example.org/catalogs/community:v4.20
    catalog: String,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: VerdictFormat,
    #[command(flatten)]
    access: RegistryAccessArgs,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum VerdictFormat {
    /// One line per problem.
    #[default]
    Text,
    /// JSON.
    Json,
    /// YAML.
    Yaml,
}

/// Validates the catalog and prints all problems.
///
/// Errors: an invalid or missing catalog.
pub(crate) fn run(arguments: &ValidateArgs) -> Result<(), Error> {
    let ValidateArgs {
        catalog,
        output,
        access,
    } = arguments;
    let problems = match access.open()?.judged(catalog) {
        Ok(cache) => cache.report().problems(),
        Err(OpenError::Problems(problems)) => problems,
        Err(OpenError::Other(error)) => return Err(error),
    };
    match output {
        VerdictFormat::Text => problems
            .0
            .iter()
            .for_each(|it| terminal::print(&it.to_string())),
        VerdictFormat::Json => terminal::print(&verdict(&problems).to_string()),
        VerdictFormat::Yaml => write::document(
            &verdict(&problems).to_string(),
            CatalogFormat::Yaml,
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

/// Verdict with the list of problems. Source of the other members: opm, `validate -o json`.
fn verdict(problems: &CatalogProblems) -> Value {
    if problems.0.is_empty() {
        return json!({ "passed": true });
    }
    let each: Vec<_> = problems.0.iter().map(each).collect();
    json!({ "passed": false, "error": { "message": problems.to_string() }, "problems": each })
}

fn each(problem: &CatalogProblem) -> Value {
    let CatalogProblem {
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
