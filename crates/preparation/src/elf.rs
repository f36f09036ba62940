//! ELF headers: machine and interpreter of a program.

use std::io::{self, Read, Seek, SeekFrom};

use object::read::elf::{FileHeader, ProgramHeader as _};
use object::{Endianness, elf, pod};

/// Bytes up to the word size: the magic number and the class.
const START_BYTES: usize = 5;
/// The kernel's limits of the program header table and the interpreter's name. Units: bytes.
const TABLE_LIMIT_BYTES: usize = 65_536;
const NAME_LIMIT_BYTES: u64 = 4096;

/// ELF header of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ElfHeader {
    machine: ElfMachine,
    /// Path of the dynamic loader; none for a static program.
    pub(crate) interpreter: Option<String>,
}

/// Architecture of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ElfMachine {
    code: elf::Machine,
    is_64: bool,
    is_little: bool,
}

impl ElfHeader {
    /// Reads the header of `file`.
    ///
    /// Errors: the reason why it is not executable; or those of `file`.
    pub(crate) fn read(file: &mut (impl Read + Seek)) -> io::Result<Result<Self, &'static str>> {
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
    pub(crate) fn check_machine(&self) -> Result<(), (String, &'static str)> {
        if Some(self.machine) == ElfMachine::here() {
            return Ok(());
        }
        Err((self.machine.name(), std::env::consts::ARCH))
    }
}

/// Machines, by their names in Rust.
const MACHINES: &[(elf::Machine, &str)] = &[
    (elf::EM_386, "x86"),
    (elf::EM_PPC, "powerpc"),
    (elf::EM_PPC64, "powerpc64"),
    (elf::EM_S390, "s390x"),
    (elf::EM_ARM, "arm"),
    (elf::EM_X86_64, "x86_64"),
    (elf::EM_AARCH64, "aarch64"),
    (elf::EM_RISCV, "riscv64"),
    (elf::EM_LOONGARCH, "loongarch64"),
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
    let start = bytes(file, 0, START_BYTES)?;
    if !start.starts_with(&elf::ELFMAG) {
        return Err(ElfProblem::Header("it is not an ELF program"));
    }
    match elf::FileClass(start[START_BYTES - 1]) {
        elf::ELFCLASS32 => header::<elf::FileHeader32<Endianness>>(file),
        elf::ELFCLASS64 => header::<elf::FileHeader64<Endianness>>(file),
        _ => Err(ElfProblem::Header("its word size is unknown")),
    }
}

fn header<Elf: FileHeader<Endian = Endianness>>(
    file: &mut (impl Read + Seek),
) -> Result<ElfHeader, ElfProblem> {
    let start = bytes(file, 0, size_of::<Elf>())?;
    let (header, _) = pod::from_bytes::<Elf>(&start).map_err(truncated)?;
    let endian = match header.endian() {
        Ok(endian) if header.is_little_endian() || header.is_big_endian() => endian,
        _ => return Err(ElfProblem::Header("its byte order is unknown")),
    };
    let count = usize::from(header.e_phnum(endian));
    if count == 0 {
        return Err(ElfProblem::Header("it has no segments"));
    }
    let segment_bytes = size_of::<Elf::ProgramHeader>();
    if usize::from(header.e_phentsize(endian)) != segment_bytes {
        return Err(ElfProblem::Header("its segments have an unknown size"));
    }
    if count * segment_bytes > TABLE_LIMIT_BYTES {
        return Err(ElfProblem::Header("it has too many segments"));
    }
    let table = bytes(file, header.e_phoff(endian).into(), count * segment_bytes)?;
    let (segments, _) =
        pod::slice_from_bytes::<Elf::ProgramHeader>(&table, count).map_err(truncated)?;
    let interpreter = segments
        .iter()
        .find(|segment| segment.p_type(endian) == elf::PT_INTERP)
        .map(|segment| {
            let (offset, length) = segment.file_range(endian);
            name(file, offset, length)
        });
    Ok(ElfHeader {
        machine: ElfMachine {
            code: header.e_machine(endian),
            is_64: header.is_type_64(),
            is_little: header.is_little_endian(),
        },
        interpreter: interpreter.transpose()?,
    })
}

fn bytes(file: &mut (impl Read + Seek), offset: u64, length: usize) -> Result<Vec<u8>, ElfProblem> {
    if i64::try_from(offset).is_err() {
        return Err(truncated(()));
    }
    file.seek(SeekFrom::Start(offset))?;
    let mut bytes = vec![0; length];
    file.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn truncated((): ()) -> ElfProblem {
    ElfProblem::Header("it is truncated")
}

/// The loader's path: absolute, plain, terminated by NUL.
fn name(file: &mut (impl Read + Seek), offset: u64, length: u64) -> Result<String, ElfProblem> {
    let wrong = ElfProblem::Header("the name of its loader is not a path");
    if !(2..=NAME_LIMIT_BYTES).contains(&length) {
        return Err(wrong);
    }
    let length = usize::try_from(length).map_err(|_| truncated(()))?;
    let name = bytes(file, offset, length)?;
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

#[cfg(test)]
#[path = "elf_tests.rs"]
pub(crate) mod tests;
