"""Power cuts, acted out: what a process writes to a store is logged, and replayed with what was not flushed lost at random.

A library that is preloaded notes each write to the database's file, each flush of it, and what the process says on
stdout, in order. A disk may keep or lose each page that was not flushed, in any order: that is the harshest it may do.
"""

import random
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from .needs import need

PAGE = 4096
_HEAD = struct.Struct("<cQI")
_SOURCE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int is_data(int fd) {
    char link[64], path[4096];
    static const char end[] = "/log.lmdb/data.mdb";
    int at = 63;
    char digits[16];
    int n = 0;
    do { digits[n++] = '0' + fd % 10; fd /= 10; } while (fd);
    strcpy(link, "/proc/self/fd/");
    at = strlen(link);
    while (n) link[at++] = digits[--n];
    link[at] = 0;
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size < (ssize_t)sizeof end) return 0;
    path[size] = 0;
    return strcmp(path + size - (sizeof end - 1), end) == 0;
}

static void note(char kind, uint64_t offset, const void *data, uint32_t size) {
    static int log = -1;
    static ssize_t (*real)(int, const struct iovec *, int);
    unsigned char head[13];
    struct iovec parts[2] = {{head, 13}, {(void *)data, size}};
    pthread_mutex_lock(&lock);
    if (log < 0) log = open(getenv("POWER_LOG"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (!real) real = dlsym(RTLD_NEXT, "writev");
    head[0] = kind;
    memcpy(head + 1, &offset, 8);
    memcpy(head + 9, &size, 4);
    real(log, parts, 2);
    pthread_mutex_unlock(&lock);
}

static char written(int fd) { return fcntl(fd, F_GETFL) & O_DSYNC ? 'D' : 'W'; }

#define PWRITE(name) \
    ssize_t name(int fd, const void *data, size_t size, off_t offset) { \
        static ssize_t (*real)(int, const void *, size_t, off_t); \
        if (!real) real = dlsym(RTLD_NEXT, #name); \
        ssize_t done = real(fd, data, size, offset); \
        if (done > 0 && is_data(fd)) note(written(fd), offset, data, done); \
        return done; \
    }
PWRITE(pwrite)
PWRITE(pwrite64)

static void note_parts(int fd, const struct iovec *parts, int count, off_t offset, ssize_t left) {
    if (left <= 0 || !is_data(fd)) return;
    for (int i = 0; i < count && left > 0; i++) {
        size_t size = (ssize_t)parts[i].iov_len < left ? parts[i].iov_len : (size_t)left;
        note(written(fd), offset, parts[i].iov_base, size);
        offset += size; left -= size;
    }
}

#define PWRITEV(name) \
    ssize_t name(int fd, const struct iovec *parts, int count, off_t offset) { \
        static ssize_t (*real)(int, const struct iovec *, int, off_t); \
        if (!real) real = dlsym(RTLD_NEXT, #name); \
        ssize_t done = real(fd, parts, count, offset); \
        note_parts(fd, parts, count, offset, done); \
        return done; \
    }
PWRITEV(pwritev)
PWRITEV(pwritev64)

ssize_t write(int fd, const void *data, size_t size) {
    static ssize_t (*real)(int, const void *, size_t);
    if (!real) real = dlsym(RTLD_NEXT, "write");
    if (fd == 1) note('A', 0, data, size);
    else if (is_data(fd)) {
        off_t offset = lseek(fd, 0, SEEK_CUR);
        ssize_t done = real(fd, data, size);
        if (done > 0) note(written(fd), offset, data, done);
        return done;
    }
    return real(fd, data, size);
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    static ssize_t (*real)(int, const struct iovec *, int);
    if (!real) real = dlsym(RTLD_NEXT, "writev");
    off_t offset = is_data(fd) ? lseek(fd, 0, SEEK_CUR) : 0;
    ssize_t done = real(fd, parts, count);
    note_parts(fd, parts, count, offset, done);
    return done;
}

#define FLUSH(name) \
    int name(int fd) { \
        static int (*real)(int); \
        if (!real) real = dlsym(RTLD_NEXT, #name); \
        int done = real(fd); \
        if (!done && is_data(fd)) note('S', 0, "", 0); \
        return done; \
    }
FLUSH(fsync)
FLUSH(fdatasync)
"""


def make_library(folder: Path) -> Path:
    """Compile the library; skips where there is no compiler."""
    compiler = need("a C compiler")
    source, library = folder / "power.c", folder / "power.so"
    source.write_text(_SOURCE)
    command = [
        compiler,
        "-shared",
        "-fPIC",
        "-O1",
        "-o",
        str(library),
        str(source),
        "-ldl",
        "-lpthread",
    ]
    subprocess.run(command, check=True, capture_output=True)
    return library


class Entry(NamedTuple):
    """Something that a process did."""

    kind: str
    """`W` wrote, `D` wrote and flushed that, `S` flushed the file, `A` said."""
    offset: int
    data: bytes


class Cut(NamedTuple):
    """What a power cut left."""

    image: bytes
    """Of the database's file."""
    said: list[str]
    """Lines that the process had said by then."""
    commit: int
    """Number of the last commit that had been written by then."""


def read_log(file: Path) -> list[Entry]:
    """Read what was logged; a record that was cut short by the kill is left out."""
    data, at, found = file.read_bytes(), 0, []
    while at + _HEAD.size <= len(data):
        kind, offset, size = _HEAD.unpack_from(data, at)
        at += _HEAD.size
        if at + size > len(data):
            break
        found.append(Entry(kind.decode(), offset, data[at : at + size]))
        at += size
    return found


def cuts(entries: list[Entry], count: int, chance: random.Random) -> Iterator[Cut]:
    """Cut the power at so many random places after the process has said its first word."""
    first = next(at for at, entry in enumerate(entries) if entry.kind == "A")
    places = sorted(chance.randrange(first + 1, len(entries) + 1) for _ in range(count))
    flushed, pending, said, commit, done = bytearray(), list[Entry](), "", 0, 0
    for place in places:
        for entry in entries[done:place]:
            if entry.kind == "A":
                said += entry.data.decode()
                continue
            if entry.kind == "S":
                for one in pending:
                    _put(flushed, one.offset, one.data)
                pending = []
                continue
            pending.append(entry)
            if entry.offset < 2 * PAGE and entry.offset % PAGE and len(entry.data) < PAGE:
                # A part of a meta page; what LMDB writes of it ends with the number of the commit.
                commit = int.from_bytes(entry.data[-8:], "little")
        done = place
        image = bytearray(flushed)
        for one in pending:
            for start in range(0, len(one.data), PAGE):
                if one.kind == "D" or chance.random() < 0.5:
                    _put(image, one.offset + start, one.data[start : start + PAGE])
        yield Cut(bytes(image), said.splitlines(), commit)


def _put(file: bytearray, offset: int, data: bytes) -> None:
    if len(file) < offset:
        file.extend(bytes(offset - len(file)))
    file[offset : offset + len(data)] = data
