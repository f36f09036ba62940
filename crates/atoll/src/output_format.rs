//! The output format of reports.

use clap::{Args, ValueEnum};

/// Output format of lists and reports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// Plain text.
    #[default]
    Text,
    /// JSON.
    Json,
}

/// Output format of a report, for verbs whose `--output` is a file.
#[derive(Debug, Clone, Args)]
pub(crate) struct FormatArgs {
    /// Output format
    #[arg(
        long,
        value_name = "FORMAT",
        default_value = "text",
        hide_possible_values = false
    )]
    format: OutputFormat,
    /// As --format json
    #[arg(long, hide = true, conflicts_with = "format")]
    json: bool,
}

impl FormatArgs {
    pub(crate) fn is_json(&self) -> bool {
        self.json || self.format == OutputFormat::Json
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        format: FormatArgs,
    }

    #[test]
    fn the_old_flag_is_the_format_json() {
        for (arguments, is_json) in [
            (&["atoll"][..], false),
            (&["atoll", "--json"], true),
            (&["atoll", "--format", "json"], true),
            (&["atoll", "--format=text"], false),
        ] {
            let line = Line::try_parse_from(arguments).unwrap();
            assert_eq!(line.format.is_json(), is_json, "{arguments:?}");
        }
        assert!(Line::try_parse_from(["atoll", "--json", "--format", "text"]).is_err());
        assert!(Line::try_parse_from(["atoll", "--format", "xml"]).is_err());
    }
}
