/* Let the wall clock of chosen processes jump while they run, and no other clock.
 *
 * Preloaded, it adds to CLOCK_REALTIME the nanoseconds that stand in the file
 * $SHOAL_TEST_CLOCK_SHIFT/<process id>, or in $SHOAL_TEST_CLOCK_SHIFT/all. The file may come, change
 * and go at any time; it is read every 20 ms. Monotonic clocks and time since boot stay right.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL
#define EVERY (20 * 1000000LL)

typedef int (*clock_reader)(clockid_t, struct timespec *);

static clock_reader real_clock(void) {
    static clock_reader found;
    if (!found) found = (clock_reader)dlsym(RTLD_NEXT, "clock_gettime");
    return found;
}

static int read_number(const char *folder, const char *name, long long *number) {
    char path[4096], text[32];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    if (length <= 0) return 0;
    text[length] = 0;
    *number = strtoll(text, NULL, 10);
    return 1;
}

static long long shift(void) {
    static long long number, read_at = -EVERY; /* a torn value would only be read anew */
    const char *folder = getenv("SHOAL_TEST_CLOCK_SHIFT");
    struct timespec now;
    if (!folder) return 0;
    real_clock()(CLOCK_MONOTONIC, &now);
    long long at = now.tv_sec * SECOND + now.tv_nsec;
    if (at - read_at >= EVERY) {
        char name[32];
        long long found = 0;
        snprintf(name, sizeof name, "%ld", (long)getpid());
        if (!read_number(folder, name, &found)) read_number(folder, "all", &found);
        number = found;
        read_at = at;
    }
    return number;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    int failed = real_clock()(clock, time);
    if (failed || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)) return failed;
    long long shown = time->tv_sec * SECOND + time->tv_nsec + shift();
    time->tv_sec = shown / SECOND;
    time->tv_nsec = shown % SECOND;
    return 0;
}

int gettimeofday(struct timeval *time, void *zone) {
    struct timespec now;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &now)) return -1;
    time->tv_sec = now.tv_sec;
    time->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *where) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (where) *where = now.tv_sec;
    return now.tv_sec;
}
