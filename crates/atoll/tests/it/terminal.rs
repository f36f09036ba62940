//! Password prompts at a terminal.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Termios, tcgetattr};

/// Types `lines`, each after its prompt; exit status, terminal output and final terminal modes.
fn typed(file: &Path, lines: &[&str]) -> (ExitStatus, String, Termios) {
    let pty = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&pty).unwrap();
    unlockpt(&pty).unwrap();
    let name = ptsname(&pty, Vec::new()).unwrap().into_string().unwrap();
    let terminal = File::options().read(true).write(true).open(name).unwrap();
    let mut keyboard = File::from(pty);
    let mut child = Command::new(env!("CARGO_BIN_EXE_atoll"))
        .args(["registry", "htpasswd"])
        .arg(file)
        .arg("me")
        .stdin(terminal.try_clone().unwrap())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut prompts = child.stderr.take().unwrap();
    for line in lines {
        let mut byte = [0];
        while byte != *b":" {
            prompts.read_exact(&mut byte).unwrap();
        }
        keyboard.write_all(line.as_bytes()).unwrap();
    }
    let status = child.wait().unwrap();
    let left = tcgetattr(&terminal).unwrap();
    drop(terminal);
    // Reading a closed terminal returns an error.
    let mut shown = Vec::new();
    keyboard.read_to_end(&mut shown).ok();
    (status, String::from_utf8(shown).unwrap(), left)
}

#[test]
fn passwords_are_prompted_twice_without_echo() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("users");
    let (status, shown, left) = typed(&file, &["wronk\x7fg pass\n", "wrong pass\n"]);
    assert!(status.success(), "{shown}");
    assert_eq!(shown.trim(), "");
    assert!(
        left.local_modes
            .contains(LocalModes::ECHO | LocalModes::ISIG)
    );
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.starts_with("me:$2"), "{text}");
}

#[test]
fn mismatch_and_interrupt_change_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("users");
    for lines in [
        &["one\n", "two\n"][..],
        &["one\x03"],
        &["\x04"],
        &["one\n", "\x03"],
    ] {
        let (status, shown, left) = typed(&file, lines);
        assert!(
            !status.success() && !shown.contains("one"),
            "{lines:?}: {shown}"
        );
        assert!(left.local_modes.contains(LocalModes::ECHO), "{lines:?}");
        assert!(!file.exists(), "{lines:?}");
    }
}
