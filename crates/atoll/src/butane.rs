//! `atoll butane`: Butane into Ignition or a MachineConfig, with the flags of the original.

mod local_folder;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use ignition::butane::{ButaneOptions, LocalFiles, translate};
use ignition::{ProblemClass, ProblemList};
use located_yaml::v1_2::MAX_BYTES;
use service::file::rewrite_atomic;
use service::{Error, ResultExt as _};

use self::local_folder::LocalFolder;
use crate::failure;
use crate::terminal;

/// Mode of a new output file: configurations have password hashes and keys.
const MODE: u32 = 0o600;
const STDIN: &str = "-";

/// Arguments of `butane`.
#[derive(Debug, Clone, Args)]
pub(crate) struct ButaneArgs {
    /// Butane document. Default: standard input
    #[arg(value_name = "FILE")]
    input: Option<PathBuf>,
    /// Folder of local files that the document embeds
    #[arg(long, short = 'd', value_name = "DIR")]
    files_dir: Option<PathBuf>,
    /// Refuse a document with any warning
    #[arg(long, short)]
    strict: bool,
    /// Check the document without writing output
    #[arg(long, short)]
    check: bool,
    /// Indent the JSON
    #[arg(long, short)]
    pretty: bool,
    /// Write Ignition for every variant, never a MachineConfig
    #[arg(long, short)]
    raw: bool,
    /// Output file, replaced if it exists. Default: standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Translates the document; the value is the exit code of the process.
pub(crate) fn run(arguments: &ButaneArgs) -> ExitCode {
    match translate_file(arguments) {
        Ok(code) => code,
        Err(error) => {
            terminal::notice(&failure::text(&error));
            ExitCode::FAILURE
        }
    }
}

fn translate_file(arguments: &ButaneArgs) -> Result<ExitCode, Error> {
    let input = arguments.input.as_deref();
    let input = input.filter(|path| path.as_os_str() != STDIN);
    let name = input.map_or("<stdin>".to_owned(), |path| path.display().to_string());
    let text = read(input, &name)?;
    let folder = arguments.files_dir.as_deref().map(LocalFolder::open);
    let folder = folder.transpose()?;
    let options = ButaneOptions {
        files: folder.as_ref().map(|folder| folder as &dyn LocalFiles),
        is_raw: arguments.raw,
    };
    let translation = translate(&text, options);
    print_problems(&name, &translation.problems);
    let Some(output) = translation.output else {
        return Ok(ExitCode::FAILURE);
    };
    if arguments.strict && !translation.problems.as_slice().is_empty() {
        terminal::notice(&format!("{name} has warnings, which --strict refuses"));
        return Ok(ExitCode::FAILURE);
    }
    if !arguments.check {
        write(
            arguments.output.as_deref(),
            &output.to_text(arguments.pretty),
        )?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A line for each problem: `FILE:line:column: path: reason`.
fn print_problems(name: &str, problems: &ProblemList) {
    for problem in problems.as_slice() {
        let kind = match problem.class {
            ProblemClass::Refused => "error",
            ProblemClass::Ignored | ProblemClass::Doubtful => "warning",
        };
        let separator = if problem.path.is_empty() { "" } else { ": " };
        let (at, path, reason) = (problem.at, &problem.path, &problem.reason);
        terminal::line(&format!("{name}:{at}: {kind}: {path}{separator}{reason}"));
    }
    if problems.omitted() > 0 {
        terminal::line(&format!("{name}: {} more problems", problems.omitted()));
    }
}

fn read(input: Option<&Path>, name: &str) -> Result<String, Error> {
    let failed = |error: io::Error| Error::new(format!("reading {name}"), error);
    let mut source: Box<dyn Read> = match input {
        Some(path) => Box::new(File::open(path).map_err(failed)?),
        None => Box::new(io::stdin()),
    };
    let mut bytes = Vec::new();
    let mut bounded = source.by_ref().take(MAX_BYTES as u64 + 1);
    bounded.read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() > MAX_BYTES {
        let reason = format!("it has more than {MAX_BYTES} bytes");
        return Err(failed(io::Error::other(reason)));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let before = &error.as_bytes()[..at];
        let line = before.split(|byte| *byte == b'\n').count();
        failed(io::Error::other(format!("line {line} is not UTF-8")))
    })
}

fn write(output: Option<&Path>, text: &str) -> Result<(), Error> {
    let Some(path) = output else {
        let mut out = io::stdout().lock();
        let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        return written.doing("writing to standard output");
    };
    // A device or a pipe keeps its place.
    if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        let mut file = OpenOptions::new();
        let written = file.write(true).open(path);
        let written = written.and_then(|mut file| file.write_all(text.as_bytes()));
        return written.doing(|| format!("writing {}", path.display()));
    }
    rewrite_atomic(path, text.as_bytes(), MODE)
}
