//! Version information. Source of the members: oc-mirror v1, `version`.

use clap::{Args, ValueEnum};
use serde_json::{Map, Value, json};
use service::{Error, ResultExt as _};

use crate::terminal;

/// Arguments of `atoll mirror version`.
#[derive(Debug, Clone, Args)]
pub(super) struct VersionArgs {
    /// Output format. Default: one line
    #[arg(long = "format", alias = "output", value_name = "FORMAT", value_enum)]
    output: Option<VersionFormat>,
    /// Print the version only, which is the default
    #[arg(long, conflicts_with = "output")]
    short: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum VersionFormat {
    Yaml,
    Json,
}

/// Prints the version.
///
/// Errors: none that depend on the arguments.
pub(super) fn run(arguments: &VersionArgs) -> Result<(), Error> {
    terminal::print(&match arguments.output {
        None => format!("Client Version: v{}", env!("CARGO_PKG_VERSION")),
        Some(VersionFormat::Json) => {
            let document = json!({ "clientVersion": members() });
            serde_json::to_string_pretty(&document).doing("printing")?
        }
        Some(VersionFormat::Yaml) => {
            let lines = members().into_iter();
            // JSON strings are YAML strings.
            let lines = lines.map(|(name, value)| format!("  {name}: {value}"));
            let head = std::iter::once("clientVersion:".to_owned());
            head.chain(lines).collect::<Vec<_>>().join("\n")
        }
    });
    Ok(())
}

fn members() -> Map<String, Value> {
    let version = env!("CARGO_PKG_VERSION");
    let members = [
        ("major", env!("CARGO_PKG_VERSION_MAJOR").to_owned()),
        ("minor", env!("CARGO_PKG_VERSION_MINOR").to_owned()),
        ("gitVersion", format!("v{version}")),
        ("gitCommit", String::new()),
        ("gitTreeState", String::new()),
        ("buildDate", String::new()),
        ("goVersion", String::new()),
        ("compiler", "rustc".to_owned()),
        (
            "platform",
            format!("{}/{}", std::env::consts::OS, architecture()),
        ),
    ];
    let members = members.into_iter();
    members
        .map(|(name, value)| (name.to_owned(), Value::String(value)))
        .collect()
}

/// Architecture in Go's spelling.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}
