/* A wall clock and randomness that a replay repeats, for any program that is linked with a C library: loaded by
 * LD_PRELOAD; the variables and the files are those of `../python/playhead_preload`.
 *
 * 1. The wall clock alone: monotonic clocks, sleeps and timers stay real, unless sleeps are declared short.
 * 2. A context is a process, a thread and the object (program or library) that calls; threads are numbered as they are
 *    made. The files of a process are named with `.c` behind its context: its interpreter may have a preload of its own.
 * 3. Randomness is never drawn by key for what may speak TLS or make keys: see `may_be_drawn`.
 * 4. Whatever cannot be done, the program goes on with the real clock. No descriptor stays open, nothing is allocated
 *    but for a thread's start, and a signal may come at any time.
 * 5. Nothing of a C library's version is asked for at link time, so one file serves glibc, old and new, and musl.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define OURS __attribute__((visibility("default")))
#define NANO 1000000000LL
#define STEP_NS 1000
#define SLEEP_FACTOR 1000
#define PIECE_RECORDS 16384 /* a multiple of any page in bytes */
#define RECORD_BYTES 12
#define PIECE_BYTES (PIECE_RECORDS * RECORD_BYTES)
#define FIRST_RECORDS 1024 /* that most programs do with: room for them alone is taken first */
#define MOST_PIECES 256
#define SCAN_BYTES (16 << 20)
#define OBJECTS 64
#define CONTEXT_BYTES 180 /* of a process: a journal's name has 200 at most, with what is put behind it */
#define MOST_CONTEXTS 12 /* of a thread */
#define PATH_BYTES 1024 /* clock reads may come from handlers of signals, whose stacks are small */
#define NAME_BYTES 256
#define MOST_GIVEN 12
#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18 /* Linux 4.14 */
#endif
#define CLOCK_REAL 0x706c6179 /* real time whatever is told: for the interpreters' own preloads, which keep a journal */

extern char **environ;
/* A C library may lack these. */
extern void *dlvsym(void *, const char *, const char *) __attribute__((weak));
extern int dladdr(const void *, Dl_info *) __attribute__((weak));

enum { OFF, WRITE, READ };

static struct {
    int clock, seeded, hosted, short_sleeps;
    pid_t pid;
    char notes[PATH_BYTES], tape[PATH_BYTES];
    char context[NAME_BYTES];  /* as children are given it */
    char name[NAME_BYTES];  /* of our files */
    char library[PATH_BYTES];
    uint8_t seed[32];
    int64_t start_ns;
    char *piece[MOST_PIECES]; /* of the journal that is written */
    uint32_t room[MOST_PIECES]; /* in records, as far as the disk has it */
    uint32_t records, contexts, threads, children, full;
    int64_t last_ns; /* told last, to whichever thread */
    const char *journal; /* that is read */
    size_t journal_bytes;
    const char *given[MOST_GIVEN + 1]; /* our variables, for children that are given others */
} our;

struct context {
    const void *object;
    const char *values; /* of the journal that is read */
    uint32_t left, number;
    int exhausted, real;
};

static int *settled; /* 0 in a process that was made from ours and has not begun; NULL where the kernel cannot tell */
static __thread const char *forked_context; /* of the child that is being made by `fork` */

static __thread struct {
    uint32_t number; /* 0: the first thread */
    uint32_t many;
    int64_t last_ns; /* told last */
    uint64_t drawn;
    const void *caller; /* the last one, and its context */
    struct context *context;
    struct context contexts[MOST_CONTEXTS];
} mine __attribute__((tls_model("initial-exec")));

/* The C library's own functions. */

static void *next(const char *name) { return dlsym(RTLD_NEXT, name); }

#define NEXT(name) \
    static __typeof__(name) *real; \
    if (!real) real = (__typeof__(name) *)next(#name)

static int64_t in_ns(const struct timespec *at) { return at->tv_sec * NANO + at->tv_nsec; }

static struct timespec as_timespec(int64_t ns) {
    struct timespec at = {.tv_sec = ns / NANO, .tv_nsec = ns % NANO};
    return at;
}

static int (*real_clock)(clockid_t, struct timespec *);

static int64_t real_ns(void) {
    struct timespec at = {0, 0};
    if (!real_clock || real_clock(CLOCK_REALTIME, &at)) syscall(SYS_clock_gettime, CLOCK_REALTIME, &at);
    return in_ns(&at);
}

/* Texts: without the C library's formatting, which is neither quick nor safe in signals. */

static char *put(char *to, char *end, const char *text) {
    while (*text && to < end - 1) *to++ = *text++;
    *to = 0;
    return to;
}

static char *put_number(char *to, char *end, uint64_t number) {
    char digits[24], *at = digits + sizeof digits;
    *--at = 0;
    do *--at = '0' + number % 10; while (number /= 10);
    return put(to, end, at);
}

/* FNV-1a. */
static uint64_t digested(const char *text) {
    uint64_t made = 0xcbf29ce484222325;
    for (; *text; text++) made = (made ^ (uint8_t)*text) * 0x100000001b3;
    return made;
}

static const char *variable(char *const *from, const char *name) {
    size_t length = strlen(name);
    for (; from && *from; from++)
        if (!strncmp(*from, name, length) && (*from)[length] == '=') return *from + length + 1;
    return NULL;
}

static const char *base(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Notes: lines of words, one write each. */

static void path_of(char *to, const char *folder, const char *ending) {
    char *end = to + PATH_BYTES;
    put(put(put(put(to, end, folder), end, "/"), end, our.name), end, ending);
}

static void write_note(const char *word, const char *first, const char *second) {
    char path[PATH_BYTES], line[NAME_BYTES * 3], *end = line + sizeof line - 1, *at = line;
    int saved = errno;
    path_of(path, our.notes, ".notes");
    at = put(at, end, word);
    const char *words[] = {first, second};
    for (int which = 0; which < 2; which++) {
        if (!words[which]) continue;
        at = put(at, end, "\t");
        for (const char *from = words[which]; *from && at < end - 5; from++) {
            unsigned char one = *from;
            if (one > 31 && one < 127 && one != '\\') { *at++ = one; continue; }
            at = put(at, end, "\\x");
            *at++ = "0123456789abcdef"[one >> 4];
            *at++ = "0123456789abcdef"[one & 15];
        }
        *at = 0;
    }
    *at++ = '\n';
    int descriptor = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_APPEND | O_CLOEXEC, 0);
    if (descriptor >= 0) {
        if (syscall(SYS_write, descriptor, line, at - line) < 0) { /* then it is missing from the receipt */ }
        syscall(SYS_close, descriptor);
    }
    errno = saved;
}

/* Take a name that nobody else has; 0 where there is no place for notes. */
static int claim(void) {
    char path[PATH_BYTES];
    for (uint32_t number = 0; number < 100000; number++) {
        char *end = our.name + NAME_BYTES, *at = put(put(our.name, end, our.context), end, ".c");
        if (number) put_number(put(at, end, "+"), end, number);
        path_of(path, our.notes, ".notes");
        int descriptor = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (descriptor >= 0) {
            syscall(SYS_close, descriptor);
            return 1;
        }
        if (errno != EEXIST) return 0;
    }
    return 0;
}

static const char *map(const char *path, size_t most, size_t *size) {
    const char *found = NULL;
    int descriptor = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
    if (descriptor < 0) return NULL;
    const off_t length = lseek(descriptor, 0, SEEK_END);
    if (length > 0 && (size_t)length <= most) {
        *size = length;
        found = mmap(NULL, *size, PROT_READ, MAP_PRIVATE, descriptor, 0);
        if (found == MAP_FAILED) found = NULL;
    }
    syscall(SYS_close, descriptor);
    return found;
}

/* Begin in this process: at its start, and in the child of a fork. */
static void begin(void) {
    char path[PATH_BYTES], program[NAME_BYTES];
    if (settled) *settled = 1;
    our.pid = getpid();
    our.records = our.contexts = our.threads = our.children = our.full = 0;
    our.journal = NULL;
    memset(our.piece, 0, sizeof our.piece);
    memset(our.room, 0, sizeof our.room);
    memset(&mine, 0, sizeof mine);
    if (!claim()) {
        our.clock = OFF;
        our.seeded = our.short_sleeps = 0;
        return;
    }
    int length = readlink("/proc/self/exe", path, sizeof path - 1);
    path[length > 0 ? length : 0] = 0;
    put(program, program + sizeof program, base(path));
    write_note("process", "libc", program);
    if (our.hosted) write_note("hosted", NULL, NULL);
    if (our.clock == READ) {
        path_of(path, our.tape, ".journal");
        our.journal = map(path, (size_t)1 << 30, &our.journal_bytes);
    }
}

/* Make the context of a child. */
static void child_context(char context[NAME_BYTES], const char *kind) {
    char *end = context + NAME_BYTES;
    const uint32_t number = __atomic_add_fetch(&our.children, 1, __ATOMIC_RELAXED);
    put_number(put(put(context, end, our.context), end, kind), end, number);
    if (strlen(context) > CONTEXT_BYTES) {
        const uint64_t digest = digested(context);
        put_number(put(context, end, "0.c-"), end, digest);
    }
}

/* Begin where this process was made without our `fork`: by `_Fork`, `daemon`, `forkpty` or the system call. Its memory is
 * its parent's copy, so only a page that the kernel empties says so; a vfork's is its parent's own, and is not emptied. */
static void settle(void) {
    if (!settled || *settled) return;
    char context[NAME_BYTES];
    if (forked_context)
        put(context, context + NAME_BYTES, forked_context);
    else
        child_context(context, ".r");
    put(our.context, our.context + NAME_BYTES, context);
    begin();
}

__attribute__((constructor)) static void start(void) {
    static const char *const names[] = {"PLAYHEAD_CLOCK", "PLAYHEAD_SEED", "PLAYHEAD_NOTES", "PLAYHEAD_TAPE",
        "PLAYHEAD_START", "PLAYHEAD_SLEEPS", "PLAYHEAD_NODE", "PLAYHEAD_PYTHON", "PLAYHEAD_LIBRARY",
        "PYTHONPATH", "PYTHONHASHSEED", "NODE_OPTIONS", NULL};
    int saved = errno;
    const char *notes = variable(environ, "PLAYHEAD_NOTES"), *tape = variable(environ, "PLAYHEAD_TAPE");
    const char *clock = variable(environ, "PLAYHEAD_CLOCK"), *seed = variable(environ, "PLAYHEAD_SEED");
    const char *context = variable(environ, "PLAYHEAD_LANE"), *begins = variable(environ, "PLAYHEAD_START");
    const char *sleeps = variable(environ, "PLAYHEAD_SLEEPS"), *library = variable(environ, "PLAYHEAD_LIBRARY");
    char program[PATH_BYTES];
    real_clock = (int (*)(clockid_t, struct timespec *))next("clock_gettime");
    int length = readlink("/proc/self/exe", program, sizeof program - 1);
    program[length > 0 ? length : 0] = 0;
    /* Node's own preload does all of it, and V8 reads the clock when it likes. */
    if (!notes || !tape || !library || !strcmp(base(program), "node")) { errno = saved; return; }
    if (strlen(notes) + NAME_BYTES + 16 > PATH_BYTES || strlen(tape) + NAME_BYTES + 16 > PATH_BYTES) { errno = saved; return; }
    static char kept[MOST_GIVEN][PATH_BYTES];
    int many = 0;
    for (int which = 0; names[which] && many < MOST_GIVEN; which++) {
        const char *value = variable(environ, names[which]);
        if (!value || strlen(value) + 32 > PATH_BYTES) continue;
        char *end = kept[many] + PATH_BYTES;
        put(put(put(kept[many], end, names[which]), end, "="), end, value);
        our.given[many] = kept[many];
        many++;
    }
    put(our.notes, our.notes + PATH_BYTES, notes);
    put(our.tape, our.tape + PATH_BYTES, tape);
    put(our.library, our.library + PATH_BYTES, library);
    put(our.context, our.context + NAME_BYTES, context ? context : "0");
    if (clock && !strcmp(clock, "write")) our.clock = WRITE;
    if (clock && !strcmp(clock, "read")) our.clock = READ;
    our.short_sleeps = sleeps && !strcmp(sleeps, "short");
    for (; begins && *begins >= '0' && *begins <= '9'; begins++) our.start_ns = our.start_ns * 10 + (*begins - '0');
    if (seed && strlen(seed) == 64) {
        our.seeded = 1;
        for (int at = 0; at < 64; at++) {
            const char one = seed[at];
            const uint8_t half = one >= 'a' ? one - 'a' + 10 : one - '0';
            our.seed[at / 2] = our.seed[at / 2] << 4 | half;
        }
    }
    void *page = mmap(NULL, sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page != MAP_FAILED && !madvise(page, sysconf(_SC_PAGESIZE), MADV_WIPEONFORK)) settled = page;
    begin();
    errno = saved;
}

/* The clock. */

/* Take room on the disk: a page that has none kills the program that writes it (SIGBUS). */
static int take_room(int descriptor, off_t begin, off_t length) {
    int failed;
    do failed = posix_fallocate(descriptor, begin, length); while (failed == EINTR);
    if (failed != EOPNOTSUPP && failed != ENOSYS) return !failed;
    /* A C library or a file system without it. */
    return lseek(descriptor, 0, SEEK_END) >= begin + length || !ftruncate(descriptor, begin + length);
}

/* Map a piece of the journal, with room for a record of it; NULL where that cannot be. Threads may do so at once. */
static char *map_piece(uint32_t which, uint32_t record) {
    const uint32_t records = !which && record < FIRST_RECORDS ? FIRST_RECORDS : PIECE_RECORDS;
    const off_t begin = (off_t)which * PIECE_BYTES;
    char path[PATH_BYTES], *piece = __atomic_load_n(&our.piece[which], __ATOMIC_ACQUIRE), *none = NULL;
    path_of(path, our.notes, ".looks");
    int descriptor = syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (descriptor < 0) return NULL;
    const int taken = take_room(descriptor, begin, (off_t)records * RECORD_BYTES);
    if (taken && !piece) {
        piece = mmap(NULL, PIECE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, begin);
        if (piece == MAP_FAILED) piece = NULL;
    }
    syscall(SYS_close, descriptor);
    if (!taken || !piece) return NULL;
    const int ours = __atomic_compare_exchange_n(&our.piece[which], &none, piece, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    if (!ours && none != piece) {
        munmap(piece, PIECE_BYTES);
        piece = none;
    }
    uint32_t room = __atomic_load_n(&our.room[which], __ATOMIC_RELAXED);
    while (room < records && !__atomic_compare_exchange_n(&our.room[which], &room, records, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {}
    return piece;
}

static void write_down(uint32_t context, int64_t at_ns) {
    uint32_t place = __atomic_fetch_add(&our.records, 1, __ATOMIC_RELAXED), which = place / PIECE_RECORDS;
    if (which >= MOST_PIECES || our.full) {
        if (!__atomic_exchange_n(&our.full, 1, __ATOMIC_RELAXED)) write_note("problem", "the journal is full", NULL);
        return;
    }
    const uint32_t number = place % PIECE_RECORDS;
    const int roomy = number < __atomic_load_n(&our.room[which], __ATOMIC_ACQUIRE);
    char *piece = roomy ? our.piece[which] : map_piece(which, number);
    if (!piece) {
        if (!__atomic_exchange_n(&our.full, 1, __ATOMIC_RELAXED)) write_note("problem", "the journal cannot be written", NULL);
        return;
    }
    char *record = piece + number * RECORD_BYTES;
    memcpy(record + 4, &at_ns, 8);
    memcpy(record, &context, 4);
}

/* Give the object that holds an address, by where it is loaded; NULL where nobody knows. */
static const void *object_of(const void *address, const char **path) {
    static const void *program;
    Dl_info about;
    if (!dladdr) return NULL;
    if (!program && dladdr((const void *)getauxval(AT_PHDR), &about)) program = about.dli_fbase;
    if (!dladdr(address, &about) || !about.dli_fname) return NULL;
    /* The program's own path is as it was called. */
    *path = about.dli_fbase == program ? "/proc/self/exe" : about.dli_fname;
    return about.dli_fbase;
}

static char *context_text(char *to, char *end, const char *path) {
    return put(put(put_number(put(to, end, "libc|"), end, mine.number), end, "|"), end, base(path));
}

/* Find what was written down in a context. */
static void find_values(struct context *context, const char *text) {
    const size_t length = strlen(text);
    for (size_t place = 0; our.journal && place + 8 <= our.journal_bytes;) {
        uint32_t name, many;
        memcpy(&name, our.journal + place, 4);
        memcpy(&many, our.journal + place + 4, 4);
        const size_t values = place + 8 + name, end = values + (size_t)many * 8;
        if (end > our.journal_bytes) return;
        if (name == length && !memcmp(our.journal + place + 8, text, length)) {
            context->values = our.journal + values;
            context->left = many;
            return;
        }
        place = end;
    }
}

static struct context *find_context(const void *caller) {
    settle();
    if (caller == mine.caller) return mine.context;
    const char *path = "unknown";
    const void *object = object_of(caller, &path);
    uint32_t which = 0;
    while (which < mine.many && mine.contexts[which].object != object) which++;
    if (which == MOST_CONTEXTS) which--; /* the others share one */
    struct context *context = &mine.contexts[which];
    if (which == mine.many) {
        char text[NAME_BYTES], number[24];
        context->object = object;
        context_text(text, text + sizeof text, path);
        /* gRPC's core reckons deadlines that it then waits for by itself; its Python side gives it real ones. */
        context->real = !strncmp(base(path), "cygrpc", 6);
        if (context->real) {
        } else if (our.clock == READ)
            find_values(context, text);
        else {
            context->number = __atomic_add_fetch(&our.contexts, 1, __ATOMIC_RELAXED);
            put_number(number, number + sizeof number, context->number);
            write_note("lane", number, text);
        }
        mine.many++;
    }
    mine.caller = caller;
    mine.context = context;
    return context;
}

static void note_exhausted(struct context *context, const void *caller) {
    char text[NAME_BYTES];
    const char *path = "unknown";
    object_of(caller, &path);
    context->exhausted = 1;
    /* An interpreter with a preload reads the clock on its own account only, as for how long to wait. */
    if (our.hosted && (!strcmp(path, "/proc/self/exe") || !strncmp(base(path), "libpython", 9))) return;
    context_text(text, text + sizeof text, path);
    write_note("exhausted", text, NULL);
}

static int64_t read_clock(const void *caller) {
    const int saved = errno;
    struct context *context = find_context(caller);
    int64_t now;
    if (context->real || !our.clock) return real_ns(); /* off where there is no place for notes any more */
    if (our.clock == WRITE) {
        now = real_ns();
        write_down(context->number, now);
    } else if (context->left) {
        memcpy(&now, context->values, 8);
        context->values += 8;
        context->left--;
    } else {
        if (!context->exhausted) note_exhausted(context, caller);
        now = (mine.last_ns ? mine.last_ns : our.start_ns) + STEP_NS;
    }
    mine.last_ns = now;
    __atomic_store_n(&our.last_ns, now, __ATOMIC_RELAXED);
    errno = saved;
    return now;
}

#define CALLER __builtin_return_address(0)

OURS int clock_gettime(clockid_t clock, struct timespec *at) {
    if (clock == CLOCK_REAL && our.name[0]) {
        if (!our.hosted) write_note("hosted", NULL, NULL);
        our.hosted = 1;
        *at = as_timespec(real_ns());
        return 0;
    }
    if (!our.clock || !at || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE))
        return real_clock ? real_clock(clock, at) : syscall(SYS_clock_gettime, clock, at);
    *at = as_timespec(read_clock(CALLER));
    return 0;
}

OURS int gettimeofday(struct timeval *restrict at, void *restrict zone) {
    if (!our.clock || !at) {
        NEXT(gettimeofday);
        return real(at, zone);
    }
    const int64_t now = read_clock(CALLER);
    if (zone) memset(zone, 0, sizeof(struct timezone));
    at->tv_sec = now / NANO;
    at->tv_usec = now % NANO / 1000;
    return 0;
}

OURS time_t time(time_t *at) {
    const time_t now = (our.clock ? read_clock(CALLER) : real_ns()) / NANO;
    if (at) *at = now;
    return now;
}

OURS int timespec_get(struct timespec *at, int which) {
    if (which != TIME_UTC) {
        NEXT(timespec_get);
        return real ? real(at, which) : 0;
    }
    *at = as_timespec(our.clock ? read_clock(CALLER) : real_ns());
    return which;
}

/* Deadlines that were reckoned from a told time are the kernel's again. One below 30 years is on another clock. */
static const struct timespec *back(const struct timespec *at, struct timespec *made, const void *caller) {
    const int64_t last_ns = mine.last_ns ? mine.last_ns : __atomic_load_n(&our.last_ns, __ATOMIC_RELAXED);
    if (our.clock != READ || !at || at->tv_sec < 946684800 || !last_ns) return at;
    if (find_context(caller)->real) return at; /* who is told the real time waits by it */
    *made = as_timespec(in_ns(at) - last_ns + real_ns());
    return made;
}

#define DEADLINE(name, first) \
    OURS int name(first *what, const struct timespec *at) { \
        NEXT(name); \
        struct timespec made; \
        return real(what, back(at, &made, CALLER)); \
    }
DEADLINE(sem_timedwait, sem_t)
DEADLINE(pthread_mutex_timedlock, pthread_mutex_t)
DEADLINE(pthread_rwlock_timedrdlock, pthread_rwlock_t)
DEADLINE(pthread_rwlock_timedwrlock, pthread_rwlock_t)

OURS int pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *at) {
    static __typeof__(pthread_cond_timedwait) *real;
    /* glibc keeps an older one by that name, which takes another structure. */
    if (!real && dlvsym) real = dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
    if (!real) real = next("pthread_cond_timedwait");
    struct timespec made;
    return real(cond, mutex, back(at, &made, CALLER));
}

OURS int pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock, const struct timespec *at) {
    NEXT(pthread_cond_clockwait);
    struct timespec made;
    if (!real) return EINVAL; /* an older C library has none */
    return real(cond, mutex, clock, clock == CLOCK_REALTIME ? back(at, &made, CALLER) : at);
}

/* Sleeps. */

static struct timespec shorter(const struct timespec *asked) { return as_timespec(in_ns(asked) / SLEEP_FACTOR); }

static int is_short(const struct timespec *asked) {
    return our.short_sleeps && !our.hosted && asked && asked->tv_sec >= 0 && asked->tv_nsec >= 0 && asked->tv_nsec < NANO;
}

OURS int nanosleep(const struct timespec *asked, struct timespec *left) {
    NEXT(nanosleep);
    if (!is_short(asked)) return real(asked, left);
    const struct timespec made = shorter(asked);
    return real(&made, left);
}

OURS int clock_nanosleep(clockid_t clock, int flags, const struct timespec *asked, struct timespec *left) {
    NEXT(clock_nanosleep);
    struct timespec made;
    if (flags & TIMER_ABSTIME) return real(clock, flags, clock == CLOCK_REALTIME ? back(asked, &made, CALLER) : asked, left);
    if (!is_short(asked)) return real(clock, flags, asked, left);
    made = shorter(asked);
    return real(clock, flags, &made, left);
}

OURS unsigned sleep(unsigned seconds) {
    const struct timespec asked = {.tv_sec = seconds};
    NEXT(sleep);
    return is_short(&asked) ? (unsigned)(nanosleep(&asked, NULL) ? seconds : 0) : real(seconds);
}

OURS int usleep(useconds_t micro) {
    const struct timespec asked = as_timespec(micro * 1000LL);
    return nanosleep(&asked, NULL);
}

/* Randomness: BLAKE2s (RFC 7693), keyed with the seed. */

static void blake2s(uint8_t made[32], const uint8_t *text, size_t length) {
    static const uint32_t iv[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    static const uint8_t sigma[10][16] = {
        {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
        {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4}, {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
        {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13}, {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
        {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11}, {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
        {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5}, {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0}};
    uint32_t h[8], v[16], m[16];
    uint8_t block[64] = {0};
    uint64_t counted = 0;
    memcpy(h, iv, sizeof h);
    h[0] ^= 0x01010000 ^ 32 << 8 ^ 32;
    memcpy(block, our.seed, 32);
    for (int last = 0, first = 1; !last; first = 0) {
        size_t part = 64;
        if (!first) {
            part = length < 64 ? length : 64;
            memset(block, 0, sizeof block);
            memcpy(block, text, part);
            text += part;
            length -= part;
        }
        last = !length;
        counted += part;
        memcpy(m, block, sizeof m);
        memcpy(v, h, sizeof h);
        memcpy(v + 8, iv, sizeof iv);
        v[12] ^= (uint32_t)counted;
        v[13] ^= counted >> 32;
        if (last) v[14] = ~v[14];
#define ROTATED(x, n) ((x) >> (n) | (x) << (32 - (n)))
#define MIXED(a, b, c, d, x, y) \
        v[a] += v[b] + (x); v[d] = ROTATED(v[d] ^ v[a], 16); v[c] += v[d]; v[b] = ROTATED(v[b] ^ v[c], 12); \
        v[a] += v[b] + (y); v[d] = ROTATED(v[d] ^ v[a], 8); v[c] += v[d]; v[b] = ROTATED(v[b] ^ v[c], 7);
        for (int round = 0; round < 10; round++) {
            const uint8_t *s = sigma[round];
            MIXED(0, 4, 8, 12, m[s[0]], m[s[1]]) MIXED(1, 5, 9, 13, m[s[2]], m[s[3]])
            MIXED(2, 6, 10, 14, m[s[4]], m[s[5]]) MIXED(3, 7, 11, 15, m[s[6]], m[s[7]])
            MIXED(0, 5, 10, 15, m[s[8]], m[s[9]]) MIXED(1, 6, 11, 12, m[s[10]], m[s[11]])
            MIXED(2, 7, 8, 13, m[s[12]], m[s[13]]) MIXED(3, 4, 9, 14, m[s[14]], m[s[15]])
        }
        for (int at = 0; at < 8; at++) h[at] ^= v[at] ^ v[at + 8];
    }
    memcpy(made, h, 32);
}

static void draw(uint8_t *to, size_t length, const char *object) {
    char text[NAME_BYTES * 3], *end = text + sizeof text, *at;
    uint8_t made[32];
    mine.drawn++;
    at = context_text(put(put(text, end, our.name), end, "|"), end, object);
    at = put_number(put(at, end, "|"), end, mine.drawn);
    for (uint64_t block = 0; length; block++) {
        char *stop = put_number(put(at, end, "|"), end, block);
        const size_t part = length < sizeof made ? length : sizeof made;
        blake2s(made, (const uint8_t *)text, stop - text);
        memcpy(to, made, part);
        to += part;
        length -= part;
    }
}

/* Say whether randomness for an object may be drawn by key: one that can hold no TLS. What every TLS holds (the labels of
 * its key derivation, RFC 8446 section 7.1 and RFC 5246 section 8.1) stands in none that passes, nor do the names of libraries that
 * make keys; what is large is not read, and does not pass. What does not pass by what it holds is told of. */
enum { REAL, TOLD, DRAWN };

static int may_be_drawn(const char *path) {
    static const char *const makers[] = {"libcrypto", "libssl", "libgnutls", "libnettle", "libhogweed", "libgcrypt", "libmbed",
        "libwolfssl", "libnss", "libfreebl", "libsoftokn", "libsodium", "libssh", "libk5crypto", "libkrb5", "libbotan",
        "libs2n", "libtls", "libtss2", "libp11", "libgpg", NULL};
    static const char *const marks[] = {"tls13 ", "master secret", "key expansion", "OpenSSL", "BoringSSL", "rustls",
        "GnuTLS", "25519", NULL};
    for (int which = 0; makers[which]; which++)
        if (!strncmp(base(path), makers[which], strlen(makers[which]))) return REAL;
    size_t size;
    const char *data = map(path, SCAN_BYTES, &size);
    if (!data) return TOLD;
    int passes = 1;
    for (int which = 0; passes && marks[which]; which++)
        passes = !memmem(data, size, marks[which], strlen(marks[which]));
    munmap((void *)data, size);
    return passes ? DRAWN : TOLD;
}

/* Give the path of the object that asks, where randomness may be drawn for it. */
static const char *asking(const void *caller) {
    static struct { const void *object; uint64_t name; int rule; } known[OBJECTS];
    static int busy;
    const char *path;
    settle();
    const void *object = our.seeded ? object_of(caller, &path) : NULL;
    if (!object) return NULL;
    /* By its name, too: what is loaded next where another library was may make keys. */
    const uint64_t name = digested(path);
    for (int which = 0; which < OBJECTS; which++) {
        const void *found = __atomic_load_n(&known[which].object, __ATOMIC_ACQUIRE);
        if (found == object && known[which].name == name) return known[which].rule == DRAWN ? path : NULL;
        if (found) continue;
        const int rule = may_be_drawn(path);
        if (!__atomic_exchange_n(&busy, 1, __ATOMIC_ACQUIRE)) {
            if (!known[which].object) {
                known[which].rule = rule;
                known[which].name = name;
                if (rule == TOLD && !our.hosted) write_note("kernel", base(path), NULL);
                __atomic_store_n(&known[which].object, object, __ATOMIC_RELEASE);
            }
            __atomic_store_n(&busy, 0, __ATOMIC_RELEASE);
        }
        return rule == DRAWN ? path : NULL;
    }
    return NULL;
}

OURS ssize_t getrandom(void *to, size_t length, unsigned flags) {
    const char *object = asking(CALLER);
    if (!object || !to) return syscall(SYS_getrandom, to, length, flags);
    draw(to, length, object);
    return length;
}

OURS int getentropy(void *to, size_t length) {
    const char *object = asking(CALLER);
    if (!object || length > 256) {
        NEXT(getentropy);
        if (real) return real(to, length);
        errno = ENOSYS; /* an older C library has none */
        return -1;
    }
    draw(to, length, object);
    return 0;
}

#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 36)
OURS void arc4random_buf(void *to, size_t length) {
    const char *object = asking(CALLER);
    if (object) { draw(to, length, object); return; }
    NEXT(arc4random_buf);
    real(to, length);
}

OURS uint32_t arc4random(void) {
    const char *object = asking(CALLER);
    uint32_t made;
    NEXT(arc4random);
    if (!object) return real();
    draw((uint8_t *)&made, sizeof made, object);
    return made;
}

OURS uint32_t arc4random_uniform(uint32_t below) {
    const char *object = asking(CALLER);
    uint64_t made;
    NEXT(arc4random_uniform);
    if (!object || below < 2) return real(below);
    draw((uint8_t *)&made, sizeof made, object);
    return made % below; /* of 64 bits: even enough */
}
#endif

/* Threads and processes. */

struct beginning {
    void *(*function)(void *);
    void *argument;
    uint32_t number;
};

static void *begin_thread(void *given) {
    const struct beginning made = *(struct beginning *)given;
    free(given);
    mine.number = made.number;
    return made.function(made.argument);
}

OURS int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*function)(void *), void *argument) {
    NEXT(pthread_create);
    settle();
    struct beginning *given = our.name[0] ? malloc(sizeof *given) : NULL;
    if (!given) return real(thread, attributes, function, argument);
    given->function = function;
    given->argument = argument;
    given->number = __atomic_add_fetch(&our.threads, 1, __ATOMIC_RELAXED);
    int failed = real(thread, attributes, begin_thread, given);
    if (failed) free(given);
    return failed;
}

OURS pid_t fork(void) {
    char context[NAME_BYTES];
    NEXT(fork);
    if (!our.name[0]) return real();
    settle();
    child_context(context, ".f");
    forked_context = context;
    const pid_t child = real();
    if (!child && !settled) {
        put(our.context, our.context + NAME_BYTES, context);
        begin();
    } else if (!child)
        settle(); /* unless a handler of the fork read the clock */
    forked_context = NULL;
    return child;
}

/* The variables of a child: those given, and ours. */
struct given {
    char context[NAME_BYTES + 16], preload[2 * PATH_BYTES];
};

#define MOST_VARIABLES 16384

static size_t count(char *const *variables) {
    size_t many = 0;
    while (variables && variables[many]) many++;
    return many;
}

/* Fill `to`, which has room for 16 more than are given. */
static char **ours_too(char **to, struct given *made, char *const *from, const char *program, const char *word) {
    char context[NAME_BYTES], **at = to;
    const int saved = errno;
    settle();
    child_context(context, ".");
    /* Shells try one folder after the other. */
    if (!strchr(program, '/') || !access(program, X_OK)) write_note(word, context, base(program));
    errno = saved;
    put(put(made->context, made->context + sizeof made->context, "PLAYHEAD_LANE="), made->context + sizeof made->context, context);
    const char *preload = variable(from, "LD_PRELOAD");
    char *end = made->preload + sizeof made->preload, *stop = put(made->preload, end, "LD_PRELOAD=");
    if (!preload || !strstr(preload, our.library)) {
        stop = put(stop, end, our.library);
        if (preload && *preload) put(put(stop, end, ":"), end, preload);
    } else
        put(stop, end, preload);
    for (; from && *from; from++)
        if (strncmp(*from, "PLAYHEAD_LANE=", 14) && strncmp(*from, "LD_PRELOAD=", 11)) *at++ = *from;
    *at = NULL;
    char **given_end = at;
    for (const char **one = our.given; *one; one++) {
        char name[32];
        size_t length = strchr(*one, '=') - *one;
        if (length >= sizeof name) continue;
        memcpy(name, *one, length);
        name[length] = 0;
        *given_end = NULL;
        if (!variable(to, name)) *at++ = (char *)*one, given_end = at;
    }
    *at++ = made->context;
    *at++ = made->preload;
    *at = NULL;
    return to;
}

/* A process is replaced by what it executes, unless it is a vfork, whose memory is its parent's. */
#define EXECUTED (settle(), getpid() == our.pid ? "became" : "child")

#define WITH_OURS(from, program, word) \
    const size_t many = count(from); \
    const int changed = our.name[0] && !our.hosted && many < MOST_VARIABLES; \
    char *room[changed ? many + 20 : 1]; \
    struct given made; \
    char *const *variables = changed ? ours_too(room, &made, from, program, word) : from

OURS int execve(const char *path, char *const arguments[], char *const given[]) {
    NEXT(execve);
    WITH_OURS(given, path, EXECUTED);
    return real(path, arguments, variables);
}

OURS int execv(const char *path, char *const arguments[]) { return execve(path, arguments, environ); }

OURS int execvpe(const char *file, char *const arguments[], char *const given[]) {
    NEXT(execvpe);
    WITH_OURS(given, file, EXECUTED);
    return real(file, arguments, variables);
}

OURS int execvp(const char *file, char *const arguments[]) { return execvpe(file, arguments, environ); }

#define SPAWN(name) \
    OURS int name(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attributes, \
                  char *const arguments[], char *const given[]) { \
        NEXT(name); \
        WITH_OURS(given ? given : environ, path, "child"); \
        return real(pid, path, actions, attributes, arguments, variables); \
    }
SPAWN(posix_spawn)
SPAWN(posix_spawnp)
