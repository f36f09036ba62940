//! `atoll ignition`: configurations of hosts in files.

mod io;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use ignition::{
    ConfigDocument, ConfigSummary, IgnitionProblem, ProblemClass, ProblemList, SpecVersion,
};
use serde_json::json;
use service::{Error, ResultExt as _};

use self::io::{ConfigOutput, read_bounded, write_bytes};
use crate::failure;
use crate::output_format::FormatArgs;
use crate::terminal;

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum IgnitionCommand {
    /// Check configurations as Ignition does; exit code 1 if it refuses one
    Validate(ValidateFilesArgs),
    /// Merge configurations; later ones win
    Merge(MergeFilesArgs),
    /// Write a configuration in another version of the specification
    Convert(ConvertFileArgs),
    /// Show files, units, users and sources, without secrets
    Show(ShowFileArgs),
}

/// Arguments of `validate`.
#[derive(Debug, Clone, Args)]
pub(crate) struct ValidateFilesArgs {
    /// Configurations; - reads one from standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Refuse members that Ignition ignores, too
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    format: FormatArgs,
}

/// Arguments of `merge`.
#[derive(Debug, Clone, Args)]
pub(crate) struct MergeFilesArgs {
    /// The configuration that the others are merged over; - reads standard input
    parent: PathBuf,
    /// Configurations that win over those before
    #[arg(required = true, value_name = "CHILD")]
    children: Vec<PathBuf>,
    #[command(flatten)]
    output: ConfigOutput,
}

/// Arguments of `convert`.
#[derive(Debug, Clone, Args)]
pub(crate) struct ConvertFileArgs {
    /// Configuration; - reads standard input
    file: PathBuf,
    /// Version of the specification, 3.0.0 to 3.6.0. Default: the lowest that carries the content
    #[arg(long, value_name = "VERSION", value_parser = parse_version)]
    to: Option<SpecVersion>,
    #[command(flatten)]
    output: ConfigOutput,
}

/// Arguments of `show`.
#[derive(Debug, Clone, Args)]
pub(crate) struct ShowFileArgs {
    /// Configuration; - reads standard input
    config: PathBuf,
    /// Print the decoded contents of this file only, after its hash is verified
    #[arg(long = "file", value_name = "PATH", conflicts_with_all = ["format", "json"])]
    path: Option<String>,
    #[command(flatten)]
    format: FormatArgs,
}

fn parse_version(text: &str) -> Result<SpecVersion, String> {
    SpecVersion::parse(text).ok_or_else(|| "expected one of 3.0.0 to 3.6.0".to_owned())
}

/// Runs the subcommand; the value is the exit code of the process.
pub(crate) fn run(command: &IgnitionCommand) -> ExitCode {
    let result = match command {
        IgnitionCommand::Validate(arguments) => validate(arguments),
        IgnitionCommand::Merge(arguments) => merge(arguments),
        IgnitionCommand::Convert(arguments) => convert(arguments),
        IgnitionCommand::Show(arguments) => show(arguments),
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            terminal::notice(&failure::text(&error));
            ExitCode::FAILURE
        }
    }
}

fn validate(arguments: &ValidateFilesArgs) -> Result<ExitCode, Error> {
    let mut are_valid = true;
    let mut reports = Vec::new();
    for path in &arguments.files {
        let (document, problems) = ConfigDocument::read(&read_bounded(path)?);
        let ignored = problems.first(&[ProblemClass::Ignored]);
        let is_valid = !problems.is_refused() && (ignored.is_none() || !arguments.strict);
        are_valid &= is_valid;
        if !arguments.format.is_json() {
            print_problems(path, &problems, arguments.strict, terminal::print);
            continue;
        }
        let entry = |problem: &IgnitionProblem| {
            json!({
                "line": problem.at.line,
                "column": problem.at.column,
                "path": problem.path,
                "severity": severity(problem, arguments.strict),
                "reason": problem.reason,
            })
        };
        reports.push(json!({
            "file": path.display().to_string(),
            "valid": is_valid,
            "version": document.map(|document| document.version().as_str()),
            "problems": problems.as_slice().iter().map(entry).collect::<Vec<_>>(),
            "omitted": problems.omitted(),
        }));
    }
    if arguments.format.is_json() {
        terminal::print(&serde_json::Value::from(reports).to_string());
    }
    Ok(if are_valid {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn severity(problem: &IgnitionProblem, strict: bool) -> &'static str {
    match problem.class {
        ProblemClass::Refused => "error",
        ProblemClass::Ignored if strict => "error",
        ProblemClass::Ignored | ProblemClass::Doubtful => "warning",
    }
}

/// A line for each problem: `FILE:line:column: path: reason`.
fn print_problems(path: &Path, problems: &ProblemList, strict: bool, print: fn(&str)) {
    let path = path.display();
    for problem in problems.as_slice() {
        let problem = match severity(problem, strict) {
            "error" => problem.to_string(),
            _ => format!("{}: warning: {}", problem.at, problem.without_position()),
        };
        print(&format!("{path}:{problem}"));
    }
    if problems.omitted() > 0 {
        print(&format!("{path}: {} more problems", problems.omitted()));
    }
}

/// Reads a configuration that is to be written again: nothing of it may be lost.
///
/// Errors: problems, which are printed.
fn read(path: &Path) -> Result<ConfigDocument, Error> {
    let (document, problems) = ConfigDocument::read(&read_bounded(path)?);
    print_problems(path, &problems, true, terminal::line);
    let refused = problems.first(&[ProblemClass::Refused, ProblemClass::Ignored]);
    match (document, refused) {
        (Some(document), None) => Ok(document),
        _ => Err(unusable(path)),
    }
}

/// Reads a configuration for an image, which gets it as it is.
///
/// Errors: Ignition would refuse it; the problems are printed.
pub(crate) fn accepted(path: &Path) -> Result<Vec<u8>, Error> {
    let text = read_bounded(path)?;
    let (_, problems) = ConfigDocument::read(&text);
    print_problems(path, &problems, false, terminal::line);
    if problems.is_refused() {
        return Err(unusable(path));
    }
    Ok(text)
}

fn unusable(path: &Path) -> Error {
    Error::new(
        format!("using {}", path.display()),
        "the configuration is not valid",
    )
}

fn merge(arguments: &MergeFilesArgs) -> Result<ExitCode, Error> {
    let inputs = std::iter::once(&arguments.parent).chain(&arguments.children);
    if inputs.filter(|path| path.as_os_str() == "-").count() > 1 {
        let reason = "standard input has one configuration only";
        return Err(Error::new("merging", reason));
    }
    let mut merged = read(&arguments.parent)?;
    for path in &arguments.children {
        merged = merged.merge(&read(path)?);
        let problems = merged.problems();
        if problems.is_refused() {
            // Values are from several files: their positions would mislead.
            let refused = problems.as_slice().iter();
            for problem in refused.filter(|problem| problem.class == ProblemClass::Refused) {
                let problem = problem.without_position();
                terminal::line(&format!("{}: {problem}", path.display()));
            }
            let doing = format!("merging {}", path.display());
            return Err(Error::new(doing, "the result is not valid"));
        }
    }
    arguments.output.write(&merged)?;
    Ok(ExitCode::SUCCESS)
}

fn convert(arguments: &ConvertFileArgs) -> Result<ExitCode, Error> {
    let document = read(&arguments.file)?;
    let converted = match arguments.to {
        Some(version) => document.convert(version),
        None => document.lowest(),
    };
    let converted = converted.map_err(|problems| {
        print_problems(&arguments.file, &problems, true, terminal::line);
        let version = arguments.to.unwrap_or(document.version());
        let doing = format!("converting {}", arguments.file.display());
        Error::new(
            doing,
            format!("version {version} does not carry the content"),
        )
    })?;
    arguments.output.write(&converted)?;
    Ok(ExitCode::SUCCESS)
}

fn show(arguments: &ShowFileArgs) -> Result<ExitCode, Error> {
    let (document, problems) = ConfigDocument::read(&read_bounded(&arguments.config)?);
    print_problems(&arguments.config, &problems, false, terminal::line);
    let document = document.ok_or_else(|| unusable(&arguments.config))?;
    if let Some(path) = &arguments.path {
        let bytes = document.file_bytes(path);
        let bytes = bytes.doing("showing the file")?;
        write_bytes(&bytes)?;
    } else {
        let summary = ConfigSummary::new(&document);
        let text = if arguments.format.is_json() {
            serde_json::to_string(&summary).doing("writing the summary")?
        } else {
            summary.to_string().trim_end().to_owned()
        };
        terminal::print(&text);
    }
    Ok(if problems.is_refused() {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}
