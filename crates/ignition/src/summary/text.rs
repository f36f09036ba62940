//! The summary as text, a section for each kind.

use std::fmt;

use super::{ConfigSummary, ShownFile, ShownSource, ShownUnit, ShownUser};

impl fmt::Display for ConfigSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "version {}", self.version)?;
        section(f, "merged configurations", self.merge.iter().map(source))?;
        section(f, "replaced by", self.replace.iter().map(source))?;
        let authorities = self.certificate_authorities.iter();
        section(f, "certificate authorities", authorities.map(source))?;
        section(f, "users", self.users.iter().map(user))?;
        section(f, "groups", self.groups.iter().cloned())?;
        section(f, "files", self.files.iter().map(file))?;
        section(f, "directories", self.directories.iter().map(file))?;
        let links = self.links.iter().map(|link| {
            let kind = if link.is_hard { ", hard" } else { "" };
            format!("{} -> {}{kind}", link.path, link.target)
        });
        section(f, "links", links)?;
        section(f, "units", self.units.iter().map(unit))?;
        section(f, "storage", self.storage.iter().cloned())?;
        let removed = self.kernel_arguments_removed.iter();
        let removed = removed.map(|argument| format!("{argument} (removed)"));
        let arguments = self.kernel_arguments.iter().cloned().chain(removed);
        section(f, "kernel arguments", arguments)
    }
}

/// A heading and its lines; nothing without lines. Control characters of the configuration do not reach a terminal.
fn section(
    f: &mut fmt::Formatter<'_>,
    heading: &str,
    lines: impl Iterator<Item = String>,
) -> fmt::Result {
    let mut is_first = true;
    for line in lines {
        if is_first {
            writeln!(f, "\n{heading}")?;
        }
        is_first = false;
        let line = line.replace(char::is_control, "\u{fffd}");
        writeln!(f, "  {line}")?;
    }
    Ok(())
}

fn source(source: &ShownSource) -> String {
    let mut parts = Vec::new();
    parts.extend(source.url.clone());
    match source.certificates {
        None => {}
        Some(1) => parts.push("1 certificate".to_owned()),
        Some(count) => parts.push(format!("{count} certificates")),
    }
    parts.extend(source.size.map(|size| format!("{size} bytes")));
    if source.is_compressed && source.problem.is_none() {
        parts.push("gzip".to_owned());
    }
    match &source.problem {
        Some(problem) => parts.push(format!("not usable: {problem}")),
        None if source.is_verified && source.url.is_some() => parts.push("with a hash".to_owned()),
        None if source.is_verified => parts.push("hash verified".to_owned()),
        None => {}
    }
    parts.join(", ")
}

fn user(user: &ShownUser) -> String {
    let keys = match user.ssh_keys {
        1 => "1 key".to_owned(),
        count => format!("{count} keys"),
    };
    let mut line = format!("{}: {keys}, password {}", user.name, user.password);
    if !user.groups.is_empty() {
        line = format!("{line}, groups {}", user.groups.join(" "));
    }
    line
}

fn file(file: &ShownFile) -> String {
    let mode = file.mode.as_deref().unwrap_or("-");
    let mut line = format!("{mode} {} {}", file.owner, file.path);
    if let Some(contents) = &file.contents {
        line = format!("{line}, {}", source(contents));
    }
    for appended in &file.append {
        line = format!("{line}, appended {}", source(appended));
    }
    line
}

fn unit(unit: &ShownUnit) -> String {
    let mut line = format!("{}: {}", unit.name, unit.state);
    if unit.size > 0 {
        line = format!("{line}, {} bytes", unit.size);
    }
    if !unit.dropins.is_empty() {
        line = format!("{line}, drop-ins {}", unit.dropins.join(" "));
    }
    line
}
