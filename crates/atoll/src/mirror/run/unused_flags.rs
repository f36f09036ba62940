//! What is said on the command line and has no effect in that run.

use service::Error;

use super::destination::Destination;
use super::flags::RunArgs;
use crate::terminal;

impl RunArgs {
    /// Refuses what has no effect, since somebody counts on it; of the peer's command lines it is only reason.
    pub(super) fn refuse_unused_flags(&self, target: &Destination) -> Result<(), Error> {
        let unused = self.unused_flags(target);
        if self.is_oc_mirror {
            for line in &unused {
                terminal::notice(line);
            }
            return Ok(());
        }
        if unused.is_empty() {
            return Ok(());
        }
        Err(Error::new("mirroring", unused.join("; ")))
    }

    fn unused_flags(&self, target: &Destination) -> Vec<String> {
        let Self {
            why,
            why_refused,
            ignore_history,
            skip_missing,
            remove_signatures,
            all_results,
            prune,
            skip_pruning,
            skip_metadata_check,
            sign,
            ..
        } = self;
        let archived = [
            ("--why", why.is_some()),
            ("--why-refused", *why_refused),
            ("--ignore-history", *ignore_history),
            ("--skip-missing", *skip_missing),
            ("--remove-signatures", *remove_signatures),
        ];
        let of_targets = [
            ("--all-results", *all_results),
            ("--prune", *prune),
            ("--skip-pruning", *skip_pruning),
            ("--skip-metadata-check", *skip_metadata_check),
        ];
        let is_folder = matches!(target, Destination::Folder(_));
        let mut unused = Vec::new();
        if self.from.is_some() {
            unused.extend(said(&archived, "with --from: archives have what they have"));
        }
        if is_folder {
            let why = "for archives: it is said when they are published";
            unused.extend(said(&of_targets, why));
        } else {
            let why = "without archives: they are signed when they are made, in file://FOLDER";
            unused.extend(said(&[("--sign", sign.is_some())], why));
        }
        unused
    }
}

/// Those of the flags that are said, with why they have no effect.
fn said(flags: &[(&str, bool)], why: &str) -> impl Iterator<Item = String> {
    let said = flags.iter().filter(|(_, is_said)| *is_said);
    said.map(move |(flag, _)| format!("{flag} has no effect {why}"))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct CommandLine {
        #[command(flatten)]
        run: RunArgs,
    }

    fn refused(line: &str) -> Option<String> {
        let arguments = format!("m {line}");
        let run = CommandLine::try_parse_from(arguments.split(' '))
            .unwrap()
            .run;
        let target = run.target.clone().unwrap();
        let of_peer = RunArgs {
            is_oc_mirror: true,
            ..run.clone()
        };
        assert!(of_peer.refuse_unused_flags(&target).is_ok());
        run.refuse_unused_flags(&target)
            .err()
            .map(|it| it.to_string())
    }

    #[test]
    fn what_has_no_effect_is_refused() {
        for (line, flags) in [
            (
                "--from a --why x --skip-missing --ignore-history --remove-signatures docker://h:1",
                vec![
                    "--why",
                    "--ignore-history",
                    "--skip-missing",
                    "--remove-signatures",
                ],
            ),
            (
                "-c a --all-results --skip-pruning --skip-metadata-check file://d",
                vec!["--all-results", "--skip-pruning", "--skip-metadata-check"],
            ),
            ("-c a --prune file://d", vec!["--prune"]),
            ("-c a --sign key docker://h:1", vec!["--sign"]),
        ] {
            let reason = refused(line).unwrap();
            for flag in flags {
                assert!(
                    reason.contains(&format!("{flag} has no effect")),
                    "{reason}"
                );
            }
        }
        for line in [
            "-c a --sign key --why x --ignore-history --skip-missing file://d",
            "-c a --prune --all-results --ignore-history docker://h:1",
            "--from a --skip-pruning --all-results docker://h:1",
        ] {
            assert_eq!(refused(line), None, "{line}");
        }
    }
}
