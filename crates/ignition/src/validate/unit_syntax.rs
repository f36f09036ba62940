//! The syntax of units, as Ignition reads them: laxer than systemd in places, and with a bound on the length of a
//! line that depends on how the text is buffered.
//! Source: coreos/go-systemd, unit/deserialize.go; Go, `bufio`.

/// Units: bytes. A longer line is refused where the reader sees it.
const LINE_MAX: usize = 2048;

/// Units: bytes. The reader's buffer.
const BUFFER: usize = 4096;

/// The facts about a unit that the checks need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct UnitOutline {
    /// Whether the section `[Install]` has an option.
    pub(super) has_install: bool,
}

/// Reads a unit.
///
/// Errors: the reason, with the line in the unit.
pub(super) fn read(text: &str) -> Result<UnitOutline, String> {
    let mut reader = UnitReader::new(text);
    let mut outline = UnitOutline { has_install: false };
    let mut step = UnitStep::Outside;
    while step != UnitStep::End {
        if reader.is_line_too_long() {
            return Err(reader.error(&format!("the line has more than {LINE_MAX} bytes")));
        }
        step = reader.advance(step, &mut outline)?;
    }
    Ok(outline)
}

/// The reader's place in the grammar.
#[derive(Clone, Copy, PartialEq, Eq)]
enum UnitStep {
    /// Before the first section.
    Outside,
    SectionName,
    /// After the bracket of a section's name.
    SectionEnd,
    InSection,
    OptionName,
    OptionValue,
    /// In a comment; the flag is set before the first section.
    Comment {
        is_outside: bool,
    },
    End,
}

struct UnitReader<'a> {
    text: &'a str,
    /// Bytes read.
    offset: usize,
    /// Bytes buffered, counted from the start.
    buffered: usize,
    /// The next line break, if it is known.
    line_end: usize,
    section: &'a str,
}

impl<'a> UnitReader<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            text,
            offset: 0,
            buffered: 0,
            line_end: 0,
            section: "",
        }
    }

    fn advance(&mut self, step: UnitStep, outline: &mut UnitOutline) -> Result<UnitStep, String> {
        match step {
            UnitStep::Outside => Ok(match self.letter() {
                None => UnitStep::End,
                Some('[') => UnitStep::SectionName,
                Some('#' | ';') => UnitStep::Comment { is_outside: true },
                Some(_) => UnitStep::Outside,
            }),
            UnitStep::SectionName => {
                let (name, is_closed) = self.until(b']');
                if !is_closed {
                    return Err(self.error("the name of a section has no closing bracket"));
                }
                self.section = name;
                Ok(UnitStep::SectionEnd)
            }
            UnitStep::SectionEnd => {
                if !self.line().trim().is_empty() {
                    return Err(self.error("text after the name of a section"));
                }
                Ok(UnitStep::InSection)
            }
            UnitStep::InSection => Ok(match self.peek() {
                None => UnitStep::End,
                Some('[') => self.take(UnitStep::SectionName),
                Some('#' | ';') => self.take(UnitStep::Comment { is_outside: false }),
                Some(letter) if letter.is_whitespace() => self.take(UnitStep::InSection),
                Some(_) => UnitStep::OptionName,
            }),
            UnitStep::OptionName if self.option_name() => Ok(UnitStep::OptionValue),
            UnitStep::OptionName => Err(self.error("an option has no equals sign")),
            UnitStep::OptionValue => {
                let line = self.line();
                if !line.trim().is_empty() && line.ends_with('\\') {
                    return Ok(UnitStep::OptionValue);
                }
                outline.has_install |= self.section == "Install";
                Ok(UnitStep::InSection)
            }
            UnitStep::Comment { is_outside } => {
                while self.comment_continues() {}
                Ok(if is_outside {
                    UnitStep::Outside
                } else {
                    UnitStep::InSection
                })
            }
            UnitStep::End => Ok(UnitStep::End),
        }
    }

    fn take(&mut self, next: UnitStep) -> UnitStep {
        self.letter();
        next
    }

    /// Reads a name up to its equals sign; false when the line or the text ends before.
    fn option_name(&mut self) -> bool {
        loop {
            match self.letter() {
                Some('=') => return true,
                None | Some('\n' | '\r') => return false,
                Some(_) => {}
            }
        }
    }

    fn comment_continues(&mut self) -> bool {
        let line = self.line();
        line.strip_suffix(' ').unwrap_or(line).ends_with('\\')
    }

    fn peek(&mut self) -> Option<char> {
        let letter = self.text[self.offset..].chars().next()?;
        if self.offset + letter.len_utf8() > self.buffered {
            self.fill();
        }
        Some(letter)
    }

    fn letter(&mut self) -> Option<char> {
        let letter = self.peek()?;
        self.offset += letter.len_utf8();
        Some(letter)
    }

    fn fill(&mut self) {
        self.buffered = self.text.len().min(self.offset + BUFFER);
    }

    /// The text up to `end`, and whether it was found; else the whole rest.
    fn until(&mut self, end: u8) -> (&'a str, bool) {
        let start = self.offset;
        let found = self.text.as_bytes()[start..]
            .iter()
            .position(|byte| *byte == end);
        let stop = found.map_or(self.text.len(), |at| start + at + 1);
        // The buffer is refilled in whole: when it is empty, or full of text without the end.
        while self.buffered < stop {
            if self.buffered - self.offset >= BUFFER {
                self.offset = self.buffered;
            }
            self.fill();
        }
        self.offset = stop;
        (
            &self.text[start..found.map_or(stop, |at| start + at)],
            found.is_some(),
        )
    }

    /// The rest of the line without its end.
    fn line(&mut self) -> &'a str {
        let (line, is_ended) = self.until(b'\n');
        if is_ended {
            return line;
        }
        line.strip_suffix('\r').unwrap_or(line)
    }

    /// Whether the buffer has a line that is too long; the rest of the text is not seen yet.
    fn is_line_too_long(&mut self) -> bool {
        if self.buffered - self.offset < LINE_MAX {
            return false;
        }
        if self.line_end < self.offset {
            let rest = self.text.as_bytes()[self.offset..].iter();
            let length = rest.take_while(|byte| !b"\r\n".contains(byte)).count();
            self.line_end = self.offset + length;
        }
        self.line_end - self.offset >= LINE_MAX
    }

    fn error(&self, reason: &str) -> String {
        // A line that is read up to its break is the one before.
        let line = self.text[..self.offset].lines().count().max(1);
        format!("not a unit: {reason}, in line {line} of the unit")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn units_are_read() {
        for (text, has_install) in [
            ("", false),
            ("\n# x\n", false),
            ("[Unit]\n", false),
            ("[Install]", false),
            ("[Unit]\nA=b\n[Install]\nWantedBy=x", true),
            ("[Install]\r\nWantedBy=x\r\n", true),
            ("garbage before [Unit]\nA=b", false),
            ("# comment \\\n[Install]\nx=\n", false),
            ("[A\nB]\nx=y", false),
            ("[Unit]\nA=b\\\n[Install]\\\nx=y\n", false),
            ("[Unit]\n ; c\n A = b\n", false),
        ] {
            assert_eq!(read(text), Ok(UnitOutline { has_install }), "{text:?}");
        }
    }

    #[test]
    fn mistakes_name_their_line() {
        for (text, line) in [
            ("[Unit", "line 1 "),
            ("[Unit]\nA=b\n[Install\n", "line 3 "),
            ("[Unit] x\n", "line 1 "),
            ("\n[Unit]\nA=b\nexec\n", "line 4 "),
            ("[Unit]\nexec", "line 2 "),
        ] {
            let reason = read(text).unwrap_err();
            assert!(reason.contains(line), "{text:?}: {reason}");
        }
    }

    #[test]
    fn long_lines_are_refused() {
        let unit = |bytes: usize| format!("[Service]\nExecStart={}\n", "x".repeat(bytes));
        // The line with its end.
        assert!(read(&unit(2037)).is_ok());
        assert!(read(&unit(2038)).is_err());
    }

    proptest! {
        #[test]
        fn reading_never_panics(text in "[\\[\\]=#; \\\\\r\na-bü]{0,60}") {
            read(&text).ok();
        }

        #[test]
        fn long_texts_end(text in proptest::collection::vec("[\\[\\]=# \\\\\n]|[a-z]{100,3000}", 0..6)) {
            read(&text.concat()).ok();
        }
    }
}
