//! Template of an image-set configuration.

use ::mirror::config::starting_file;
use clap::{Args, ValueEnum};
use oci::Reference;
use service::{Error, ResultExt as _};

use crate::terminal;

/// Arguments of `atoll mirror init`.
#[derive(Debug, Clone, Args)]
pub(crate) struct InitArgs {
    /// Output format; JSON has no comments
    #[arg(
        long = "format",
        alias = "output",
        value_name = "FORMAT",
        value_enum,
        default_value_t
    )]
    output: ConfigFormat,
    /// Store metadata in this image instead of a folder
    #[arg(long, value_name = "IMAGE")]
    registry: Option<Reference>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum ConfigFormat {
    #[default]
    Yaml,
    Json,
}

/// Prints the template.
///
/// Errors: none that depend on the arguments.
pub(crate) fn run(arguments: &InitArgs) -> Result<(), Error> {
    let yaml = starting_file(arguments.registry.as_ref());
    let text = match arguments.output {
        ConfigFormat::Yaml => yaml,
        ConfigFormat::Json => json(&yaml).doing("writing the file as JSON")?,
    };
    terminal::print(text.trim_end());
    Ok(())
}

fn json(yaml: &str) -> Result<String, Box<dyn std::error::Error + Send + Sync>> {
    let value: serde_json::Value = serde_json::from_str(&catalog::yaml_to_json(yaml)?)?;
    Ok(serde_json::to_string_pretty(&value)?)
}
