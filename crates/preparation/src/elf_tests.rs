use std::io::Cursor;
use std::mem::offset_of;

use object::write::elf::{FileHeader, ProgramHeader, Writer};

use super::*;

/// An ELF header for this machine, with a loader if one is given; not executable.
pub(crate) fn header(interpreter: Option<&str>) -> Vec<u8> {
    let here = ElfMachine::here().unwrap();
    made(here, interpreter.map(|name| format!("{name}\0")).as_deref())
}

fn made(machine: ElfMachine, interpreter: Option<&str>) -> Vec<u8> {
    let endian = if machine.is_little {
        Endianness::Little
    } else {
        Endianness::Big
    };
    let name = interpreter.unwrap_or_default();
    let last = interpreter.map_or(elf::PT_NULL, |_| elf::PT_INTERP);
    let mut bytes = Vec::new();
    let mut writer = Writer::new(endian, machine.is_64, &mut bytes);
    writer.reserve_file_header();
    writer.reserve_program_headers(2);
    let offset = writer.reserve(name.len() as u64, 1);
    let header = FileHeader {
        os_abi: elf::ELFOSABI_NONE,
        abi_version: 0,
        e_type: elf::ET_EXEC,
        e_machine: machine.code,
        e_entry: 0,
        e_flags: elf::FileFlags(0),
    };
    writer.write_file_header(&header).unwrap();
    writer.write_align_program_headers();
    for p_type in [elf::PT_LOAD, last] {
        writer.write_program_header(&ProgramHeader {
            p_type,
            p_flags: elf::ProgramFlags(0),
            p_offset: offset,
            p_vaddr: 0,
            p_paddr: 0,
            p_filesz: name.len() as u64,
            p_memsz: 0,
            p_align: 1,
        });
    }
    writer.write(name.as_bytes());
    bytes
}

fn parse(bytes: &[u8]) -> Result<ElfHeader, &'static str> {
    ElfHeader::read(&mut Cursor::new(bytes)).unwrap()
}

const S390X: ElfMachine = ElfMachine {
    code: elf::EM_S390,
    is_64: true,
    is_little: false,
};
const ARM: ElfMachine = ElfMachine {
    code: elf::EM_ARM,
    is_64: false,
    is_little: true,
};

#[test]
fn interpreters_are_read_for_each_machine() {
    for machine in [S390X, ARM, ElfMachine::here().unwrap()] {
        let name = "/lib/ld64.so.1";
        let program = parse(&made(machine, Some("/lib/ld64.so.1\0"))).unwrap();
        assert_eq!(program.machine, machine);
        assert_eq!(program.interpreter.as_deref(), Some(name));
        assert_eq!(parse(&made(machine, None)).unwrap().interpreter, None);
    }
}

#[test]
fn other_machines_are_refused() {
    assert!(parse(&header(None)).unwrap().check_machine().is_ok());
    let (name, here) = parse(&made(S390X, None))
        .unwrap()
        .check_machine()
        .unwrap_err();
    assert_eq!((name.as_str(), here), ("s390x", std::env::consts::ARCH));
    let unknown = ElfMachine {
        code: elf::Machine(9999),
        ..S390X
    };
    let (name, _) = parse(&made(unknown, None))
        .unwrap()
        .check_machine()
        .unwrap_err();
    assert_eq!(name, "machine 9999");
    let swapped = ElfMachine {
        is_little: cfg!(target_endian = "big"),
        ..ElfMachine::here().unwrap()
    };
    let (name, _) = parse(&made(swapped, None))
        .unwrap()
        .check_machine()
        .unwrap_err();
    assert!(name.ends_with("endian"), "{name}");
}

#[test]
fn current_executable_is_read() {
    let mut file = std::fs::File::open(std::env::current_exe().unwrap()).unwrap();
    let program = ElfHeader::read(&mut file).unwrap().unwrap();
    assert!(program.check_machine().is_ok());
    let is_static = cfg!(target_feature = "crt-static");
    assert_eq!(program.interpreter.is_none(), is_static);
}

#[test]
fn malformed_headers_are_refused() {
    type Header = elf::FileHeader64<Endianness>;
    let whole = header(Some("/lib64/ld.so"));
    for length in 0..whole.len() {
        assert_eq!(parse(&whole[..length]), Err("it is truncated"), "{length}");
    }
    let script = b"#!/bin/sh\necho a script is not ELF\n";
    assert!(parse(script).unwrap_err().contains("not an ELF program"));
    let mut changed = whole.clone();
    for (offset, value, expected) in [
        (4, 9, "word size"),
        (5, 0, "byte order"),
        (offset_of!(Header, e_phnum), 0, "no segments"),
        (offset_of!(Header, e_phentsize), 55, "unknown size"),
    ] {
        changed.clone_from(&whole);
        changed[offset] = value;
        let why = parse(&changed).unwrap_err();
        assert!(why.contains(expected), "{why}");
    }
    changed.clone_from(&whole);
    changed[offset_of!(Header, e_phnum)..][..2].copy_from_slice(&[0xff, 0xff]);
    assert!(parse(&changed).unwrap_err().contains("too many"));
    changed.clone_from(&whole);
    changed[offset_of!(Header, e_phoff)..][..8].copy_from_slice(&[0xff; 8]);
    assert!(parse(&changed).unwrap_err().contains("truncated"));
}

#[test]
fn malformed_interpreter_paths_are_refused() {
    let long = format!("/{}\0", "x".repeat(5000));
    for name in [
        "",
        "\0",
        "/",
        "/\0",
        "ld.so\0",
        "/lib/ld.so",
        "/lib/../ld.so\0",
        "/lib//ld.so\0",
        "/lib/./ld.so\0",
        "/lib/ld\0.so\0",
        "/lib/ld\n.so\0",
        &long,
    ] {
        let why = parse(&made(S390X, Some(name))).unwrap_err();
        assert!(why.contains("loader"), "{name:?}: {why}");
    }
}
