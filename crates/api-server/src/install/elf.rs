//! What a program says about itself: the machine it is for, and the loader it wants.

use std::io::{self, Read, Seek, SeekFrom};

/// Where the parts of a header lie that differ by word size. Source: System V ABI, chapters 4 and 5.
struct Layout {
    header_bytes: usize,
    table_offset: usize,
    entry_bytes_offset: usize,
    entry_count_offset: usize,
    entry_bytes: u16,
    segment_offset: usize,
    segment_bytes: usize,
    word_bytes: usize,
}

const LAYOUT_32: Layout = Layout {
    header_bytes: 52,
    table_offset: 28,
    entry_bytes_offset: 42,
    entry_count_offset: 44,
    entry_bytes: 32,
    segment_offset: 4,
    segment_bytes: 16,
    word_bytes: 4,
};
const LAYOUT_64: Layout = Layout {
    header_bytes: 64,
    table_offset: 32,
    entry_bytes_offset: 54,
    entry_count_offset: 56,
    entry_bytes: 56,
    segment_offset: 8,
    segment_bytes: 32,
    word_bytes: 8,
};

const MAGIC: &[u8] = b"\x7fELF";
/// Before the parts that differ by word size. Units: bytes.
const IDENT_BYTES: usize = 16;
const MACHINE_OFFSET: usize = 18;
/// Type of the entry that names the loader.
const INTERPRETER: u64 = 3;
/// Units: bytes. Largest table and longest name that the kernel takes.
const TABLE_LIMIT_BYTES: usize = 65_536;
const NAME_LIMIT_BYTES: u64 = 4096;

/// A program's header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Program {
    machine: Machine,
    /// Path of the loader that a dynamically linked program is run by; none for a static one.
    pub(super) interpreter: Option<String>,
}

/// What a program runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Machine {
    code: u16,
    is_64: bool,
    is_little: bool,
}

impl Program {
    /// Reads the header of `file`.
    ///
    /// Errors: why it is no program that could be run, in words; or those of `file`.
    pub(super) fn read(file: &mut (impl Read + Seek)) -> io::Result<Result<Self, &'static str>> {
        match read(file) {
            Ok(program) => Ok(Ok(program)),
            Err(Problem::Header(why)) => Ok(Err(why)),
            Err(Problem::File(error)) if error.kind() == io::ErrorKind::UnexpectedEof => {
                Ok(Err("it is cut short"))
            }
            Err(Problem::File(error)) => Err(error),
        }
    }

    /// Whether it is for this machine; else the two architectures' names: the program's, this machine's.
    pub(super) fn check_machine(&self) -> Result<(), (String, &'static str)> {
        if Some(self.machine) == Machine::here() {
            return Ok(());
        }
        Err((self.machine.name(), std::env::consts::ARCH))
    }
}

/// Codes of machines. Source: System V ABI, e_machine.
const MACHINES: &[(u16, &str)] = &[
    (3, "x86"),
    (20, "powerpc"),
    (21, "powerpc64"),
    (22, "s390x"),
    (40, "arm"),
    (62, "x86_64"),
    (183, "aarch64"),
    (243, "riscv64"),
    (258, "loongarch64"),
];

impl Machine {
    /// This machine; nothing on one that has no name here.
    fn here() -> Option<Self> {
        let known = MACHINES
            .iter()
            .find(|(_, name)| *name == std::env::consts::ARCH);
        known.map(|(code, _)| Self {
            code: *code,
            is_64: cfg!(target_pointer_width = "64"),
            is_little: cfg!(target_endian = "little"),
        })
    }

    fn name(self) -> String {
        let known = MACHINES.iter().find(|(code, _)| *code == self.code);
        let name = known.map_or_else(
            || format!("machine {}", self.code),
            |(_, name)| (*name).to_owned(),
        );
        match Self::here() {
            // The same name, so what differs has to be said.
            Some(here) if here.code == self.code => format!(
                "{name} with {} bits, {} endian",
                if self.is_64 { 64 } else { 32 },
                if self.is_little { "little" } else { "big" },
            ),
            _ => name,
        }
    }
}

enum Problem {
    Header(&'static str),
    File(io::Error),
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Self {
        Self::File(error)
    }
}

fn read(file: &mut (impl Read + Seek)) -> Result<Program, Problem> {
    let mut ident = [0; IDENT_BYTES];
    file.seek(SeekFrom::Start(0))?;
    file.read_exact(&mut ident)?;
    if !ident.starts_with(MAGIC) {
        return Err(Problem::Header("it is no program for Linux"));
    }
    let (layout, is_64) = match ident[4] {
        1 => (&LAYOUT_32, false),
        2 => (&LAYOUT_64, true),
        _ => return Err(Problem::Header("its word size is unknown")),
    };
    let is_little = match ident[5] {
        1 => true,
        2 => false,
        _ => return Err(Problem::Header("its byte order is unknown")),
    };
    let mut header = ident.to_vec();
    header.resize(layout.header_bytes, 0);
    file.read_exact(&mut header[IDENT_BYTES..])?;
    let fields = Fields {
        bytes: &header,
        is_little,
    };
    let machine = Machine {
        code: fields.short(MACHINE_OFFSET),
        is_64,
        is_little,
    };
    let interpreter = interpreter(file, layout, &fields)?;
    Ok(Program {
        machine,
        interpreter,
    })
}

fn interpreter(
    file: &mut (impl Read + Seek),
    layout: &Layout,
    header: &Fields<'_>,
) -> Result<Option<String>, Problem> {
    let count = usize::from(header.short(layout.entry_count_offset));
    if count == 0 {
        return Err(Problem::Header("it has no segments"));
    }
    if header.short(layout.entry_bytes_offset) != layout.entry_bytes {
        return Err(Problem::Header("its segments have an unknown size"));
    }
    let entry_bytes = usize::from(layout.entry_bytes);
    if count * entry_bytes > TABLE_LIMIT_BYTES {
        return Err(Problem::Header("it has too many segments"));
    }
    let mut table = vec![0; count * entry_bytes];
    go(file, header.word(layout.table_offset, layout.word_bytes))?;
    file.read_exact(&mut table)?;
    let entries = table.chunks_exact(entry_bytes).map(|bytes| Fields {
        bytes,
        is_little: header.is_little,
    });
    for entry in entries {
        if entry.word(0, 4) == INTERPRETER {
            let offset = entry.word(layout.segment_offset, layout.word_bytes);
            let length = entry.word(layout.segment_bytes, layout.word_bytes);
            return name(file, offset, length).map(Some);
        }
    }
    Ok(None)
}

fn go(file: &mut impl Seek, offset: u64) -> Result<(), Problem> {
    if i64::try_from(offset).is_err() {
        return Err(Problem::Header("it is cut short"));
    }
    file.seek(SeekFrom::Start(offset)).map(drop)?;
    Ok(())
}

/// The loader's path: absolute, plain, closed by a zero byte.
fn name(file: &mut (impl Read + Seek), offset: u64, length: u64) -> Result<String, Problem> {
    let wrong = Problem::Header("the name of its loader is no path");
    if !(2..=NAME_LIMIT_BYTES).contains(&length) {
        return Err(wrong);
    }
    go(file, offset)?;
    let mut name = Vec::new();
    file.take(length).read_to_end(&mut name)?;
    if name.len() as u64 != length {
        return Err(Problem::Header("it is cut short"));
    }
    let name = name.strip_suffix(&[0]).map(<[u8]>::to_vec);
    match name.map(String::from_utf8) {
        Some(Ok(name)) if is_plain(&name) => Ok(name),
        _ => Err(wrong),
    }
}

/// Absolute, and no step of it leads up, to nothing, or to where nobody would look.
fn is_plain(path: &str) -> bool {
    path.strip_prefix('/').is_some_and(|path| {
        path.split('/')
            .all(|step| !matches!(step, "" | "." | "..") && !step.chars().any(char::is_control))
    })
}

/// Numbers in the byte order of the program.
struct Fields<'a> {
    bytes: &'a [u8],
    is_little: bool,
}

impl Fields<'_> {
    fn word(&self, offset: usize, length: usize) -> u64 {
        let bytes = &self.bytes[offset..offset + length];
        let add = |sum: u64, byte: &u8| sum << 8 | u64::from(*byte);
        if self.is_little {
            bytes.iter().rev().fold(0, add)
        } else {
            bytes.iter().fold(0, add)
        }
    }

    fn short(&self, offset: usize) -> u16 {
        let bytes = [self.bytes[offset], self.bytes[offset + 1]];
        if self.is_little {
            u16::from_le_bytes(bytes)
        } else {
            u16::from_be_bytes(bytes)
        }
    }
}

#[cfg(test)]
#[path = "elf_tests.rs"]
pub(super) mod tests;
