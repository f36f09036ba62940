//! `atoll catalog validate`: all problems of a catalog.

use std::io;

use ::catalog::write::{self, CatalogFormat};
use ::catalog::{Advice, CatalogProblem, CatalogProblems};
use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use service::{Error, ResultExt as _};

use super::format::{CatalogFormatArgs, Format};
use super::source::{OpenError, RegistryAccessArgs};
use crate::terminal;

/// Arguments of `atoll catalog validate`.
#[derive(Debug, Clone, Args)]
pub(crate) struct ValidateArgs {
    /// Catalog: a folder, an index.db, or an image as in registry.example.org/catalogs/community:v4.20
    catalog: String,
    #[command(flatten)]
    output: CatalogFormatArgs<VerdictFormat>,
    #[command(flatten)]
    access: RegistryAccessArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum VerdictFormat {
    /// One line per problem.
    Text,
    /// JSON.
    Json,
    /// YAML.
    Yaml,
}

impl Format for VerdictFormat {
    const DEFAULT: &'static str = "text";
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
    let (problems, warnings) = match access.open()?.judged(catalog) {
        Ok(cache) => {
            let warnings = Advice::of(&cache).doing(|| format!("reading {catalog}"))?;
            (cache.report().problems(), warnings)
        }
        Err(OpenError::Problems(problems)) => (problems, Vec::new()),
        Err(OpenError::Other(error)) => return Err(error),
    };
    for warning in &warnings {
        terminal::notice(&warning.to_string());
    }
    match output.format {
        VerdictFormat::Text => problems
            .0
            .iter()
            .for_each(|it| terminal::print(&it.to_string())),
        VerdictFormat::Json => terminal::print(&verdict(&problems, &warnings).to_string()),
        VerdictFormat::Yaml => write::document(
            &verdict(&problems, &warnings).to_string(),
            CatalogFormat::Yaml,
            &mut io::stdout(),
        )
        .doing("writing the verdict")?,
    }
    match problems.0.len() {
        0 => Ok(()),
        count => {
            let reason = format!("{count} problems were found");
            Err(Error::new(format!("validating {catalog}"), reason))
        }
    }
}

/// Verdict with the lists of problems and warnings. Source of the other members: opm, `validate -o json`.
fn verdict(problems: &CatalogProblems, warnings: &[Advice]) -> Value {
    let mut verdict = json!({ "passed": problems.0.is_empty() });
    if !problems.0.is_empty() {
        let each: Vec<_> = problems.0.iter().map(each).collect();
        verdict["error"] = json!({ "message": problems.to_string() });
        verdict["problems"] = json!(each);
    }
    if !warnings.is_empty() {
        let warnings: Vec<_> = warnings.iter().map(warning).collect();
        verdict["warnings"] = json!(warnings);
    }
    verdict
}

fn warning(warning: &Advice) -> Value {
    let Advice {
        origin,
        package,
        text,
    } = warning;
    json!({ "file": origin.file, "line": origin.line, "package": package, "text": text })
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
