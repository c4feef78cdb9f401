/* Records, in order, what a process writes, cuts and syncs below one folder: tests/accountant/power_loss.py reads it.

   A record is: kind (1 byte: W, T or S), length of the path (2), offset (8), length of the data (8), path, data. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int out = -1;

static int wanted(int fd, char *path, size_t size) {
    char link[64];
    const char *folder = getenv("RECORDED_FOLDER");
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, size - 1);
    if (folder == NULL || length <= 0) return 0;
    path[length] = 0;
    if (strncmp(path, folder, strlen(folder)) != 0) return 0;
    return strlen(path) < 4 || strcmp(path + strlen(path) - 4, "-shm") != 0;
}

static void put(const void *data, size_t length) {
    const char *left = data;
    while (length > 0) {
        ssize_t done = syscall(SYS_write, out, left, length);
        if (done <= 0) abort();
        left += done;
        length -= (size_t)done;
    }
}

static void record(char kind, const char *path, int64_t offset, const void *data, uint64_t length) {
    uint16_t named = (uint16_t)strlen(path);
    if (out < 0) out = (int)syscall(SYS_openat, AT_FDCWD, getenv("RECORDED_LOG"), O_WRONLY | O_CREAT | O_APPEND, 0600);
    put(&kind, 1);
    put(&named, 2);
    put(&offset, 8);
    put(&length, 8);
    put(path, named);
    if (length > 0) put(data, length);
}

/* The lock is held over the call: records are in the order in which the kernel got them. */
#define RECORDED(result, name, parameters, arguments, kind, offset, data, length)          \
    result name parameters {                                                               \
        static result (*real) parameters;                                                  \
        char path[4096];                                                                   \
        if (real == NULL) real = (result(*) parameters)dlsym(RTLD_NEXT, #name);            \
        if (!wanted(fd, path, sizeof path)) return real arguments;                         \
        pthread_mutex_lock(&lock);                                                         \
        int64_t at = offset;                                                               \
        result done = real arguments;                                                      \
        if (done >= 0) record(kind, path, at, data, length);                               \
        pthread_mutex_unlock(&lock);                                                       \
        return done;                                                                       \
    }

RECORDED(ssize_t, pwrite, (int fd, const void *b, size_t n, off_t o), (fd, b, n, o), 'W', o, b, (uint64_t)done)
RECORDED(ssize_t, pwrite64, (int fd, const void *b, size_t n, off64_t o), (fd, b, n, o), 'W', o, b, (uint64_t)done)
RECORDED(ssize_t, write, (int fd, const void *b, size_t n), (fd, b, n), 'W', lseek(fd, 0, SEEK_CUR), b, (uint64_t)done)
RECORDED(int, ftruncate, (int fd, off_t o), (fd, o), 'T', o, NULL, 0)
RECORDED(int, ftruncate64, (int fd, off64_t o), (fd, o), 'T', o, NULL, 0)
RECORDED(int, fsync, (int fd), (fd), 'S', 0, NULL, 0)
RECORDED(int, fdatasync, (int fd), (fd), 'S', 0, NULL, 0)
