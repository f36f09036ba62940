// Preloaded into a program under test: fails one call of the C library below one folder, once.
//
// Standard output of the program is untouched. Each call below the folder is logged as "CALL PATH", the one that
// fails as "FAIL CALL PATH". Rust's standard library makes its file system calls through these symbols; calls made
// as raw system calls are not seen.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

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
        syscall(SYS_write, log_fd, line, (size_t)length);
}

__attribute__((constructor)) static void start(void) {
    const char *log = getenv("FAULTS_LOG");
    folder = getenv("FAULTS_FOLDER");
    wanted = getenv("FAULTS_CALL");
    error = atoi(getenv("FAULTS_ERROR") ? getenv("FAULTS_ERROR") : "0");
    nth = atol(getenv("FAULTS_NTH") ? getenv("FAULTS_NTH") : "0");
    if (log)
        log_fd = (int)syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

static int is_inside(const char *path) {
    size_t length = folder ? strlen(folder) : 0;
    return length && strncmp(path, folder, length) == 0 && (path[length] == '/' || !path[length]);
}

static void path_of(int fd, char *path) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    path[length < 0 ? 0 : length] = 0;
}

// Whether this call is the one that fails.
static int hits(const char *call, const char *path) {
    if (!is_inside(path))
        return 0;
    int is_hit = wanted && strcmp(call, wanted) == 0 && atomic_fetch_add(&seen, 1) + 1 == nth;
    log_line(is_hit ? "FAIL " : "", call, path);
    if (is_hit)
        errno = error;
    return is_hit;
}

static int hits_fd(const char *call, int fd) {
    char path[PATH_MAX];
    int saved = errno;
    path_of(fd, path);
    errno = saved;
    return hits(call, path);
}

static int hits_at(const char *call, int dir, const char *name) {
    char path[2 * PATH_MAX];
    if (name[0] == '/' || dir == AT_FDCWD)
        return hits(call, name);
    path_of(dir, path);
    strcat(path, "/");
    strncat(path, name, PATH_MAX - 1);
    return hits(call, path);
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

// As a disk does that fills up: a write is cut short, and the next one fails.
static int fails_write(int fd, size_t *length) {
    int expected = fd;
    if (atomic_compare_exchange_strong(&cut_fd, &expected, -1)) {
        errno = error;
        return 1;
    }
    if (!hits_fd("write", fd))
        return 0;
    if (*length < 2)
        return 1;
    *length /= 2;
    atomic_store(&cut_fd, fd);
    return 0;
}

ssize_t write(int fd, const void *bytes, size_t length) {
    return fails_write(fd, &length) ? -1 : REAL(write)(fd, bytes, length);
}

ssize_t pwrite(int fd, const void *bytes, size_t length, off_t at) {
    return fails_write(fd, &length) ? -1 : REAL(pwrite)(fd, bytes, length, at);
}

ssize_t pwrite64(int fd, const void *bytes, size_t length, off64_t at) {
    return fails_write(fd, &length) ? -1 : REAL(pwrite64)(fd, bytes, length, at);
}

ssize_t writev(int fd, const struct iovec *pieces, int count) {
    size_t length = count > 0 ? pieces[0].iov_len : 0;
    size_t whole = length;
    if (fails_write(fd, &length))
        return -1;
    // Cut short within the first piece.
    return length < whole ? REAL(write)(fd, pieces[0].iov_base, length) : REAL(writev)(fd, pieces, count);
}

ssize_t copy_file_range(int from, off64_t *from_at, int to, off64_t *to_at, size_t length, unsigned flags) {
    return hits_fd("write", to) ? -1 : REAL(copy_file_range)(from, from_at, to, to_at, length, flags);
}

int fsync(int fd) { return hits_fd("fsync", fd) ? -1 : REAL(fsync)(fd); }

int fdatasync(int fd) { return hits_fd("fsync", fd) ? -1 : REAL(fdatasync)(fd); }

int ftruncate(int fd, off_t length) { return hits_fd("ftruncate", fd) ? -1 : REAL(ftruncate)(fd, length); }

int ftruncate64(int fd, off64_t length) { return hits_fd("ftruncate", fd) ? -1 : REAL(ftruncate64)(fd, length); }

int rename(const char *from, const char *to) { return hits("rename", to) ? -1 : REAL(rename)(from, to); }

int link(const char *from, const char *to) { return hits("link", to) ? -1 : REAL(link)(from, to); }

int linkat(int from_dir, const char *from, int to_dir, const char *to, int flags) {
    return hits_at("link", to_dir, to) ? -1 : REAL(linkat)(from_dir, from, to_dir, to, flags);
}

int mkdir(const char *path, mode_t mode) { return hits("mkdir", path) ? -1 : REAL(mkdir)(path, mode); }

int rmdir(const char *path) { return hits("unlink", path) ? -1 : REAL(rmdir)(path); }

int unlink(const char *path) { return hits("unlink", path) ? -1 : REAL(unlink)(path); }

int unlinkat(int dir, const char *path, int flags) {
    return hits_at("unlink", dir, path) ? -1 : REAL(unlinkat)(dir, path, flags);
}

int open64(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    mode_t mode = (flags & (O_CREAT | O_TMPFILE)) ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    if ((flags & O_CREAT) && hits("create", path))
        return -1;
    return REAL(open64)(path, flags, mode);
}
