//! What is said on the command line and has no effect in that run.

use service::Error;

use super::destination::Destination;
use super::flags::RunArgs;
use crate::terminal;

impl RunArgs {
    /// Refuses what has no effect, since somebody counts on it; of the peer's command lines it is only told.
    pub(super) fn refuse_idle(&self, target: &Destination) -> Result<(), Error> {
        let idle = self.idle(target);
        if self.is_of_peer {
            for line in &idle {
                terminal::problem(line);
            }
            return Ok(());
        }
        if idle.is_empty() {
            return Ok(());
        }
        Err(Error::new("mirroring", idle.join("; ")))
    }

    fn idle(&self, target: &Destination) -> Vec<String> {
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
        let mut idle = Vec::new();
        if self.from.is_some() {
            idle.extend(said(&archived, "with --from: archives have what they have"));
        }
        if is_folder {
            let why = "for archives: it is said when they are published";
            idle.extend(said(&of_targets, why));
        } else {
            let why = "without archives: they are signed when they are made, in file://FOLDER";
            idle.extend(said(&[("--sign", sign.is_some())], why));
        }
        idle
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
        carry: RunArgs,
    }

    fn refused(line: &str) -> Option<String> {
        let arguments = format!("m {line}");
        let carry = CommandLine::try_parse_from(arguments.split(' '))
            .unwrap()
            .carry;
        let target = carry.target.clone().unwrap();
        let of_peer = RunArgs {
            is_of_peer: true,
            ..carry.clone()
        };
        assert!(of_peer.refuse_idle(&target).is_ok());
        carry.refuse_idle(&target).err().map(|it| it.to_string())
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
            let told = refused(line).unwrap();
            for flag in flags {
                assert!(told.contains(&format!("{flag} has no effect")), "{told}");
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
