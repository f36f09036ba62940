//! Password input: a pipe, or two prompts without echo.

use std::io::{self, BufRead as _, IsTerminal as _, Read as _, StdinLock, Write as _};

use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr,
};
use service::{Error, ResultExt as _};

/// Units: bytes. Longer than any password.
const LIMIT: u64 = 4096;
/// Ctrl-C.
const INTERRUPT: u8 = 3;

/// Reads the password of `user` from standard input.
///
/// Errors: empty, several lines, not UTF-8; at a terminal also two that differ.
pub(super) fn read(user: &str) -> Result<String, Error> {
    let input = io::stdin().lock();
    let read = if input.is_terminal() {
        typed(input, user)
    } else {
        piped(input)
    };
    read.doing("reading the password")
}

fn piped(input: StdinLock<'static>) -> io::Result<String> {
    let mut text = String::new();
    input.take(LIMIT).read_to_string(&mut text)?;
    let line = without_end(&text);
    if line.contains('\n') {
        return Err(io::Error::other("expected one line on standard input"));
    }
    Ok(line.to_owned())
}

fn typed(input: StdinLock<'static>, user: &str) -> io::Result<String> {
    let mut terminal = NoEcho::new(input)?;
    let first = terminal.ask(&format!("Password of {user}: "))?;
    if terminal.ask("Retype password: ")? != first {
        return Err(io::Error::other("the passwords do not match"));
    }
    Ok(first)
}

fn without_end(text: &str) -> &str {
    let text = text.strip_suffix('\n').unwrap_or(text);
    text.strip_suffix('\r').unwrap_or(text)
}

/// A terminal with echo disabled until this is dropped.
struct NoEcho {
    input: StdinLock<'static>,
    before: Termios,
}

impl NoEcho {
    fn new(input: StdinLock<'static>) -> io::Result<Self> {
        let before = tcgetattr(&input)?;
        let mut unseen = before.clone();
        unseen.local_modes -= LocalModes::ECHO | LocalModes::ISIG;
        unseen.local_modes |= LocalModes::ECHONL;
        // Ctrl-C ends the line: ending the program would leave the terminal without echo.
        unseen.special_codes[SpecialCodeIndex::VEOL] = INTERRUPT;
        tcsetattr(&input, OptionalActions::Flush, &unseen)?;
        Ok(Self { input, before })
    }

    fn ask(&mut self, prompt: &str) -> io::Result<String> {
        let mut out = io::stderr().lock();
        out.write_all(prompt.as_bytes())?;
        out.flush()?;
        // A terminal hands over one line at a time.
        let line = self.input.fill_buf()?.to_vec();
        self.input.consume(line.len());
        if line.is_empty() || line.contains(&INTERRUPT) {
            out.write_all(b"\n")?;
            return Err(io::ErrorKind::Interrupted.into());
        }
        let text = String::from_utf8(line).map_err(io::Error::other)?;
        Ok(without_end(&text).to_owned())
    }
}

impl Drop for NoEcho {
    fn drop(&mut self) {
        tcsetattr(&self.input, OptionalActions::Now, &self.before).ok();
    }
}
