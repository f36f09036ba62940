//! `atoll completions` and `atoll man`: the command line for shells and for `man`.

use std::path::PathBuf;

use clap::{Args, Command};
use clap_complete::Shell;
use clap_mangen::Man;
use service::file::{folder, write_atomic};
use service::{Error, ResultExt as _};

use crate::terminal;

/// Name of the program.
const PROGRAM: &str = "atoll";
/// Modes of pages and their folder.
const PAGE_MODE: u32 = 0o644;
const FOLDER_MODE: u32 = 0o755;

/// Arguments of `completions`.
#[derive(Debug, Clone, Args)]
pub(crate) struct CompletionsArgs {
    /// Shell
    shell: Shell,
}

/// Arguments of `man`.
#[derive(Debug, Clone, Args)]
pub(crate) struct ManArgs {
    /// Verb, as in `host boot`; by default the page of `atoll` itself
    verb: Vec<String>,
    /// Write the pages of all verbs into this folder, as /usr/local/share/man/man1
    #[arg(long, value_name = "DIR", conflicts_with = "verb")]
    dir: Option<PathBuf>,
}

/// Prints the completions of a shell.
pub(crate) fn completions(arguments: &CompletionsArgs, command: Command) {
    terminal::print(script(arguments.shell, command).trim_end());
}

fn script(shell: Shell, mut command: Command) -> String {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut command, PROGRAM, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// Prints a manual page, or writes all of them.
///
/// Errors: there is no such verb; a page cannot be written.
pub(crate) fn man(arguments: &ManArgs, mut command: Command) -> Result<(), Error> {
    // Names the verbs in full.
    command.build();
    if let Some(dir) = &arguments.dir {
        folder(dir, FOLDER_MODE)?;
        let count = write_pages(&command, dir)?;
        terminal::print(&format!("{count} pages are in {}", dir.display()));
        return Ok(());
    }
    let mut found = &command;
    for verb in &arguments.verb {
        found = found.find_subcommand(verb).ok_or_else(|| {
            let names: Vec<_> = found.get_subcommands().map(Command::get_name).collect();
            let reason = if names.is_empty() {
                format!("{} has no verbs", found.get_name())
            } else {
                format!("it is none of {}", names.join(", "))
            };
            Error::new(format!("printing the page of {verb}"), reason)
        })?;
    }
    terminal::print(String::from_utf8_lossy(&page(found)?).trim_end());
    Ok(())
}

/// Writes the pages of a verb and of those below it; their number.
fn write_pages(command: &Command, dir: &std::path::Path) -> Result<usize, Error> {
    let name = command.get_display_name().unwrap_or(command.get_name());
    write_atomic(&dir.join(format!("{name}.1")), &page(command)?, PAGE_MODE)?;
    let mut count = 1;
    let verbs = command.get_subcommands();
    for verb in verbs.filter(|it| !it.is_hide_set() && it.get_name() != "help") {
        count += write_pages(verb, dir)?;
    }
    Ok(count)
}

fn page(command: &Command) -> Result<Vec<u8>, Error> {
    let mut page = Vec::new();
    let rendered = Man::new(command.clone()).render(&mut page);
    rendered.doing(|| format!("making the page of {}", command.get_name()))?;
    Ok(page)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Completions and pages have all verbs and flags.
    pub(crate) fn check_texts(command: &Command) {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let script = script(shell, command.clone());
            for word in ["rehearse", "controller", "http-boot"] {
                assert!(script.contains(word), "{shell}: {word}");
            }
            assert!(!script.contains("--data"), "{shell} has an older name");
        }
        let folder = tempfile::tempdir().unwrap();
        let arguments = ManArgs {
            verb: Vec::new(),
            dir: Some(folder.path().join("man1")),
        };
        man(&arguments, command.clone()).unwrap();
        let page = |name: &str| std::fs::read_to_string(folder.path().join("man1").join(name));
        assert!(page("atoll.1").unwrap().contains("Exit codes"));
        assert!(
            page("atoll-host-boot.1")
                .unwrap()
                .contains("atoll host boot")
        );
        let arguments = ManArgs {
            verb: vec!["host".to_owned(), "bot".to_owned()],
            dir: None,
        };
        let error = man(&arguments, command.clone()).unwrap_err();
        assert!(error.to_string().contains("none of check, list"), "{error}");
    }
}
