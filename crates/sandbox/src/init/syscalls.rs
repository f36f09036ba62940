//! Seccomp filter: system calls that a program may use.
//!
//! An allow list, since kernels add calls and other calling conventions (x32) have numbers of their own. Other calls fail
//! with ENOSYS, as on an older kernel, so that libraries fall back. Left out on purpose: sockets, mounts, namespaces,
//! ptrace and memory of other processes, keys, modules, bpf, io_uring, userfaultfd, perf, file handles, memfd (which no
//! limit counts).

use std::collections::BTreeMap;
use std::io;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};

#[rustfmt::skip]
static ALLOWED: &[libc::c_long] = &[
    libc::SYS_read, libc::SYS_write, libc::SYS_readv, libc::SYS_writev, libc::SYS_pread64, libc::SYS_pwrite64, libc::SYS_preadv, libc::SYS_pwritev, libc::SYS_preadv2, libc::SYS_pwritev2, libc::SYS_close, libc::SYS_close_range, libc::SYS_fstat, libc::SYS_newfstatat, libc::SYS_statx, libc::SYS_lseek,
    libc::SYS_mmap, libc::SYS_mprotect, libc::SYS_munmap, libc::SYS_mremap, libc::SYS_brk, libc::SYS_madvise, libc::SYS_mincore, libc::SYS_msync, libc::SYS_mlock, libc::SYS_munlock,
    libc::SYS_rt_sigaction, libc::SYS_rt_sigprocmask, libc::SYS_rt_sigreturn, libc::SYS_rt_sigpending, libc::SYS_rt_sigsuspend, libc::SYS_rt_sigtimedwait, libc::SYS_sigaltstack, libc::SYS_signalfd4,
    libc::SYS_faccessat, libc::SYS_faccessat2, libc::SYS_pipe2, libc::SYS_dup, libc::SYS_dup3, libc::SYS_fcntl, libc::SYS_flock, libc::SYS_fsync, libc::SYS_fdatasync, libc::SYS_sync_file_range, libc::SYS_truncate, libc::SYS_ftruncate, libc::SYS_fallocate, libc::SYS_fadvise64,
    libc::SYS_openat, libc::SYS_openat2, libc::SYS_getdents64, libc::SYS_getcwd, libc::SYS_chdir, libc::SYS_fchdir, libc::SYS_renameat, libc::SYS_renameat2, libc::SYS_mkdirat, libc::SYS_unlinkat, libc::SYS_linkat, libc::SYS_symlinkat, libc::SYS_readlinkat,
    libc::SYS_fchmod, libc::SYS_fchmodat, libc::SYS_fchown, libc::SYS_fchownat, libc::SYS_umask, libc::SYS_utimensat, libc::SYS_statfs, libc::SYS_fstatfs, libc::SYS_sendfile, libc::SYS_copy_file_range, libc::SYS_splice, libc::SYS_tee,
    libc::SYS_nanosleep, libc::SYS_clock_nanosleep, libc::SYS_clock_gettime, libc::SYS_clock_getres, libc::SYS_gettimeofday, libc::SYS_getitimer, libc::SYS_setitimer,
    libc::SYS_timer_create, libc::SYS_timer_settime, libc::SYS_timer_gettime, libc::SYS_timer_delete, libc::SYS_timer_getoverrun, libc::SYS_timerfd_create, libc::SYS_timerfd_settime, libc::SYS_timerfd_gettime,
    libc::SYS_getpid, libc::SYS_getppid, libc::SYS_gettid, libc::SYS_getuid, libc::SYS_geteuid, libc::SYS_getgid, libc::SYS_getegid, libc::SYS_getresuid, libc::SYS_getresgid, libc::SYS_getgroups, libc::SYS_getpgid, libc::SYS_getsid, libc::SYS_setpgid, libc::SYS_setsid,
    libc::SYS_execve, libc::SYS_execveat, libc::SYS_exit, libc::SYS_exit_group, libc::SYS_wait4, libc::SYS_waitid, libc::SYS_kill, libc::SYS_tkill, libc::SYS_tgkill, libc::SYS_pidfd_open, libc::SYS_pidfd_send_signal,
    libc::SYS_uname, libc::SYS_getrusage, libc::SYS_times, libc::SYS_sysinfo, libc::SYS_prlimit64, libc::SYS_getpriority, libc::SYS_capget,
    libc::SYS_sched_yield, libc::SYS_sched_getaffinity, libc::SYS_sched_setaffinity, libc::SYS_sched_getparam, libc::SYS_sched_getscheduler, libc::SYS_sched_get_priority_max, libc::SYS_sched_get_priority_min,
    libc::SYS_futex, libc::SYS_futex_waitv, libc::SYS_set_tid_address, libc::SYS_set_robust_list, libc::SYS_get_robust_list, libc::SYS_restart_syscall, libc::SYS_membarrier, libc::SYS_rseq, libc::SYS_getcpu, libc::SYS_getrandom,
    libc::SYS_eventfd2, libc::SYS_epoll_create1, libc::SYS_epoll_ctl, libc::SYS_epoll_pwait, libc::SYS_epoll_pwait2, libc::SYS_ppoll, libc::SYS_pselect6, libc::SYS_inotify_init1, libc::SYS_inotify_add_watch, libc::SYS_inotify_rm_watch,
    libc::SYS_sendto, libc::SYS_recvfrom, libc::SYS_sendmsg, libc::SYS_recvmsg, libc::SYS_shutdown, libc::SYS_getsockopt, libc::SYS_setsockopt, libc::SYS_getsockname, libc::SYS_getpeername,
];

/// Legacy calls that newer architectures lack.
#[cfg(target_arch = "x86_64")]
#[rustfmt::skip]
static OLDER: &[libc::c_long] = &[
    libc::SYS_open, libc::SYS_stat, libc::SYS_lstat, libc::SYS_poll, libc::SYS_access, libc::SYS_pipe, libc::SYS_select, libc::SYS_dup2, libc::SYS_alarm, libc::SYS_pause, libc::SYS_fork, libc::SYS_vfork, libc::SYS_rename, libc::SYS_mkdir, libc::SYS_rmdir, libc::SYS_creat, libc::SYS_link, libc::SYS_unlink, libc::SYS_symlink, libc::SYS_readlink,
    libc::SYS_chmod, libc::SYS_chown, libc::SYS_lchown, libc::SYS_getdents, libc::SYS_utime, libc::SYS_utimes, libc::SYS_futimesat, libc::SYS_epoll_create, libc::SYS_epoll_wait, libc::SYS_eventfd, libc::SYS_inotify_init, libc::SYS_signalfd, libc::SYS_time, libc::SYS_getpgrp,
    libc::SYS_arch_prctl, libc::SYS_getrlimit, libc::SYS_setrlimit,
];
#[cfg(not(target_arch = "x86_64"))]
static OLDER: &[libc::c_long] = &[];

/// Flags of clone that create namespaces. clone3 is not allowed: its flags are in memory, which filters cannot read.
const NAMESPACES: libc::c_int = libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET;

/// Allowed options of prctl: names of threads and memory, and queries. Not: being traced or dumped.
const PRCTL: &[libc::c_int] = &[
    libc::PR_SET_NAME,
    libc::PR_GET_NAME,
    libc::PR_SET_VMA,
    libc::PR_GET_DUMPABLE,
    libc::PR_CAPBSET_READ,
    libc::PR_SET_THP_DISABLE,
    libc::PR_GET_THP_DISABLE,
    libc::PR_SET_NO_NEW_PRIVS,
    libc::PR_GET_NO_NEW_PRIVS,
];

/// ioctls that inject input into the service's terminal. Source: asm-generic/ioctls.h, linux/tiocl.h.
const TYPING: [u64; 2] = [0x5412, 0x541C];
/// Allowed types of socket pairs. Not datagrams, which can be sent to any socket.
const PAIRS: &[libc::c_int] = &[libc::SOCK_STREAM, libc::SOCK_SEQPACKET];
/// Mask of the socket type, without flags.
const TYPE_MASK: u64 = 0xf;

/// Installs the filter for this process and its descendants.
///
/// Errors: unsupported architecture; those of the kernel.
pub(super) fn filter() -> io::Result<()> {
    let program = program().map_err(io::Error::other)?;
    seccompiler::apply_filter(&program).map_err(io::Error::other)
}

fn program() -> Result<BpfProgram, seccompiler::BackendError> {
    let mut rules: BTreeMap<libc::c_long, Vec<SeccompRule>> = ALLOWED
        .iter()
        .chain(OLDER)
        .map(|call| (*call, Vec::new()))
        .collect();
    let none = SeccompCmpOp::MaskedEq(u64::from(NAMESPACES.cast_unsigned()));
    rules.insert(
        libc::SYS_clone,
        vec![SeccompRule::new(vec![at(0, none, 0)?])?],
    );
    let prctl = PRCTL.iter().map(|option| equals(0, *option));
    rules.insert(libc::SYS_prctl, prctl.collect::<Result<_, _>>()?);
    let not = TYPING.map(|request| at(1, SeccompCmpOp::Ne, request));
    let not = SeccompRule::new(not.into_iter().collect::<Result<_, _>>()?)?;
    rules.insert(libc::SYS_ioctl, vec![not]);
    let pair = |kind: &libc::c_int| {
        SeccompRule::new(vec![
            at(0, SeccompCmpOp::Eq, unsigned(libc::AF_UNIX))?,
            at(1, SeccompCmpOp::MaskedEq(TYPE_MASK), unsigned(*kind))?,
        ])
    };
    let pairs = PAIRS.iter().map(pair);
    rules.insert(libc::SYS_socketpair, pairs.collect::<Result<_, _>>()?);
    let architecture: TargetArch = std::env::consts::ARCH.try_into()?;
    SeccompFilter::new(
        rules,
        SeccompAction::Errno(libc::ENOSYS.cast_unsigned()),
        SeccompAction::Allow,
        architecture,
    )?
    .try_into()
}

fn equals(argument: u8, value: libc::c_int) -> Result<SeccompRule, seccompiler::BackendError> {
    SeccompRule::new(vec![at(argument, SeccompCmpOp::Eq, unsigned(value))?])
}

fn at(
    argument: u8,
    operator: SeccompCmpOp,
    value: u64,
) -> Result<SeccompCondition, seccompiler::BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)
}

fn unsigned(value: libc::c_int) -> u64 {
    u64::from(value.cast_unsigned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dangerous_calls_are_not_allowed() {
        for call in [
            libc::SYS_socket,
            libc::SYS_connect,
            libc::SYS_bind,
            libc::SYS_ptrace,
            libc::SYS_mount,
            libc::SYS_unshare,
            libc::SYS_setns,
            libc::SYS_clone3,
            libc::SYS_keyctl,
            libc::SYS_bpf,
            libc::SYS_userfaultfd,
            libc::SYS_io_uring_setup,
            libc::SYS_process_vm_writev,
            libc::SYS_memfd_create,
            libc::SYS_open_by_handle_at,
            libc::SYS_init_module,
            libc::SYS_kexec_load,
            libc::SYS_pidfd_getfd,
        ] {
            assert!(!ALLOWED.contains(&call) && !OLDER.contains(&call), "{call}");
        }
        program().unwrap();
    }
}
