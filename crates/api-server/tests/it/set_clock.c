/* Sets the clock of a program forward by an hour as soon as the file of CLOCK_SET_FILE exists (LD_PRELOAD). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t id, struct timespec *time)
{
    static int (*original)(clockid_t, struct timespec *);
    if (!original)
        original = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int result = original(id, time);
    const char *file = getenv("CLOCK_SET_FILE");
    if (id == CLOCK_REALTIME && file && access(file, F_OK) == 0)
        time->tv_sec += 3600;
    return result;
}
