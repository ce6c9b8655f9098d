// Quantities as people write and read them.
#include "tools/tools.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *name;
    double value;
} Unit;

// clang-format off
static const Unit of_bytes[] = {
    {"", 1},          {"B", 1},
    {"KiB", 1024},    {"MiB", 1024.0 * 1024},
    {"GiB", 1 << 30}, {"TiB", 1024.0 * (1 << 30)},
    {"kB", 1e3},      {"MB", 1e6},
    {"GB", 1e9},      {"TB", 1e12},
    {.name = NULL}};
// of bytes per second
static const Unit of_rate[] = {
    {"Mb", 1e6 / 8}, {"Gb", 1e9 / 8}, {"Tb", 1e12 / 8},
    {"MB", 1e6},     {"GB", 1e9},     {"TB", 1e12},
    {.name = NULL}};
static const Unit of_time[] = {
    {"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}, {.name = NULL}};
// clang-format on

static bool quantity_parse(const char *text, const Unit *unit, double *value) {
    char *end;
    if (strspn(text, "0123456789.") == 0)
        return false;
    *value = strtod(text, &end);
    if (strspn(text, "0123456789.") != (size_t)(end - text))
        return false;
    end += strspn(end, " ");
    while (unit->name != NULL && strcmp(unit->name, end) != 0)
        unit++;
    *value *= unit->value;
    return unit->name != NULL;
}

bool bytes_parse(const char *text, int64_t *bytes) {
    double all;
    if (!quantity_parse(text, of_bytes, &all) || all < 1 || all > 0x1p62)
        return false;
    *bytes = (int64_t)floor(all);
    return true;
}

bool rate_parse(const char *text, double *rate) {
    return quantity_parse(text, of_rate, rate) && *rate >= 1e3 && *rate <= 1e15;
}

bool time_parse(const char *text, double *seconds) {
    return quantity_parse(text, of_time, seconds) && *seconds >= 1e-9 &&
           *seconds <= 3600;
}

void seconds_add(Text *t, double seconds) {
    if (seconds < 1e-3)
        text_add(t, "%.3g us", 1e6 * seconds);
    else if (seconds < 1)
        text_add(t, "%.3g ms", 1e3 * seconds);
    else if (seconds < 120)
        text_add(t, "%.3g s", seconds);
    else
        text_add(t, "%.1f minutes", seconds / 60);
}

static Scaled scaled(double all, double step, const char *const *unit,
                     int last) {
    int i = 0;
    for (all /= step; all >= step && i < last; i++)
        all /= step;
    return (Scaled){all, unit[i]};
}

Scaled bytes_scaled(int64_t bytes) {
    static const char *const unit[] = {"KiB", "MiB"};
    return scaled((double)bytes, 1024, unit, 1);
}

Scaled flops_scaled(int64_t flops) {
    static const char *const unit[] = {"k", "M", "G"};
    return scaled((double)flops, 1000, unit, 2);
}
