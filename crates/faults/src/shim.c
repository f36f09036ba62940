// Preloaded into a program under test: fails one system call below one folder, once.
//
// A seccomp filter traps the system calls that change file systems, whichever library makes them: Rust's standard
// library calls the C library, rustix the kernel. The handler of the trap logs a call below the folder as
// "CALL PATH", or as "FAIL CALL PATH" where it fails, and makes all others itself, through the one page whose calls
// the filter lets pass. Standard output of the program is untouched.
//
// Filters outlive exec and handlers do not, so children are started by a thread without the filter. One that is
// started with this library sets up its own.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

// The same page in each process: children that are forked keep the filter.
#define GATE 0x6a0000000000ul
#define PAGE 4096

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
// mov rax, rdi; mov rdi, rsi; mov rsi, rdx; mov rdx, rcx; mov r10, r8; mov r8, r9; mov r9, [rsp + 8]; syscall; ret
static const unsigned char code[] = {0x48, 0x89, 0xf8, 0x48, 0x89, 0xf7, 0x48, 0x89, 0xd6, 0x48, 0x89, 0xca, 0x4d,
                                     0x89, 0xc2, 0x4d, 0x89, 0xc8, 0x4c, 0x8b, 0x4c, 0x24, 0x08, 0x0f, 0x05, 0xc3};
#define NUMBER(it) (it)->gregs[REG_RAX]
#define RESULT(it) (it)->gregs[REG_RAX]
#define ARGUMENTS(it)                                                                                                \
    {(it)->gregs[REG_RDI], (it)->gregs[REG_RSI], (it)->gregs[REG_RDX],                                               \
     (it)->gregs[REG_R10], (it)->gregs[REG_R8],  (it)->gregs[REG_R9]}
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
// mov x8, x0; mov x0, x1; …; mov x5, x6; svc 0; ret
static const uint32_t code[] = {0xaa0003e8, 0xaa0103e0, 0xaa0203e1, 0xaa0303e2, 0xaa0403e3,
                                0xaa0503e4, 0xaa0603e5, 0xd4000001, 0xd65f03c0};
#define NUMBER(it) (it)->regs[8]
#define RESULT(it) (it)->regs[0]
#define ARGUMENTS(it) {(it)->regs[0], (it)->regs[1], (it)->regs[2], (it)->regs[3], (it)->regs[4], (it)->regs[5]}
#endif

static long (*const gate)(long, ...) = (long (*)(long, ...))GATE;

static const char *folder;
static const char *wanted;
static int error;
static long nth;
static int log_fd = -1;
static atomic_long seen;
// The file whose last write was cut short: its next write fails.
static atomic_int cut_fd = -1;

static void log_line(const char *what, const char *call, const char *path) {
    char line[PATH_MAX + 64];
    int length = snprintf(line, sizeof line, "%s%s %s\n", what, call, path);
    if (log_fd >= 0 && length > 0)
        gate(SYS_write, (long)log_fd, line, (long)length, 0l, 0l, 0l);
}

static int is_inside(const char *path) {
    size_t length = folder ? strlen(folder) : 0;
    return length && strncmp(path, folder, length) == 0 && (path[length] == '/' || !path[length]);
}

// Whether this call is the one that fails. A folder that is there is not made: no disk fails then.
static int hits(const char *call, const char *path) {
    if (!is_inside(path) || (strcmp(call, "mkdir") == 0 && access(path, F_OK) == 0))
        return 0;
    int is_hit = wanted && strcmp(call, wanted) == 0 && atomic_fetch_add(&seen, 1) + 1 == nth;
    log_line(is_hit ? "FAIL " : "", call, path);
    return is_hit;
}

static size_t path_of(const char *link, char *path) {
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    path[length < 0 ? 0 : length] = 0;
    return length < 0 ? 0 : (size_t)length;
}

static int hits_fd(const char *call, long fd) {
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", (int)fd);
    path_of(link, path);
    return hits(call, path);
}

static int hits_at(const char *call, long dir, long name) {
    char link[64], path[2 * PATH_MAX];
    const char *given = (const char *)name;
    if (given[0] == '/')
        return hits(call, given);
    snprintf(link, sizeof link, "/proc/self/fd/%d", (int)dir);
    size_t length = path_of((int)dir == AT_FDCWD ? "/proc/self/cwd" : link, path);
    snprintf(path + length, sizeof path - length, "/%s", given);
    return hits(call, path);
}

// As a disk does that fills up: a write is cut short, and the next one fails. Answers whether this one fails.
static int fails_write(long fd, size_t *length) {
    int expected = (int)fd;
    if (atomic_compare_exchange_strong(&cut_fd, &expected, -1))
        return 1;
    if (!hits_fd("write", fd))
        return 0;
    if (*length < 2)
        return 1;
    *length /= 2;
    atomic_store(&cut_fd, (int)fd);
    return 0;
}

static int fails(long number, long *a) {
    switch (number) {
    case SYS_write:
    case SYS_pwrite64:
        return fails_write(a[0], (size_t *)&a[2]);
    case SYS_writev:
    case SYS_pwritev:
    case SYS_pwritev2: {
        const struct iovec *pieces = (const struct iovec *)a[1];
        size_t whole = a[2] > 0 ? pieces[0].iov_len : 0, length = whole;
        if (fails_write(a[0], &length))
            return 1;
        // Cut short after the first piece.
        if (length < whole)
            a[2] = 1;
        return 0;
    }
    case SYS_copy_file_range:
    case SYS_splice:
        return fails_write(a[2], (size_t *)&a[4]);
    case SYS_sendfile:
        return fails_write(a[0], (size_t *)&a[3]);
    case SYS_fallocate:
        return hits_fd("fallocate", a[0]);
    case SYS_fsync:
    case SYS_fdatasync:
    case SYS_sync_file_range:
        return hits_fd("fsync", a[0]);
    case SYS_syncfs:
        return hits_fd("syncfs", a[0]);
    case SYS_ftruncate:
        return hits_fd("ftruncate", a[0]);
    case SYS_openat:
        return hits_at("create", a[0], a[1]);
    case SYS_renameat2:
        return hits_at("rename", a[2], a[3]);
    case SYS_linkat:
        return hits_at("link", a[2], a[3]);
    case SYS_symlinkat:
        return hits_at("link", a[1], a[2]);
    case SYS_mkdirat:
        return hits_at("mkdir", a[0], a[1]);
    case SYS_unlinkat:
        return hits_at("unlink", a[0], a[1]);
#ifdef SYS_renameat
    case SYS_renameat:
        return hits_at("rename", a[2], a[3]);
#endif
#ifdef SYS_open
    case SYS_open:
    case SYS_creat:
        return hits_at("create", AT_FDCWD, a[0]);
    case SYS_rename:
        return hits_at("rename", AT_FDCWD, a[1]);
    case SYS_link:
    case SYS_symlink:
        return hits_at("link", AT_FDCWD, a[1]);
    case SYS_mkdir:
        return hits_at("mkdir", AT_FDCWD, a[0]);
    case SYS_rmdir:
    case SYS_unlink:
        return hits_at("unlink", AT_FDCWD, a[0]);
#endif
    }
    return 0;
}

static void trapped(int signal, siginfo_t *info, void *context) {
    (void)signal;
    mcontext_t *at = &((ucontext_t *)context)->uc_mcontext;
    // Other filters trap, too.
    if (info->si_code != 1 /* SYS_SECCOMP */)
        return;
    int saved = errno;
    long number = info->si_syscall;
    long a[] = ARGUMENTS(at);
    RESULT(at) = fails(number, a) ? -error : gate(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    errno = saved;
}

// With O_CREAT only: which argument has the flags.
#define FIELD(name) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, name))
#define TRAPS(number) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP)
#define TRAPS_CREATING(number, flags)                                                                                \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 4), FIELD(args[flags]),                                           \
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_CREAT, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),            \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static struct sock_filter filter[] = {
    FIELD(arch),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    // Little-endian: the upper half comes second.
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, instruction_pointer) + 4),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, GATE >> 32, 0, 1),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    FIELD(nr),
    TRAPS(SYS_write),
    TRAPS(SYS_pwrite64),
    TRAPS(SYS_writev),
    TRAPS(SYS_pwritev),
    TRAPS(SYS_pwritev2),
    TRAPS(SYS_copy_file_range),
    TRAPS(SYS_splice),
    TRAPS(SYS_sendfile),
    TRAPS(SYS_fallocate),
    TRAPS(SYS_fsync),
    TRAPS(SYS_fdatasync),
    TRAPS(SYS_syncfs),
    TRAPS(SYS_sync_file_range),
    TRAPS(SYS_ftruncate),
    TRAPS(SYS_renameat2),
    TRAPS(SYS_linkat),
    TRAPS(SYS_symlinkat),
    TRAPS(SYS_mkdirat),
    TRAPS(SYS_unlinkat),
#ifdef SYS_renameat
    TRAPS(SYS_renameat),
#endif
#ifdef SYS_open
    TRAPS(SYS_creat),
    TRAPS(SYS_rename),
    TRAPS(SYS_link),
    TRAPS(SYS_symlink),
    TRAPS(SYS_mkdir),
    TRAPS(SYS_rmdir),
    TRAPS(SYS_unlink),
    TRAPS_CREATING(SYS_open, 1),
#endif
    TRAPS_CREATING(SYS_openat, 2),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};

static void fail(const char *what) {
    perror(what);
    _exit(125);
}

typedef int spawn_function(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *,
                           char *const[], char *const[]);

static pthread_mutex_t spawning = PTHREAD_MUTEX_INITIALIZER;
static sem_t spawn_asked, spawn_done;
static struct {
    spawn_function *function;
    pid_t *pid;
    const char *path;
    const posix_spawn_file_actions_t *actions;
    const posix_spawnattr_t *attributes;
    char *const *arguments, *const *environment;
    int result;
} child;

static void *spawner(void *nothing) {
    for (;;) {
        while (sem_wait(&spawn_asked))
            ;
        child.result = child.function(child.pid, child.path, child.actions, child.attributes, child.arguments,
                                      child.environment);
        sem_post(&spawn_done);
    }
    return nothing;
}

static int spawn(const char *function, pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                 const posix_spawnattr_t *attributes, char *const *arguments, char *const *environment) {
    pthread_mutex_lock(&spawning);
    child.function = (spawn_function *)dlsym(RTLD_NEXT, function);
    child.pid = pid;
    child.path = path;
    child.actions = actions;
    child.attributes = attributes;
    child.arguments = arguments;
    child.environment = environment;
    sem_post(&spawn_asked);
    while (sem_wait(&spawn_done))
        ;
    int result = child.result;
    pthread_mutex_unlock(&spawning);
    return result;
}

int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                const posix_spawnattr_t *attributes, char *const arguments[], char *const environment[]) {
    return spawn("posix_spawn", pid, path, actions, attributes, arguments, environment);
}

int posix_spawnp(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                 const posix_spawnattr_t *attributes, char *const arguments[], char *const environment[]) {
    return spawn("posix_spawnp", pid, path, actions, attributes, arguments, environment);
}

__attribute__((constructor)) static void start(void) {
    const char *log = getenv("FAULTS_LOG");
    folder = getenv("FAULTS_FOLDER");
    wanted = getenv("FAULTS_CALL");
    error = atoi(getenv("FAULTS_ERROR") ? getenv("FAULTS_ERROR") : "0");
    nth = atol(getenv("FAULTS_NTH") ? getenv("FAULTS_NTH") : "0");
    // Once: not in each child, too.
    if (wanted && (wanted = strdup(wanted)))
        unsetenv("FAULTS_CALL");
    void *page = mmap((void *)GATE, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (page != (void *)GATE)
        fail("faults: the gate");
    memcpy(page, code, sizeof code);
    if (mprotect(page, PAGE, PROT_READ | PROT_EXEC))
        fail("faults: the gate");
    __builtin___clear_cache((char *)page, (char *)page + sizeof code);
    if (log)
        log_fd = (int)gate(SYS_openat, (long)AT_FDCWD, log, (long)(O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC), 0600l, 0l, 0l);
    pthread_t thread;
    if (sem_init(&spawn_asked, 0, 0) || sem_init(&spawn_done, 0, 0) || pthread_create(&thread, NULL, spawner, NULL))
        fail("faults: the spawner");
    struct sigaction action = {.sa_sigaction = trapped, .sa_flags = SA_SIGINFO};
    if (sigaction(SIGSYS, &action, NULL))
        fail("faults: SIGSYS");
    struct sock_fprog program = {.len = sizeof filter / sizeof filter[0], .filter = filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
        fail("faults: seccomp");
}
