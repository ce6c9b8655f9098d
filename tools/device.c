// Devices: built-in descriptions, and those in files.
#include "tools/device.h"

#include "base/exits.h"
#include "base/source.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

extern const unsigned char device_a100_text[], device_h100_text[],
    device_h200_text[], device_b200_text[], device_rtx4090_text[],
    device_t4_text[];

// clang-format off
static const struct {
    const char *name;
    const unsigned char *text;
} known[] = {
    {"h200",    device_h200_text},
    {"h100",    device_h100_text},
    {"a100",    device_a100_text},
    {"b200",    device_b200_text},
    {"rtx4090", device_rtx4090_text},
    {"t4",      device_t4_text},
};

// Keys whose values are numbers from 1 to MOST.
static const struct {
    const char *key, *what;
    size_t at;
} numbers[] = {
    {"multiProcessorCount",     "multiprocessors",
     offsetof(Device, multiprocessors)},
    {"totalGlobalMem",          "bytes of memory",
     offsetof(Device, memory)},
    {"l2CacheSize",             "bytes of L2 cache",
     offsetof(Device, cache)},
    {"bandwidthBytesPerSecond", "bytes of memory per second",
     offsetof(Device, bandwidth)},
    {"peakF16Flops",            "f16 operations per second",
     offsetof(Device, f16_flops)},
    {"peakF32Flops",            "f32 operations per second",
     offsetof(Device, f32_flops)},
};
// Keys of cuDNN's descriptions that may be missing, in what unit, and the
// values of an H100 in their place.
static const struct {
    const char *key;
    size_t at;
    double unit, value;
} options[] = {
    {"linkBytesPerSecond",           offsetof(Device, link),      1,    450e9},
    {"smClockRateKHz",               offsetof(Device, clock),     1000, 1980000},
    {"maxRegistersPerSM",            offsetof(Device, registers), 1,    65536},
    {"maxSharedMemoryPerBlockOptin", offsetof(Device, shared),    1,    232448},
    {"maxThreadsPerSM",              offsetof(Device, threads),   1,    2048},
    {"maxCtasPerSM",                 offsetof(Device, blocks),    1,    32},
};
// clang-format on

enum {
    NUM_OPTIONS = sizeof options / sizeof options[0],
    NUM_KNOWN = sizeof known / sizeof known[0],
    NUM_NUMBERS = sizeof numbers / sizeof numbers[0],
    MAX_BYTES = 1 << 20,
};
static const double MOST = 1e18; // bytes; fits into 64 bits

// Whether text is exactly one flat object: this refuses a truncated
// description.
static bool object_stands(const char *text) {
    bool quoted = false;
    const char *s = text + strspn(text, " \t\r\n");
    if (*s++ != '{')
        return false;
    for (; *s && (quoted || *s != '}'); s++) {
        if (*s == '{' && !quoted)
            return false;
        quoted ^= *s == '"';
    }
    return *s == '}' && s[1 + strspn(s + 1, " \t\r\n")] == 0;
}

// The start of a key's value in a flat object; NULL if it has no such key.
static const char *value_of(const char *text, const char *key) {
    size_t length = strlen(key);
    for (const char *s = text; (s = strchr(s, '"')) != NULL;) {
        const char *end = strchr(++s, '"');
        if (end == NULL)
            return NULL;
        const char *after = end + 1 + strspn(end + 1, " \t\r\n");
        if (*after == ':' && (size_t)(end - s) == length &&
            strncmp(s, key, length) == 0)
            return after + 1 + strspn(after + 1, " \t\r\n");
        s = end + 1;
    }
    return NULL;
}

static bool number_read(const char *text, const char *key, double *out) {
    const char *value = value_of(text, key);
    char *end = NULL;
    if (value == NULL || strspn(value, "0123456789") == 0)
        return false;
    *out = strtod(value, &end);
    return strspn(end, ", \t\r\n}") > 0;
}

// Whether these bytes need no escapes, in JSON or on a terminal.
static bool is_printable(const char *s, size_t length) {
    for (size_t i = 0, step; i < length; i += step) {
        unsigned char c = (unsigned char)s[i];
        step = utf8_length(s + i, length - i);
        if (c < ' ' || c == 0x7f || (c > 0x7f && step == 1))
            return false;
    }
    return true;
}

static const char *string_read(Arena *a, const char *text, const char *key) {
    const char *value = value_of(text, key);
    size_t length = value && *value == '"' ? strcspn(value + 1, "\"\\\n") : 0;
    return length && value[1 + length] == '"' && is_printable(value + 1, length)
               ? arena_string(a, value + 1, length)
               : NULL;
}

// Prints the key that a description lacks.
static bool lacks(const Arguments *arguments, const char *from, const char *key,
                  const char *what) {
    complain(arguments, "%s: no \"%s\", %s", from, key, what);
    return false;
}

static bool numbers_read(Arena *a, const Arguments *arguments, const char *from,
                         Device *out) {
    for (int i = 0; i < NUM_NUMBERS; i++) {
        double value;
        if (!number_read(out->text, numbers[i].key, &value) || value < 1 ||
            value > MOST)
            return lacks(arguments, from, numbers[i].key,
                         arena_format(a, "the number of %s, from 1 to 1e18",
                                      numbers[i].what));
        *(double *)((char *)out + numbers[i].at) = value;
    }
    return true;
}

void device_options(Device *d) {
    for (int i = 0; i < NUM_OPTIONS; i++) {
        double value = options[i].value;
        if (d->text != NULL)
            number_read(d->text, options[i].key, &value);
        *(double *)((char *)d + options[i].at) = value * options[i].unit;
    }
}

static bool description_read(Arena *a, const Arguments *arguments,
                             const char *from, const char *text, Device *out) {
    double version = 0;
    *out = (Device){.text = text};
    if (!object_stands(text)) {
        complain(arguments,
                 "%s: not a JSON object of names and values; "
                 "tools/devices/h200.json is an example",
                 from);
        return false;
    }
    out->name = string_read(a, text, "deviceName");
    if (!out->name)
        return lacks(arguments, from, "deviceName",
                     "a string; tools/devices/h200.json is an example");
    if (!number_read(text, "deviceVer", &version) || version < 100 ||
        version > 9990)
        return lacks(arguments, from, "deviceVer",
                     "the compute capability times 100 (900 for 9.0)");
    out->sm = (int)version / 10;
    const char *cooperative = value_of(text, "supportCoopLaunch");
    out->cooperative = cooperative == NULL || *cooperative != '0';
    device_options(out);
    return numbers_read(a, arguments, from, out);
}

// The text of a file; NULL, after a message, if it cannot be read.
static const char *file_read(Arena *a, const Arguments *arguments) {
    const char *path = arguments->device_file;
    const char *error = NULL;
    Source *s = source_read(a, path, MAX_BYTES, &error);
    if (s && memchr(s->text, 0, s->length))
        error = "it contains a zero byte, so it is not text";
    if (error)
        complain(arguments, "--device-file=%s: %s", path, error);
    return error ? NULL : s->text;
}

// Lists the devices, and --target for the word of a trainer's --device.
static void device_unknown(Arena *a, const Arguments *arguments,
                           const char *name, const char *nearest) {
    bool host = strcmp(name, "host") == 0 || strcmp(name, "cpu") == 0;
    bool cuda = strncmp(name, "cuda", 4) == 0 || strcmp(name, "gpu") == 0;
    Text t = text_new(a);
    for (int i = 0; i < NUM_KNOWN; i++)
        text_add(&t, "%s%s", i > 0 ? ", " : "", known[i].name);
    if (host || cuda)
        complain(arguments,
                 "--device names a described GPU, one of %s; for %s, "
                 "sinter check and sinter show plan take --target=%s",
                 text_string(&t), host ? "this processor" : "any GPU",
                 host ? "host" : "cuda");
    else if (nearest)
        complain(arguments, "no device '%s'; did you mean %s?", name, nearest);
    else
        complain(arguments,
                 "no device '%s'; there are %s, and --device-file=FILE reads "
                 "the description of another",
                 name, text_string(&t));
}

static const char *known_text(Arena *a, const Arguments *arguments,
                              const char *name) {
    Nearest near = nearest_to(name);
    for (int i = 0; i < NUM_KNOWN; i++) {
        if (strcmp(known[i].name, name) == 0)
            return (const char *)known[i].text;
        nearest_offer(&near, known[i].name);
    }
    device_unknown(a, arguments, name, near.best);
    return NULL;
}

bool device_find(Arena *a, const Arguments *arguments, Device *out,
                 int *status) {
    const char *file = arguments->device_file;
    if (file && arguments->device) {
        complain(arguments, "--device names a device, --device-file another: "
                            "give only one");
        *status = EXIT_USAGE;
        return false;
    }
    const char *name = arguments->device ? arguments->device : known[0].name;
    const char *text =
        file ? file_read(a, arguments) : known_text(a, arguments, name);
    *status = file && !text ? EXIT_IO : EXIT_USAGE;
    return text &&
           description_read(a, arguments, file ? file : name, text, out);
}

Device device_for(Arena *a, const Arguments *arguments, int capability) {
    Device best;
    int status;
    if (device_find(a, arguments, &best, &status) && best.sm == capability)
        return best;
    for (int i = 0, highest = 0; i < NUM_KNOWN; i++) {
        Device d;
        if (description_read(a, arguments, known[i].name,
                             (const char *)known[i].text, &d) &&
            d.sm > highest && (d.sm <= capability || highest == 0)) {
            best = d;
            highest = d.sm <= capability ? d.sm : 0;
        }
    }
    return best;
}

bool device_plan(Arena *a, Arguments *arguments, int *status) {
    Device *device = ARENA_NEW(a, Device);
    if (!arguments->device && !arguments->device_file)
        return true;
    if (!device_find(a, arguments, device, status))
        return false;
    arguments->multiprocessors =
        (int)fmin(device->multiprocessors, MAX_MULTIPROCESSORS);
    arguments->time_model = device_time_model(device);
    return true;
}
