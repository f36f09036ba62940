//! Flags without effect in a run.

use model::api_group_map::ApiGroupMap;
use service::Error;

use super::destination::Destination;
use super::flags::RunArgs;
use crate::terminal;

impl RunArgs {
    /// Refuses flags without effect; on oc-mirror's command lines they are only reported.
    pub(super) fn refuse_unused_flags(&self, target: &Destination) -> Result<(), Error> {
        if self.secure_policy && self.from.is_none() {
            let reason = "--secure-policy is not supported: signature policies of this machine are not read; verify the signatures of images with cosign or skopeo, and leave the flag out";
            return Err(Error::new("mirroring", reason));
        }
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
            since,
            skip_missing,
            remove_signatures,
            all_results,
            api_group_map,
            prune,
            skip_pruning,
            skip_metadata_check,
            sign,
            secure_policy,
            ..
        } = self;
        let archived = [
            ("--why", why.is_some()),
            ("--why-refused", *why_refused),
            ("--ignore-history", *ignore_history),
            ("--since", since.is_some()),
            ("--skip-missing", *skip_missing),
            ("--remove-signatures", *remove_signatures),
            ("--secure-policy", *secure_policy),
        ];
        let of_targets = [
            ("--all-results", *all_results),
            ("--api-group-map", *api_group_map != ApiGroupMap::default()),
            ("--prune", *prune),
            ("--skip-pruning", *skip_pruning),
            ("--skip-metadata-check", *skip_metadata_check),
        ];
        let is_folder = matches!(target, Destination::ArchiveSet(_));
        let mut unused = Vec::new();
        if self.from.is_some() {
            unused.extend(set_flags(
                &archived,
                "with --from: the content of archives is fixed",
            ));
        }
        if is_folder {
            let why = "for archives: set it when they are published";
            unused.extend(set_flags(&of_targets, why));
        } else {
            let why = "without archives: file://FOLDER signs them when it writes them";
            unused.extend(set_flags(&[("--sign", sign.is_some())], why));
        }
        unused
    }
}

/// Messages for the flags that are set.
fn set_flags(flags: &[(&str, bool)], why: &str) -> impl Iterator<Item = String> {
    let set = flags.iter().filter(|(_, is_set)| *is_set);
    set.map(move |(flag, _)| format!("{flag} has no effect {why}"))
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
    fn flags_without_effect_are_refused() {
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
            (
                r#"-c a --api-group-map {"a":"b"} file://d"#,
                vec!["--api-group-map"],
            ),
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
