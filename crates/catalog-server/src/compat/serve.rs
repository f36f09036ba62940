//! `opm serve`: maps its flags to settings.
//!
//! Source: operator-registry, cmd/opm/serve.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use service::program::{self, ServerArgs};
use service::settings::Setting as _;

use crate::settings::UNNAMED;

/// Separator of catalogs in CATALOGS.
const SEPARATOR: char = ',';

/// Serves the file-based catalog in a folder.
#[derive(Debug, Parser)]
#[command(name = "serve", no_binary_name = true)]
struct ServeFlags {
    /// Folder of the catalog
    source_path: PathBuf,
    /// Port of gRPC
    #[arg(short, long, default_value_t = 50051)]
    port: u16,
    /// Folder of the cache. Default: a temporary folder, removed at exit
    #[arg(long, default_value = "")]
    cache_dir: String,
    /// Build the cache and exit
    #[arg(long, value_parser = flag, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false")]
    cache_only: bool,
    /// Exit with an error if the cache is missing or stale
    #[arg(long, value_parser = flag, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    cache_enforce_integrity: Option<bool>,
    /// Enable debug logging
    #[arg(long, value_parser = flag, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false")]
    debug: bool,
    #[command(flatten)]
    ignored: Ignored,
}

/// Accepted, without effect.
#[derive(Debug, clap::Args)]
struct Ignored {
    #[arg(long, hide = true)]
    pprof_addr: Option<String>,
    #[arg(long, hide = true, value_parser = flag, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pprof_capture_profiles: Option<bool>,
    #[arg(short, long, hide = true)]
    termination_log: Option<PathBuf>,
    #[arg(long, hide = true, value_parser = flag, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    skip_tls_verify: Option<bool>,
    #[arg(long, hide = true, value_parser = flag, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    use_http: Option<bool>,
}

fn flag(text: &str) -> Result<bool, String> {
    bool::parse(text)
}

impl ServeFlags {
    /// Errors: conflicting flags; a folder with a comma or that is not UTF-8.
    fn overrides(&self) -> Result<Vec<(String, String)>, String> {
        if self.cache_dir.is_empty() && self.cache_enforce_integrity == Some(true) {
            return Err("--cache-dir must be specified with --cache-enforce-integrity".to_owned());
        }
        let folder = std::path::absolute(&self.source_path).map_err(|e| e.to_string())?;
        let folder = folder
            .to_str()
            .filter(|folder| !folder.contains(SEPARATOR))
            .ok_or_else(|| {
                let folder = folder.display();
                format!("{folder} cannot be served: its path has a comma or is not UTF-8")
            })?;
        // opm defaults to true with --cache-dir. Its caches are unusable here, so a missing one is refused only on
        // request.
        let is_enforced = self.cache_enforce_integrity.unwrap_or(false) && !self.cache_only;
        let mut overrides = vec![
            // Named: the folder's path may parse as NAME=SOURCE.
            ("catalogs", format!("{UNNAMED}={folder}")),
            ("catalog_port", self.port.to_string()),
            ("catalog_cache_dir", self.cache_dir.clone()),
            ("catalog_cache_enforced", is_enforced.to_string()),
        ];
        if self.debug {
            overrides.push(("log_level", "debug".to_owned()));
        }
        let owned = |(name, text): (&str, String)| (name.to_owned(), text);
        Ok(overrides.into_iter().map(owned).collect())
    }
}

/// Runs `opm serve`; returns the exit code.
///
/// Errors: flags that do not fit, as text.
pub(super) fn main(arguments: Vec<OsString>) -> Result<ExitCode, String> {
    let flags = match ServeFlags::try_parse_from(arguments) {
        Ok(flags) => flags,
        Err(error) => {
            error.print().ok();
            return Ok(ExitCode::from(u8::from(error.use_stderr())));
        }
    };
    let arguments = ServerArgs::overriding(flags.overrides()?);
    Ok(if flags.cache_only {
        program::main_with("catalog-server", &arguments, crate::prepare)
    } else {
        program::main_with("catalog-server", &arguments, crate::run_strictly)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overrides(line: &str) -> Result<Vec<(String, String)>, String> {
        let flags = ServeFlags::try_parse_from(line.split(' ')).map_err(|e| e.to_string())?;
        flags.overrides()
    }

    fn value<'a>(overrides: &'a [(String, String)], name: &str) -> Option<&'a str> {
        let found = overrides.iter().find(|(of, _)| of == name);
        found.map(|(_, text)| text.as_str())
    }

    #[test]
    fn flags_become_settings() {
        let plain = overrides("/configs --cache-dir=/tmp/cache").unwrap();
        assert_eq!(value(&plain, "catalogs"), Some("catalog=/configs"));
        assert_eq!(value(&plain, "catalog_port"), Some("50051"));
        assert_eq!(value(&plain, "catalog_cache_dir"), Some("/tmp/cache"));
        assert_eq!(value(&plain, "catalog_cache_enforced"), Some("false"));
        let more =
            "/c -p 8080 -t /x --cache-dir /y --debug --pprof-addr= --cache-enforce-integrity";
        let more = overrides(more).unwrap();
        assert_eq!(value(&more, "catalog_port"), Some("8080"));
        assert_eq!(value(&more, "catalog_cache_enforced"), Some("true"));
        assert_eq!(value(&more, "log_level"), Some("debug"));
        let off =
            overrides("/c --cache-only=false --cache-enforce-integrity=F --use-http").unwrap();
        assert_eq!(value(&off, "catalog_cache_enforced"), Some("false"));
    }

    #[test]
    fn a_relative_folder_is_not_an_image() {
        let relative = overrides("a.b/c").unwrap();
        let folder = value(&relative, "catalogs").unwrap();
        assert!(
            folder.starts_with("catalog=/") && folder.ends_with("/a.b/c"),
            "{folder}"
        );
    }

    #[test]
    fn invalid_flags_and_folders_are_refused() {
        for (line, reason) in [
            (
                "/c --cache-enforce-integrity",
                "--cache-dir must be specified",
            ),
            ("/a,b", "comma"),
            ("/c --cache-only=maybe", "neither true nor false"),
            ("--cache-dir=/x", "<SOURCE_PATH>"),
            ("/c --no-such-flag", "--no-such-flag"),
        ] {
            let refused = overrides(line).unwrap_err();
            assert!(refused.contains(reason), "{line}: {refused}");
        }
    }
}
