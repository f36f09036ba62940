//! Texts of the command line that concern all verbs: groups in the help, exit codes, defaults that differ.

use clap::Command;

/// A group of verbs in the help.
struct VerbGroup {
    title: &'static str,
    verbs: &'static [&'static str],
}

const fn group(title: &'static str, verbs: &'static [&'static str]) -> VerbGroup {
    VerbGroup { title, verbs }
}

/// All verbs, in the order of their use.
static GROUPS: &[VerbGroup] = &[
    group(
        "Carry content into a disconnected site",
        &["mirror", "catalog", "image", "versions", "bundle"],
    ),
    group(
        "Install and run Atoll",
        &[
            "install", "pod", "up", "status", "serve", "backup", "restore",
        ],
    ),
    group(
        "Certificates, users and keys",
        &["certs", "registry", "token", "secrets"],
    ),
    group(
        "Hosts and nodes of clusters",
        &["host", "node", "ignition", "butane"],
    ),
    group("Find mistakes", &["doctor", "rehearse"]),
    group("Help in the shell", &["completions", "man", "help"]),
];

/// Exit codes of every verb.
const EXIT_CODES: &str = "\
Exit codes:
  0  success
  1  failure, or a check found errors; the last line of standard error has the cause
  2  wrong arguments, or unusable settings of a service: nothing was done";
/// Verbs whose exit codes mean more.
static OTHER_EXIT_CODES: &[(&str, &str)] = &[(
    "rehearse",
    "\
Exit codes:
  0  the site was installed, and no mistake was found
  1  mistakes were found
  2  wrong arguments, or nothing could be rehearsed",
)];

/// The command line with these texts.
pub(crate) fn with_texts(command: Command) -> Command {
    let command = command.mut_subcommand("pod", |pod| {
        pod.mut_subcommand("upgrade", |verb| {
            // As the other verbs of a pod that is there.
            verb.mut_arg("dir", |dir| {
                dir.default_value(".").help("Folder of the pod")
            })
        })
    });
    let listed = listed(&command);
    let template = format!(
        "{{about}}\n\n{{usage-heading}} {{usage}}\n\n{listed}Options:\n{{options}}{{after-help}}"
    );
    let command = command.help_template(template).after_help(format!(
        "{EXIT_CODES}\n\n`atoll help VERB` explains a verb, `atoll doctor` checks this machine."
    ));
    command.mut_subcommands(with_exit_codes)
}

fn with_exit_codes(command: Command) -> Command {
    let name = command.get_name();
    let other = OTHER_EXIT_CODES.iter().find(|(verb, _)| *verb == name);
    let text = other.map_or(EXIT_CODES, |(_, text)| text);
    command.after_help(text).mut_subcommands(with_exit_codes)
}

/// The verbs by group.
fn listed(command: &Command) -> String {
    let width = GROUPS
        .iter()
        .flat_map(|group| group.verbs)
        .map(|it| it.len());
    let width = width.max().unwrap_or_default();
    let mut text = String::new();
    for group in GROUPS {
        text.extend([group.title, ":\n"]);
        for name in group.verbs {
            let about = command.find_subcommand(name).and_then(Command::get_about);
            let about = about.map_or_else(
                || "Print this help, or that of a verb".to_owned(),
                ToString::to_string,
            );
            text.extend([format!("  {name:width$}  {about}\n")]);
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Every verb is in one group.
    pub(crate) fn check_groups(command: &Command) {
        let mut listed = BTreeSet::new();
        for name in GROUPS.iter().flat_map(|group| group.verbs) {
            assert!(listed.insert(*name), "{name} is listed twice");
        }
        let known = command.get_subcommands().map(Command::get_name);
        let mut known: BTreeSet<_> = known.collect();
        known.insert("help");
        assert_eq!(listed, known);
    }
}
