/* Sets the clock of a program by as many seconds as the file of CLOCK_SET_FILE says, once it exists (LD_PRELOAD). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static long set_by(void)
{
    char text[32] = "";
    const char *path = getenv("CLOCK_SET_FILE");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0)
        return 0;
    if (read(file, text, sizeof text - 1) < 0)
        text[0] = 0;
    close(file);
    return atol(text);
}

int clock_gettime(clockid_t id, struct timespec *time)
{
    static int (*original)(clockid_t, struct timespec *);
    if (!original)
        original = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int result = original(id, time);
    if (id == CLOCK_REALTIME)
        time->tv_sec += set_by();
    return result;
}
