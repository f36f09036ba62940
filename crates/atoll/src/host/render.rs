//! `atoll host render`: records of a short inventory.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use host_records::MAX_CREDENTIAL;
use host_records::check::{CheckReport, RecordFinding};
use host_records::inventory::{self, Inventory, MAX_INVENTORY, RenderedHost};
use secrecy::SecretString;
use service::Error;
use service::file::{folder, write_atomic};

use super::check::summary;
use super::input::{self, ApiGroupsArgs};
use crate::terminal;

/// Mode of files with passwords.
const OWNER_ONLY: u32 = 0o600;
/// Mode of a new folder with passwords.
const OWNER_FOLDER: u32 = 0o700;

/// Writes Secret, BareMetalHost and Machine records of a short inventory.
///
/// An inventory is YAML: cluster (its id, for machines of control nodes), namespace, defaults, and hosts with name, role,
/// mac, bmc (host[:port], an address, or address, scheme, system, username, password or passwordFile and
/// disableCertificateVerification), bootMode, online, externallyProvisioned, machine, addresses and rootDevice. A
/// passwordFile is relative to the inventory; - is standard input.
#[derive(Debug, Clone, Args)]
pub(crate) struct RenderArgs {
    /// Inventory; - reads standard input
    inventory: PathBuf,
    /// Output file, with mode 600. Default: standard output
    #[arg(long, short, value_name = "FILE", conflicts_with = "dir")]
    output: Option<PathBuf>,
    /// Folder for one file of each host, with mode 600
    #[arg(long, short, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Replace files
    #[arg(long, short)]
    force: bool,
    /// Output format: YAML documents, or JSON objects one after the other
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    format: RecordFormat,
    /// As --format json
    #[arg(long, hide = true, conflicts_with = "format")]
    json: bool,
    #[command(flatten)]
    groups: ApiGroupsArgs,
}

/// Format of the records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum RecordFormat {
    #[default]
    Yaml,
    Json,
}

/// Renders the inventory; returns whether it has no mistake.
///
/// Errors: a file cannot be read or written.
pub(super) fn run(arguments: &RenderArgs) -> Result<bool, Error> {
    let groups = arguments.groups.read()?;
    let path = &arguments.inventory;
    let content = input::read(path, MAX_INVENTORY)?;
    let inventory = match inventory::read(&input::name(path), &content, &groups) {
        Ok(inventory) => inventory,
        Err(report) => return Ok(refuse(&report)),
    };
    let passwords = passwords(path, &inventory)?;
    let rendering = match inventory::render(&inventory, &passwords, &groups) {
        Ok(rendering) => rendering,
        Err(report) => return Ok(refuse(&report)),
    };
    print_findings(&rendering.warnings);
    arguments.write(&rendering.hosts)?;
    Ok(true)
}

fn refuse(report: &CheckReport) -> bool {
    print_findings(&report.findings);
    terminal::line(&summary(report));
    false
}

/// On standard error: standard output may have the records.
fn print_findings(findings: &[RecordFinding]) {
    for finding in findings {
        terminal::line(&finding.to_string());
    }
}

/// The passwords of the files that the inventory names, without their last line end.
fn passwords(path: &Path, inventory: &Inventory) -> Result<BTreeMap<String, SecretString>, Error> {
    let base = match path.parent() {
        Some(parent) if !input::is_stdin(path) => parent,
        _ => Path::new(""),
    };
    let files = inventory.password_files().into_iter().map(|name| {
        let failed =
            |reason: String| Error::new(format!("reading the password file {name}"), reason);
        let file = match name {
            "-" if input::is_stdin(path) => {
                return Err(failed("the inventory is standard input already".to_owned()));
            }
            "-" => PathBuf::from(name),
            name => base.join(name),
        };
        // A line end may follow.
        let content = input::read(&file, MAX_CREDENTIAL + 2)?;
        // The bytes are not repeated.
        let text = String::from_utf8(content).map_err(|_| {
            failed("it is not UTF-8 text; save the password as one line".to_owned())
        })?;
        let line = text.strip_suffix('\n').unwrap_or(&text);
        let line = line.strip_suffix('\r').unwrap_or(line);
        if line.is_empty() {
            return Err(failed("it is empty; write the password into it".to_owned()));
        }
        Ok((name.to_owned(), SecretString::from(line)))
    });
    files.collect()
}

impl RenderArgs {
    fn is_json(&self) -> bool {
        self.json || self.format == RecordFormat::Json
    }

    fn write(&self, hosts: &[RenderedHost]) -> Result<(), Error> {
        let text = |host: &RenderedHost| {
            if self.is_json() {
                host.to_json()
            } else {
                host.to_yaml()
            }
        };
        if let Some(dir) = &self.dir {
            let extension = if self.is_json() { "json" } else { "yaml" };
            let paths: Vec<_> = hosts
                .iter()
                .map(|host| dir.join(format!("{}.{extension}", host.name)))
                .collect();
            paths.iter().try_for_each(|path| self.can_write(path))?;
            folder(dir, OWNER_FOLDER)?;
            return hosts.iter().zip(&paths).try_for_each(|(host, path)| {
                write_atomic(path, text(host).as_bytes(), OWNER_ONLY)
            });
        }
        let all: String = hosts.iter().map(text).collect();
        let Some(path) = &self.output else {
            terminal::print(all.trim_end());
            return Ok(());
        };
        self.can_write(path)?;
        write_atomic(path, all.as_bytes(), OWNER_ONLY)
    }

    fn can_write(&self, path: &Path) -> Result<(), Error> {
        if self.force || !path.exists() {
            return Ok(());
        }
        let doing = format!("writing {}", path.display());
        Err(Error::new(doing, "it exists; use --force to replace it"))
    }
}
