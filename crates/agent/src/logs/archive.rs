//! The archive of a host's logs: the output of programs.

use std::fs::{self, File};
use std::io::{self, Seek as _};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use tokio::io::AsyncReadExt as _;
use tokio::process::Command;
use tokio::runtime::Handle;

use crate::command::run;
use crate::host_files::create_private;

/// Longest output of a program in an archive. Units: bytes.
const MAX_OUTPUT: u64 = 256 << 20;
/// For one program: file systems of a network can hang.
const TIMEOUT: Duration = Duration::from_mins(5);
/// The latest core dumps are kept. Units: dumps.
const MAX_DUMPS: usize = 4;

/// Scope of a collection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogScope {
    /// The whole journal, the kernel's messages and core dumps.
    pub(crate) is_full: bool,
    /// Addresses of the masters, on the host that starts the control plane.
    pub(crate) bootstrap: Option<Vec<IpAddr>>,
}

/// When a source is collected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SourceScope {
    Always,
    Full,
    Bootstrap,
}

/// A file of the archive with the program whose output it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LogSource {
    file: String,
    program: &'static str,
    arguments: Vec<String>,
}

const JOURNAL: (&str, &str) = ("journalctl", "--all --no-pager");
/// Name, scope, program and arguments. Programs that a host does not have are left out.
const SOURCES: [(&str, SourceScope, &str, &str); 10] = [
    ("mount.logs", SourceScope::Always, "findmnt", "--df"),
    (
        "disks.logs",
        SourceScope::Always,
        "lsblk",
        "--output NAME,MAJ:MIN,SIZE,TYPE,FSTYPE,MODEL,UUID,WWN,HCTL,STATE",
    ),
    ("addresses.logs", SourceScope::Always, "ip", "address"),
    (
        "agent.logs",
        SourceScope::Always,
        JOURNAL.0,
        "--unit=agent.service",
    ),
    (
        "installer.logs",
        SourceScope::Always,
        JOURNAL.0,
        "TAG=installer",
    ),
    (
        "kubelet.logs",
        SourceScope::Always,
        JOURNAL.0,
        "--unit=kubelet.service",
    ),
    (
        "bootkube.logs",
        SourceScope::Bootstrap,
        JOURNAL.0,
        "--unit=bootkube.service",
    ),
    ("dmesg.logs", SourceScope::Full, "dmesg", "--ctime"),
    (
        "coredumps.logs",
        SourceScope::Full,
        "coredumpctl",
        "list --no-pager",
    ),
    ("journal.logs", SourceScope::Full, JOURNAL.0, ""),
];

impl LogSource {
    pub(super) fn list(scope: &LogScope) -> Vec<Self> {
        let is_wanted = |source: SourceScope| match source {
            SourceScope::Always => true,
            SourceScope::Full => scope.is_full,
            SourceScope::Bootstrap => scope.bootstrap.is_some(),
        };
        SOURCES
            .iter()
            .filter(|(_, source, ..)| is_wanted(*source))
            .map(|(file, _, program, arguments)| {
                let journal = if *program == JOURNAL.0 { JOURNAL.1 } else { "" };
                let words = journal.split(' ').chain(arguments.split(' '));
                Self {
                    file: (*file).to_owned(),
                    program,
                    arguments: words
                        .filter(|word| !word.is_empty())
                        .map(str::to_owned)
                        .collect(),
                }
            })
            .collect()
    }

    /// Whether the archive has core dumps.
    fn has_dumps(sources: &[Self]) -> bool {
        sources.iter().any(|source| source.program == "coredumpctl")
    }
}

/// An archive in its folder. The output of programs is there, too, in files without a name.
#[derive(Debug)]
pub(super) struct LogArchive {
    path: PathBuf,
    /// Of the files in the archive.
    folder: String,
    /// Longest output of a program. Units: bytes.
    max_output: u64,
}

impl LogArchive {
    pub(super) fn new(path: PathBuf, folder: String) -> Self {
        Self {
            path,
            folder,
            max_output: MAX_OUTPUT,
        }
    }

    /// Writes the outputs of the sources, and a file.
    pub(super) async fn write(
        self,
        sources: &[LogSource],
        bundle: Option<&Path>,
    ) -> io::Result<()> {
        let mut sources = sources.to_vec();
        if LogSource::has_dumps(&sources) {
            sources.extend(dumps().await);
        }
        let bundle = bundle.map(Path::to_owned);
        let runtime = Handle::current();
        // Compression takes seconds of a processor.
        let written =
            tokio::task::spawn_blocking(move || self.compress(&runtime, &sources, bundle));
        written.await.map_err(io::Error::other)?
    }

    fn compress(
        &self,
        runtime: &Handle,
        sources: &[LogSource],
        bundle: Option<PathBuf>,
    ) -> io::Result<()> {
        let gzip = GzEncoder::new(create_private(&self.path)?, Compression::fast());
        let mut tar = tar::Builder::new(gzip);
        for source in sources {
            if let Some(mut output) = runtime.block_on(self.output(source))? {
                tar.append_file(format!("{}/{}", self.folder, source.file), &mut output)?;
            }
        }
        if let Some(path) = bundle {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            tar.append_path_with_name(&path, format!("{}/{name}", self.folder))?;
        }
        tar.into_inner()?.finish()?.sync_all()
    }

    /// The output of a program up to its limits. None without the program. The length precedes the content in an archive:
    /// the output goes to a file first.
    async fn output(&self, source: &LogSource) -> io::Result<Option<File>> {
        let child = Command::new(source.program)
            .args(&source.arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn();
        let Ok(mut child) = child else {
            return Ok(None);
        };
        let mut file = self.unnamed()?;
        let mut writer = tokio::fs::File::from_std(file.try_clone()?);
        if let Some(stdout) = child.stdout.take() {
            let mut stdout = stdout.take(self.max_output);
            let copied = tokio::io::copy(&mut stdout, &mut writer);
            if let Ok(copied) = tokio::time::timeout(TIMEOUT, copied).await {
                copied?;
            } else {
                tracing::warn!(program = source.program, "killed: it took too long");
            }
        }
        tokio::io::AsyncWriteExt::flush(&mut writer).await?;
        let _ = child.kill().await;
        file.rewind()?;
        Ok(Some(file))
    }

    /// A file that only this process has. Overlays of old kernels make none without a name.
    fn unnamed(&self) -> io::Result<File> {
        let path = self.path.with_added_extension("output");
        let file = create_private(&path)?;
        fs::remove_file(&path)?;
        Ok(file)
    }
}

/// The latest core dumps. Source: coredumpctl(1), the fifth and tenth column of its list are process and program.
async fn dumps() -> Vec<LogSource> {
    let list = ["list", "--no-legend", "--no-pager"];
    let listed = run("coredumpctl", &list, TIMEOUT).await;
    parse_dumps(&listed.map(|output| output.stdout).unwrap_or_default())
}

fn parse_dumps(list: &str) -> Vec<LogSource> {
    let dump = |line: &str| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let process: u32 = columns.get(4)?.parse().ok()?;
        let program = Path::new(columns.get(9)?).file_name()?.to_str()?;
        Some(LogSource {
            file: format!("coredump_exe_{program}_pid_{process}"),
            program: "coredumpctl",
            arguments: vec!["dump".to_owned(), process.to_string()],
        })
    };
    list.lines()
        .rev()
        .filter_map(dump)
        .take(MAX_DUMPS)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(program: &'static str, arguments: &[&str]) -> LogSource {
        LogSource {
            file: "x".to_owned(),
            program,
            arguments: arguments.iter().map(|word| (*word).to_owned()).collect(),
        }
    }

    #[tokio::test]
    async fn output_is_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let archive = LogArchive {
            path: folder.path().join("logs.tar.gz"),
            folder: "logs".to_owned(),
            max_output: 100_000,
        };
        let lengths = async |source: LogSource| {
            let output = archive.output(&source).await.unwrap();
            output.map(|file| file.metadata().unwrap().len())
        };
        assert_eq!(
            lengths(source("sh", &["-c", "echo abc; exit 1"])).await,
            Some(4)
        );
        assert_eq!(lengths(source("no-such-program", &[])).await, None);
        let endless = source("cat", &["/dev/zero"]);
        assert_eq!(lengths(endless).await, Some(100_000));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn core_dumps_are_listed() {
        let line = |process: &str, program: &str| {
            format!("Tue 2026-11-24 10:11:12 UTC {process} 0 0 SIGSEGV present {program} 1.2M\n")
        };
        let list = [
            line("12", "/usr/bin/a"),
            "short\n".to_owned(),
            line("x", "/b"),
        ]
        .concat();
        let found = parse_dumps(&list);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].file, "coredump_exe_a_pid_12");
        assert_eq!(found[0].arguments, ["dump", "12"]);
        let many: String = (0..20)
            .map(|number| line(&number.to_string(), "/a"))
            .collect();
        let found = parse_dumps(&many);
        assert_eq!(
            (found.len(), found[0].arguments[1].as_str()),
            (MAX_DUMPS, "19")
        );
    }
}
