/* Looks at the clock and draws lots, as the first argument says. */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LOOKS 400 /* of four threads: more than the journal has room for at first */

#ifdef SPEAKS_TLS
const char *label = "tls13 derived";
#endif

static void look(void) {
    struct timespec at;
    struct timeval micro;
    clock_gettime(CLOCK_REALTIME, &at);
    gettimeofday(&micro, NULL);
    printf("%lld.%09ld %lld.%06ld %lld\n", (long long)at.tv_sec, at.tv_nsec, (long long)micro.tv_sec, (long)micro.tv_usec,
           (long long)time(NULL));
}

static void *look_often(void *to) {
    struct timespec at;
    for (int64_t which = 0; which < LOOKS; which++) {
        clock_gettime(CLOCK_REALTIME, &at);
        ((int64_t *)to)[which] = at.tv_sec * 1000000000LL + at.tv_nsec;
    }
    return NULL;
}

int main(int count, char **words) {
    const char *what = count > 1 ? words[1] : "look";
    if (!strcmp(what, "look")) {
        look();
        fflush(stdout);
        if (!fork()) {
            look();
            return 0;
        }
        wait(NULL);
    } else if (!strcmp(what, "clone")) {
        /* Processes that no function of the C library makes, one after the other, the second by the first. */
        for (int which = 0; which < 3; which++) {
            uint64_t drawn = 0;
            look();
            if (getrandom(&drawn, sizeof drawn, 0) < 0) return 1;
            printf("%llx\n", (unsigned long long)drawn);
            fflush(stdout);
            if (which < 2 && syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)) {
                wait(NULL);
                look();
                break;
            }
        }
    } else if (!strcmp(what, "threads")) {
        pthread_t threads[4];
        int64_t found[4][LOOKS];
        for (int which = 0; which < 4; which++) pthread_create(&threads[which], NULL, look_often, found[which]);
        for (int which = 0; which < 4; which++) pthread_join(threads[which], NULL);
        for (int which = 0; which < 4; which++)
            for (int look = 0; look < LOOKS; look++) printf("%lld\n", (long long)found[which][look]);
    } else if (!strcmp(what, "wait")) {
        /* A deadline in 50 ms of the clock that was told; waited for on the kernel's. */
        struct timespec at, before, after;
        sem_t never;
        sem_init(&never, 0, 0);
        clock_gettime(CLOCK_MONOTONIC, &before);
        clock_gettime(CLOCK_REALTIME, &at);
        at.tv_nsec += 50000000;
        if (at.tv_nsec >= 1000000000) at.tv_sec++, at.tv_nsec -= 1000000000;
        while (sem_timedwait(&never, &at) && errno == EINTR) {}
        clock_gettime(CLOCK_MONOTONIC, &after);
        printf("%.3f\n", after.tv_sec - before.tv_sec + (after.tv_nsec - before.tv_nsec) / 1e9);
    } else {
        uint64_t drawn = 0;
        if (getrandom(&drawn, sizeof drawn, 0) < 0) return 1;
        printf("%llx\n", (unsigned long long)drawn);
#ifdef SPEAKS_TLS
        return !label;
#endif
    }
    return 0;
}
