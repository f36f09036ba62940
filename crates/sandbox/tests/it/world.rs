//! The machine and service that a program tries to escape to.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use libtest_mimic::{Failed, Trial};
use sandbox::{Launcher, Mechanism, ProgramExit, ProgramOutcome, SandboxLimits, SandboxSpec};

use crate::evil::{Attempt, is_running};

const LIMITS: SandboxLimits = SandboxLimits {
    memory_bytes: 256 << 20,
    processes: 64,
    disk_bytes: 16 << 20,
    time: Duration::from_mins(2),
};
/// Deadline of conditions.
const GIVE_UP: Duration = Duration::from_mins(1);

struct World {
    folder: tempfile::TempDir,
    tcp: TcpListener,
    _unix: UnixListener,
    _abstract: UnixListener,
    marker: String,
}

impl World {
    fn new(name: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for part in ["outside", "work", "scratch"] {
            fs::create_dir(folder.path().join(part)).unwrap();
        }
        fs::write(folder.path().join("outside/secret"), "not-to-be-seen").unwrap();
        fs::write(folder.path().join("work/input"), "input").unwrap();
        let marker = format!("atoll-sandbox-{}-{name}", std::process::id());
        let address = SocketAddr::from_abstract_name(&marker).unwrap();
        Self {
            tcp: TcpListener::bind("127.0.0.1:0").unwrap(),
            _unix: UnixListener::bind(folder.path().join("outside/socket")).unwrap(),
            _abstract: UnixListener::bind_addr(&address).unwrap(),
            folder,
            marker,
        }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn spec(&self, name: &str) -> SandboxSpec {
        let own = std::env::current_exe().unwrap();
        let text = |path: PathBuf| path.display().to_string();
        let environment = [
            ("SELF", text(own.clone())),
            ("SERVICE", std::process::id().to_string()),
            ("OUTSIDE", text(self.at("outside"))),
            ("SECRET", text(self.at("outside/secret"))),
            ("UNIX", text(self.at("outside/socket"))),
            ("TCP", self.tcp.local_addr().unwrap().to_string()),
            ("ABSTRACT", self.marker.clone()),
            ("MARKER", self.marker.clone()),
            ("DISK", LIMITS.disk_bytes.to_string()),
            ("PROCESSES", LIMITS.processes.to_string()),
        ];
        // The test binary is dynamically linked.
        let libraries = ["/lib", "/lib64", "/usr/lib", "/usr/lib64"].map(PathBuf::from);
        let readable = libraries.into_iter().filter(|path| path.exists());
        SandboxSpec {
            program: Some(own.clone()),
            arguments: vec!["evil".to_owned(), name.to_owned()],
            environment: environment
                .map(|(name, value)| (name.to_owned(), value))
                .into(),
            work: self.at("work"),
            scratch: self.at("scratch"),
            readable: readable.chain([own]).collect(),
            limits: LIMITS,
            strict: false,
        }
    }

    fn names(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.at(folder)).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

fn run(spec: &SandboxSpec) -> (ProgramExit, String) {
    let (mut command, control) = Launcher::own().command(spec).unwrap();
    command.env("PASSWORD", "SECRET=not-to-be-seen");
    let output = command.stderr(Stdio::inherit()).output().unwrap();
    (control.ended(), String::from_utf8(output.stdout).unwrap())
}

/// Runs an attempt and checks that it fails.
pub(crate) fn fails(attempt: &Attempt) -> Result<(), String> {
    let world = World::new(attempt.name);
    let outside = snapshot(&world.at("outside"));
    let (ended, output) = run(&world.spec(attempt.name));
    let active: Vec<&str> = ended.report.active.iter().map(|one| one.name()).collect();
    println!(
        "{}: {} {:?}\n  active: {}\n  missing: {:?}",
        attempt.name,
        ended.outcome,
        output.trim(),
        active.join(", "),
        ended.report.missing
    );
    let is_done = output.contains("done") && ended.outcome == ProgramOutcome::Exited(0);
    let is_bounded = attempt.is_limited && matches!(ended.outcome, ProgramOutcome::Exceeded(_));
    let checks = [
        ("it ran", is_done || is_bounded),
        (
            "it did not print that it escaped",
            !output.contains("escaped"),
        ),
        (
            "no process survives",
            !is_running(&format!("MARKER={}", world.marker)),
        ),
        (
            "files outside are unchanged",
            snapshot(&world.at("outside")) == outside,
        ),
        (
            "no link is left",
            world
                .names("work")
                .iter()
                .all(|name| is_plain(&world.at("work").join(name))),
        ),
        (
            "no file is beside its folder",
            world.names(".") == ["outside", "scratch", "work"],
        ),
        (
            "no file is in the machine's temporary folder",
            !Path::new("/tmp/atoll-escaped").exists(),
        ),
    ];
    match checks.into_iter().find(|(_, holds)| !holds) {
        None => Ok(()),
        Some((claim, _)) => Err(format!("not true: {claim} ({:?}, {output})", ended.outcome)),
    }
}

fn is_plain(path: &Path) -> bool {
    let metadata = fs::symlink_metadata(path).unwrap();
    metadata.is_file() || metadata.is_dir()
}

fn snapshot(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = fs::read_dir(folder).unwrap().flatten();
    entries
        .map(|entry| (entry.path(), fs::read(entry.path()).unwrap_or_default()))
        .collect()
}

/// Tests that are no break-out attempts.
pub(crate) fn trials() -> Vec<Trial> {
    let trial = |name: &str, run: fn()| {
        Trial::test(name, move || {
            std::panic::catch_unwind(run).map_err(|_| Failed::without_message())
        })
    };
    vec![
        trial("written_files_are_kept", kept),
        trial("the_program_dies_with_the_service", dies),
        trial("the_program_is_killed_at_its_deadline", deadline),
        trial("a_failed_start_is_reported", unstartable),
        trial("the_probe_reports_mechanisms", probe),
        trial("a_go_program_runs", go),
    ]
}

fn kept() {
    let world = World::new("kept");
    let (ended, output) = run(&world.spec("copy"));
    assert_eq!(ended.outcome, ProgramOutcome::Exited(0), "{output}");
    assert_eq!(fs::read(world.at("work/kept")).unwrap(), b"input");
    assert!(!output.contains("not-to-be-seen"), "{output}");
}

fn dies() {
    let world = World::new("dies");
    let (mut command, control) = Launcher::own().command(&world.spec("sleep")).unwrap();
    let mut guard = command.spawn().unwrap();
    let marker = format!("MARKER={}", world.marker);
    until(|| is_running(&marker));
    drop(control);
    guard.wait().unwrap();
    assert!(!is_running(&marker));
}

fn until(mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < GIVE_UP);
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn deadline() {
    let world = World::new("deadline");
    let mut spec = world.spec("sleep");
    spec.limits.time = Duration::from_millis(100);
    let (ended, _) = run(&spec);
    assert!(
        matches!(ended.outcome, ProgramOutcome::Exceeded(_)),
        "{ended:?}"
    );
}

fn unstartable() {
    let world = World::new("unstartable");
    let mut spec = world.spec("copy");
    spec.program = Some("/nowhere/program".into());
    let (ended, _) = run(&spec);
    assert!(
        matches!(ended.outcome, ProgramOutcome::NotStarted(_)),
        "{ended:?}"
    );
}

fn probe() {
    let folder = tempfile::tempdir().unwrap();
    let report = Launcher::own().probe(folder.path()).unwrap();
    assert!(report.has(Mechanism::NoNewPrivileges), "{report:?}");
    assert!(fs::read_dir(folder.path()).unwrap().next().is_none());
}

/// Like the real installer: threads, large address space, files in its home.
fn go() {
    let world = World::new("go");
    let source = world.at("main.go");
    fs::write(&source, GO).unwrap();
    let program = world.at("outside/program");
    let built = Command::new("go")
        .args(["build", "-o"])
        .args([&program, &source])
        .env("CGO_ENABLED", "0")
        .stdout(Stdio::null())
        .status();
    if !built.is_ok_and(|status| status.success()) {
        println!("skipped: no Go compiler");
        return;
    }
    let mut spec = world.spec("copy");
    spec.program = Some(program.clone());
    spec.readable = vec![program];
    let home = world.at("work").display().to_string();
    spec.environment.push(("HOME".to_owned(), home));
    let (ended, output) = run(&spec);
    assert_eq!(ended.outcome, ProgramOutcome::Exited(0), "{output}");
    let mut text = String::new();
    let mut file = fs::File::open(world.at("work/result")).unwrap();
    file.read_to_string(&mut text).unwrap();
    assert_eq!(text, "4950");
}

const GO: &str = r#"package main

import ("fmt"; "os"; "path/filepath"; "sync")

func main() {
	var group sync.WaitGroup
	var lock sync.Mutex
	sum := 0
	for i := 0; i < 100; i++ {
		group.Add(1)
		go func() {
			defer group.Done()
			block := make([]byte, 1<<20)
			for j := range block { block[j] = byte(i) }
			lock.Lock()
			defer lock.Unlock()
			sum += int(block[len(block)-1])
		}()
	}
	group.Wait()
	if _, err := os.Executable(); err != nil { panic(err) }
	home, err := os.UserHomeDir()
	if err != nil { panic(err) }
	file, err := os.CreateTemp("", "scratch")
	if err != nil { file, err = os.CreateTemp(home, "scratch") }
	if err != nil { panic(err) }
	file.Close()
	os.Remove(file.Name())
	err = os.WriteFile(filepath.Join(home, "result"), []byte(fmt.Sprint(sum)), 0o600)
	if err != nil { panic(err) }
}
"#;
