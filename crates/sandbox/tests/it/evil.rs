//! Attempts of an evil program, which prints `escaped` when one succeeds.

use std::env::{args, var};
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::symlink;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::thread::sleep;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

/// One attempt; `limited` ones may be killed by a limit.
pub(crate) struct Attempt {
    pub(crate) name: &'static str,
    pub(crate) run: fn() -> bool,
    pub(crate) is_limited: bool,
}

const fn attempt(name: &'static str, run: fn() -> bool) -> Attempt {
    Attempt {
        name,
        run,
        is_limited: false,
    }
}

const fn limited(name: &'static str, run: fn() -> bool) -> Attempt {
    Attempt {
        name,
        run,
        is_limited: true,
    }
}

pub(crate) static ATTEMPTS: &[Attempt] = &[
    attempt("reads_the_environment_of_the_service", environment),
    attempt("reads_the_password_file", || reads("SECRET")),
    attempt("reads_files_of_the_machine", machine),
    attempt("writes_outside", writes),
    attempt("follows_links_outwards", links),
    attempt("connects_over_tcp", tcp),
    attempt("connects_to_unix_sockets", unix),
    attempt("survives_its_end", survives),
    attempt("signals_and_traces_the_service", signals),
    limited("fills_the_memory", memory),
    limited("fills_the_disk", disk),
    limited("forks_without_end", forks),
];

/// Runs an attempt if this process is the evil program.
pub(crate) fn main() -> Option<ExitCode> {
    let mut arguments = args().skip(1);
    if arguments.next()? != "evil" {
        return None;
    }
    let name = arguments.next()?;
    if let Some(helper) = helper(&name) {
        return Some(helper);
    }
    let attempt = ATTEMPTS.iter().find(|attempt| attempt.name == name)?;
    if (attempt.run)() {
        println!("escaped");
    }
    println!("done");
    Some(ExitCode::SUCCESS)
}

fn helper(name: &str) -> Option<ExitCode> {
    match name {
        "sleep" => sleep(Duration::from_hours(1)),
        "orphan" => {
            // A second fork, which is not waited for.
            spawn("sleep");
        }
        "copy" => {
            fs::write("kept", fs::read("input").ok()?).ok()?;
            println!("{:?}", std::env::vars().collect::<Vec<_>>());
        }
        _ => return None,
    }
    Some(ExitCode::SUCCESS)
}

fn spawn(name: &str) -> bool {
    let mut command = Command::new(var("SELF").unwrap());
    command.args(["evil", name]).stdin(Stdio::null());
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    command.spawn().is_ok()
}

fn service() -> i32 {
    var("SERVICE").unwrap().parse().unwrap()
}

fn reads(variable: &str) -> bool {
    fs::read(var(variable).unwrap()).is_ok()
}

fn environment() -> bool {
    let parents = [
        service(),
        1,
        std::os::unix::process::parent_id().cast_signed(),
    ];
    parents.into_iter().any(|pid| {
        fs::read(format!("/proc/{pid}/environ"))
            .is_ok_and(|text| text.windows(6).any(|window| window == b"SECRET"))
    }) || std::env::vars().any(|(_, value)| value.contains("not-to-be-seen"))
}

fn machine() -> bool {
    let root = format!("/proc/{}/root/etc/shadow", service());
    [
        "/etc/shadow",
        "/etc/passwd",
        "/root",
        "/proc/1/root/etc/shadow",
        &root,
    ]
    .into_iter()
    .any(|path| {
        fs::read(path).is_ok() || fs::read_dir(path).is_ok_and(|mut all| all.next().is_some())
    }) || fs::read_dir(var("OUTSIDE").unwrap()).is_ok_and(|all| {
        // Parent folders of its own may be visible.
        all.flatten()
            .any(|entry| entry.path() == Path::new(&var("SECRET").unwrap()))
    })
}

fn writes() -> bool {
    let outside = Path::new(&var("OUTSIDE").unwrap()).join("escaped");
    let library = Path::new(&var("SELF").unwrap()).with_extension("evil");
    let _ = fs::write("../escaped", "x");
    for path in [&outside, &library, Path::new("/tmp/atoll-escaped")] {
        let _ = fs::write(path, "x");
    }
    // In a root of its own these are its own files; the test checks the machine's.
    fs::OpenOptions::new()
        .append(true)
        .open(var("SELF").unwrap())
        .is_ok()
}

fn links() -> bool {
    let secret = var("SECRET").unwrap();
    // Links that a reader of the results might follow.
    let _ = symlink(&secret, "result");
    let _ = symlink(var("OUTSIDE").unwrap(), "folder");
    let _ = fs::create_dir("deep");
    let _ = symlink("/", "deep/root");
    let hard = fs::hard_link(&secret, "hard").is_ok();
    hard || fs::read("result").is_ok()
}

fn tcp() -> bool {
    let address = var("TCP").unwrap().parse().unwrap();
    TcpStream::connect_timeout(&address, Duration::from_secs(5)).is_ok()
}

fn unix() -> bool {
    let by_path = UnixStream::connect(var("UNIX").unwrap()).is_ok();
    let name = SocketAddr::from_abstract_name(var("ABSTRACT").unwrap()).unwrap();
    let by_name = UnixStream::connect_addr(&name).is_ok();
    let datagram = std::os::unix::net::UnixDatagram::pair()
        .is_ok_and(|(one, _)| one.send_to(b"x", var("UNIX").unwrap()).is_ok());
    by_path || by_name || datagram
}

fn survives() -> bool {
    for _ in 0..3 {
        spawn("orphan");
        spawn("sleep");
    }
    // Checked by the test.
    false
}

fn signals() -> bool {
    let Some(pid) = Pid::from_raw(service()) else {
        return true;
    };
    // Pid 1 is its own init, which it may signal.
    let signalled = pid != Pid::INIT && kill_process(pid, Signal::WINCH).is_ok();
    let memory = fs::OpenOptions::new()
        .write(true)
        .open(format!("/proc/{}/mem", service()))
        .is_ok();
    let init = fs::OpenOptions::new()
        .write(true)
        .open("/proc/1/mem")
        .is_ok();
    let traced = [
        libc::SYS_ptrace,
        libc::SYS_process_vm_readv,
        libc::SYS_unshare,
        libc::SYS_io_uring_setup,
        libc::SYS_memfd_create,
    ]
    .into_iter()
    .any(works);
    signalled || memory || init || traced
}

/// Whether a system call without arguments works.
fn works(call: libc::c_long) -> bool {
    // SAFETY: zeros are valid arguments of these calls, or pointers that the kernel refuses.
    #[expect(unsafe_code, reason = "proof above")]
    let result = unsafe { libc::syscall(call, 0, 0, 0, 0, 0, 0) };
    result >= 0
}

fn memory() -> bool {
    // Each process stays within its own limit, all together exceed it.
    for _ in 0..4 {
        if var("CHILD").is_err() {
            let mut command = Command::new(var("SELF").unwrap());
            command.args(["evil", "fills_the_memory"]).env("CHILD", "1");
            let _ = command.spawn();
        }
    }
    let mut pieces = Vec::new();
    loop {
        let mut piece: Vec<u8> = Vec::new();
        if piece.try_reserve_exact(1 << 20).is_err() {
            // It keeps its memory until it is killed.
            sleep(Duration::from_hours(1));
        }
        piece.resize(1 << 20, 1);
        pieces.push(piece);
    }
}

fn disk() -> bool {
    let block = vec![1; 1 << 20];
    let mut open = Vec::new();
    let mut written = 0_u64;
    for number in 0..64 {
        let name = format!("file{number}");
        let Ok(mut file) = fs::File::create(&name) else {
            break;
        };
        // A deleted open file uses space as well.
        if number % 2 == 0 {
            let _ = fs::remove_file(&name);
        }
        for _ in 0..8 {
            if file.write_all(&block).is_err() {
                println!("full after {written}");
                return written > var("DISK").unwrap().parse().unwrap();
            }
            written += block.len() as u64;
        }
        open.push(file);
    }
    true
}

fn forks() -> bool {
    let mut count = 0;
    while spawn("sleep") {
        count += 1;
        if count > 10_000 {
            return true;
        }
    }
    println!("refused after {count}");
    count > var("PROCESSES").unwrap().parse().unwrap()
}

/// Whether any process of the program is left.
pub(crate) fn is_running(marker: &str) -> bool {
    fs::read_dir("/proc").unwrap().flatten().any(|entry| {
        let mut text = String::new();
        fs::File::open(entry.path().join("environ"))
            .and_then(|mut file| file.read_to_string(&mut text))
            .is_ok_and(|_| text.contains(marker))
    })
}
