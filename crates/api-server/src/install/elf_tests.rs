use std::io::Cursor;

use super::*;

/// An ELF header for this machine, with a loader if one is given; not executable.
pub(in crate::install) fn header(interpreter: Option<&str>) -> Vec<u8> {
    let here = ElfMachine::here().unwrap();
    made(here, interpreter.map(|name| format!("{name}\0")).as_deref())
}

fn made(machine: ElfMachine, interpreter: Option<&str>) -> Vec<u8> {
    let layout = if machine.is_64 {
        &LAYOUT_64
    } else {
        &LAYOUT_32
    };
    let number = |value: u64, length: usize| -> Vec<u8> {
        let mut bytes = value.to_le_bytes()[..length].to_vec();
        if !machine.is_little {
            bytes.reverse();
        }
        bytes
    };
    let mut bytes = vec![0; layout.header_bytes];
    let set = |bytes: &mut Vec<u8>, offset: usize, value: u64, length: usize| {
        bytes[offset..offset + length].copy_from_slice(&number(value, length));
    };
    bytes[..4].copy_from_slice(MAGIC);
    bytes[4] = if machine.is_64 { 2 } else { 1 };
    bytes[5] = if machine.is_little { 1 } else { 2 };
    let (entry, word) = (usize::from(layout.entry_bytes), layout.word_bytes);
    let start = layout.header_bytes;
    set(&mut bytes, MACHINE_OFFSET, machine.code.into(), 2);
    set(&mut bytes, layout.table_offset, start as u64, word);
    set(&mut bytes, layout.entry_bytes_offset, entry as u64, 2);
    set(&mut bytes, layout.entry_count_offset, 2, 2);
    bytes.resize(start + 2 * entry, 0);
    set(&mut bytes, start, 1, 4);
    if let Some(name) = interpreter {
        let at = start + entry;
        let offset = bytes.len() as u64;
        set(&mut bytes, at, INTERPRETER, 4);
        set(&mut bytes, at + layout.segment_offset, offset, word);
        set(
            &mut bytes,
            at + layout.segment_bytes,
            name.len() as u64,
            word,
        );
        bytes.extend_from_slice(name.as_bytes());
    }
    bytes
}

fn parse(bytes: &[u8]) -> Result<ElfHeader, &'static str> {
    ElfHeader::read(&mut Cursor::new(bytes)).unwrap()
}

const S390X: ElfMachine = ElfMachine {
    code: 22,
    is_64: true,
    is_little: false,
};
const ARM: ElfMachine = ElfMachine {
    code: 40,
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
        code: 9999,
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
        (LAYOUT_64.entry_count_offset, 0, "no segments"),
        (LAYOUT_64.entry_bytes_offset, 55, "unknown size"),
    ] {
        changed.clone_from(&whole);
        changed[offset] = value;
        let why = parse(&changed).unwrap_err();
        assert!(why.contains(expected), "{why}");
    }
    changed.clone_from(&whole);
    changed[LAYOUT_64.entry_count_offset..][..2].copy_from_slice(&[0xff, 0xff]);
    assert!(parse(&changed).unwrap_err().contains("too many"));
    changed.clone_from(&whole);
    changed[LAYOUT_64.table_offset..][..8].copy_from_slice(&[0xff; 8]);
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
