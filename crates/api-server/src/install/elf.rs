//! ELF headers: machine and interpreter of a program.

use std::io::{self, Read, Seek, SeekFrom};

/// Offsets and sizes that depend on the word size. Source: System V ABI, chapters 4 and 5.
struct ElfLayout {
    header_bytes: usize,
    table_offset: usize,
    entry_bytes_offset: usize,
    entry_count_offset: usize,
    entry_bytes: u16,
    segment_offset: usize,
    segment_bytes: usize,
    word_bytes: usize,
}

const LAYOUT_32: ElfLayout = ElfLayout {
    header_bytes: 52,
    table_offset: 28,
    entry_bytes_offset: 42,
    entry_count_offset: 44,
    entry_bytes: 32,
    segment_offset: 4,
    segment_bytes: 16,
    word_bytes: 4,
};
const LAYOUT_64: ElfLayout = ElfLayout {
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
/// Size of `e_ident`. Units: bytes.
const IDENT_BYTES: usize = 16;
const MACHINE_OFFSET: usize = 18;
/// `PT_INTERP`.
const INTERPRETER: u64 = 3;
/// The kernel's limits of the program header table and the interpreter's name. Units: bytes.
const TABLE_LIMIT_BYTES: usize = 65_536;
const NAME_LIMIT_BYTES: u64 = 4096;

/// ELF header of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ElfHeader {
    machine: ElfMachine,
    /// Path of the dynamic loader; none for a static program.
    pub(super) interpreter: Option<String>,
}

/// Architecture of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ElfMachine {
    code: u16,
    is_64: bool,
    is_little: bool,
}

impl ElfHeader {
    /// Reads the header of `file`.
    ///
    /// Errors: the reason why it is not executable; or those of `file`.
    pub(super) fn read(file: &mut (impl Read + Seek)) -> io::Result<Result<Self, &'static str>> {
        match read(file) {
            Ok(program) => Ok(Ok(program)),
            Err(ElfProblem::Header(why)) => Ok(Err(why)),
            Err(ElfProblem::File(error)) if error.kind() == io::ErrorKind::UnexpectedEof => {
                Ok(Err("it is truncated"))
            }
            Err(ElfProblem::File(error)) => Err(error),
        }
    }

    /// Checks the architecture.
    ///
    /// Errors: the names of the program's and this machine's architecture.
    pub(super) fn check_machine(&self) -> Result<(), (String, &'static str)> {
        if Some(self.machine) == ElfMachine::here() {
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

impl ElfMachine {
    /// This machine; none for an unlisted one.
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
            // The same name: word size and byte order make the difference.
            Some(here) if here.code == self.code => format!(
                "{name} with {} bits, {} endian",
                if self.is_64 { 64 } else { 32 },
                if self.is_little { "little" } else { "big" },
            ),
            _ => name,
        }
    }
}

enum ElfProblem {
    Header(&'static str),
    File(io::Error),
}

impl From<io::Error> for ElfProblem {
    fn from(error: io::Error) -> Self {
        Self::File(error)
    }
}

fn read(file: &mut (impl Read + Seek)) -> Result<ElfHeader, ElfProblem> {
    let mut ident = [0; IDENT_BYTES];
    file.seek(SeekFrom::Start(0))?;
    file.read_exact(&mut ident)?;
    if !ident.starts_with(MAGIC) {
        return Err(ElfProblem::Header("it is not an ELF program"));
    }
    let (layout, is_64) = match ident[4] {
        1 => (&LAYOUT_32, false),
        2 => (&LAYOUT_64, true),
        _ => return Err(ElfProblem::Header("its word size is unknown")),
    };
    let is_little = match ident[5] {
        1 => true,
        2 => false,
        _ => return Err(ElfProblem::Header("its byte order is unknown")),
    };
    let mut header = ident.to_vec();
    header.resize(layout.header_bytes, 0);
    file.read_exact(&mut header[IDENT_BYTES..])?;
    let fields = ElfFields {
        bytes: &header,
        is_little,
    };
    let machine = ElfMachine {
        code: fields.short(MACHINE_OFFSET),
        is_64,
        is_little,
    };
    let interpreter = interpreter(file, layout, &fields)?;
    Ok(ElfHeader {
        machine,
        interpreter,
    })
}

fn interpreter(
    file: &mut (impl Read + Seek),
    layout: &ElfLayout,
    header: &ElfFields<'_>,
) -> Result<Option<String>, ElfProblem> {
    let count = usize::from(header.short(layout.entry_count_offset));
    if count == 0 {
        return Err(ElfProblem::Header("it has no segments"));
    }
    if header.short(layout.entry_bytes_offset) != layout.entry_bytes {
        return Err(ElfProblem::Header("its segments have an unknown size"));
    }
    let entry_bytes = usize::from(layout.entry_bytes);
    if count * entry_bytes > TABLE_LIMIT_BYTES {
        return Err(ElfProblem::Header("it has too many segments"));
    }
    let mut table = vec![0; count * entry_bytes];
    seek(file, header.word(layout.table_offset, layout.word_bytes))?;
    file.read_exact(&mut table)?;
    let entries = table.chunks_exact(entry_bytes).map(|bytes| ElfFields {
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

fn seek(file: &mut impl Seek, offset: u64) -> Result<(), ElfProblem> {
    if i64::try_from(offset).is_err() {
        return Err(ElfProblem::Header("it is truncated"));
    }
    file.seek(SeekFrom::Start(offset)).map(drop)?;
    Ok(())
}

/// The loader's path: absolute, plain, terminated by NUL.
fn name(file: &mut (impl Read + Seek), offset: u64, length: u64) -> Result<String, ElfProblem> {
    let wrong = ElfProblem::Header("the name of its loader is not a path");
    if !(2..=NAME_LIMIT_BYTES).contains(&length) {
        return Err(wrong);
    }
    seek(file, offset)?;
    let mut name = Vec::new();
    file.take(length).read_to_end(&mut name)?;
    if name.len() as u64 != length {
        return Err(ElfProblem::Header("it is truncated"));
    }
    let name = name.strip_suffix(&[0]).map(<[u8]>::to_vec);
    match name.map(String::from_utf8) {
        Some(Ok(name)) if is_plain(&name) => Ok(name),
        _ => Err(wrong),
    }
}

/// Whether a path is absolute, without empty, `.` and `..` elements and control characters.
fn is_plain(path: &str) -> bool {
    path.strip_prefix('/').is_some_and(|path| {
        path.split('/')
            .all(|step| !matches!(step, "" | "." | "..") && !step.chars().any(char::is_control))
    })
}

/// Numbers in the byte order of the program.
struct ElfFields<'a> {
    bytes: &'a [u8],
    is_little: bool,
}

impl ElfFields<'_> {
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
