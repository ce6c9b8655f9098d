// Sizes as people write and read them.
#include "tools/tools.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    double bytes;
} units[] = {
    {"", 1},          {"B", 1},
    {"KiB", 1024},    {"MiB", 1024.0 * 1024},
    {"GiB", 1 << 30}, {"TiB", 1024.0 * (1 << 30)},
    {"kB", 1e3},      {"MB", 1e6},
    {"GB", 1e9},      {"TB", 1e12},
};

bool bytes_parse(const char *text, int64_t *bytes) {
    char *unit;
    if (strspn(text, "0123456789.") == 0)
        return false;
    double count = strtod(text, &unit);
    if (strspn(text, "0123456789.") != (size_t)(unit - text))
        return false;
    unit += strspn(unit, " ");
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        double all = count * units[i].bytes;
        if (strcmp(unit, units[i].name) != 0 || all < 1 || all > 0x1p62)
            continue;
        *bytes = (int64_t)floor(all);
        return true;
    }
    return false;
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
