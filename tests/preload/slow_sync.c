/* Let a server's disk take long to sync, or not sync at all, while it runs.
 *
 * Preloaded, fsync and fdatasync wait for the nanoseconds that stand in $SHOAL_TEST_SLOW_SYNC/delay.
 * The file may come, change and go at any time. Nothing is synced: what a process has written
 * outlives it all the same, and only a machine without power would lose it.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL

typedef int (*syncing)(int);

static int wait_long(const char *folder) {
    char path[4096], text[32];
    snprintf(path, sizeof path, "%s/delay", folder);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    if (length <= 0) return 0;
    text[length] = 0;
    long long delay = strtoll(text, NULL, 10);
    struct timespec left = {delay / SECOND, delay % SECOND};
    while (nanosleep(&left, &left) && errno == EINTR) continue;
    return 0;
}

int fsync(int file) {
    const char *folder = getenv("SHOAL_TEST_SLOW_SYNC");
    return folder ? wait_long(folder) : ((syncing)dlsym(RTLD_NEXT, "fsync"))(file);
}

int fdatasync(int file) {
    const char *folder = getenv("SHOAL_TEST_SLOW_SYNC");
    return folder ? wait_long(folder) : ((syncing)dlsym(RTLD_NEXT, "fdatasync"))(file);
}
