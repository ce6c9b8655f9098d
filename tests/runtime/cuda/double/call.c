// Calls: their lock, their log and planned faults.
#define _GNU_SOURCE
#include "tests/runtime/cuda/double/double.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_PLANNED = 64, MAX_NAME = 64 };

// One fault of SINTER_DOUBLE_FAIL.
typedef struct {
    char function[MAX_NAME];
    long left; // calls until it, this one included
    int error;
} Planned;

static struct {
    bool ready;
    Planned planned[MAX_PLANNED];
    int num_planned;
    FILE *log;
} calls;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t noting = PTHREAD_MUTEX_INITIALIZER;

void complain(const char *format, ...) {
    va_list list;
    va_start(list, format);
    fputs("double: ", stderr);
    vfprintf(stderr, format, list);
    fputc('\n', stderr);
    va_end(list);
    abort();
}

void *take(size_t bytes) {
    void *p = calloc(1, bytes ? bytes : 1);
    if (p == NULL)
        complain("out of the machine's own memory");
    return p;
}

long setting_number(const char *name, long otherwise) {
    const char *value = getenv(name);
    char *end;
    if (value == NULL || value[0] == '\0')
        return otherwise;
    long number = strtol(value, &end, 0);
    if (*end != '\0')
        complain("%s=%s is not a number", name, value);
    return number;
}

static void plan_read(const char *from) {
    while (*from != '\0') {
        Planned *p = &calls.planned[calls.num_planned];
        int length = 0;
        if (calls.num_planned == MAX_PLANNED ||
            sscanf(from, "%63[^:,]:%ld:%d%n", p->function, &p->left, &p->error,
                   &length) != 3)
            complain("SINTER_DOUBLE_FAIL: no FUNCTION:NUMBER:ERROR: %s", from);
        calls.num_planned++;
        from += length;
        from += *from == ',';
    }
}

static void calls_prepare(void) {
    const char *fail = getenv("SINTER_DOUBLE_FAIL");
    const char *log = getenv("SINTER_DOUBLE_LOG");
    if (calls.ready)
        return;
    calls.ready = true;
    if (fail != NULL)
        plan_read(fail);
    if (log != NULL && (calls.log = fopen(log, "a")) == NULL)
        complain("cannot write %s", log);
}

// Every fault counts, also one that comes after another.
static int planned_next(const char *function, bool any) {
    int error = 0;
    for (int i = 0; i < calls.num_planned; i++) {
        Planned *p = &calls.planned[i];
        bool meant = strcmp(p->function, function) == 0 ||
                     (any && strcmp(p->function, "*") == 0);
        if (meant && --p->left == 0 && error == 0)
            error = p->error;
    }
    return error;
}

int fault_next(const char *function) {
    pthread_mutex_lock(&noting);
    calls_prepare();
    int error = planned_next(function, false);
    pthread_mutex_unlock(&noting);
    return error;
}

static int call_note(const char *function, const char *format, va_list list) {
    pthread_mutex_lock(&noting);
    calls_prepare();
    int error = planned_next(function, true);
    if (calls.log != NULL) {
        fprintf(calls.log, "%d %s ", (int)gettid(), function);
        vfprintf(calls.log, format, list);
        if (error != 0)
            fprintf(calls.log, " fails: %d", error);
        fputc('\n', calls.log);
        fflush(calls.log);
    }
    pthread_mutex_unlock(&noting);
    return error;
}

static bool of_driver(const char *function) {
    return strncmp(function, "cu", 2) == 0 && function[2] >= 'A' &&
           function[2] <= 'Z';
}

Call call_begin(const char *function, const char *format, ...) {
    va_list list;
    va_start(list, format);
    Call call = {call_note(function, format, list)};
    va_end(list);
    pthread_mutex_lock(&lock);
    if (of_driver(function) && error_loses_device(call.fault))
        device_lose(call.fault);
    return call;
}

void call_end(const Call *call) {
    (void)call;
    pthread_mutex_unlock(&lock);
}
