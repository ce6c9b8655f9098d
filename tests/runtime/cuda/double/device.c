// The device, as a file describes it, and whether it still works.
#include "tests/runtime/cuda/double/double.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DESCRIPTION = 8192 };

static struct {
    char text[MAX_DESCRIPTION];
    char name[128];
    int lost;
} device;

static const char *description(void) {
    const char *path = getenv("SINTER_DOUBLE_DEVICE");
    if (device.text[0] != '\0')
        return device.text;
    path = path != NULL ? path : DOUBLE_SOURCE "/tools/devices/h200.json";
    FILE *f = fopen(path, "r");
    if (f == NULL || fread(device.text, 1, MAX_DESCRIPTION - 1, f) == 0)
        complain("cannot read %s", path);
    fclose(f);
    return device.text;
}

// The text behind a key.
static const char *value_of(const char *key) {
    char quoted[80];
    snprintf(quoted, sizeof quoted, "\"%s\":", key);
    const char *at = strstr(description(), quoted);
    if (at == NULL)
        complain("the device's description has no %s", quoted);
    return at + strlen(quoted);
}

long long device_number(const char *key) {
    const char *at = value_of(key);
    return strtoll(at + strspn(at, " ["), NULL, 10);
}

const char *device_name(void) {
    if (sscanf(value_of("deviceName"), " \"%127[^\"]", device.name) != 1)
        complain("the device has no name");
    return device.name;
}

int device_architecture(void) {
    return (int)(device_number("deviceVer") / 10);
}

int device_lost(void) {
    return device.lost;
}

void device_lose(int error) {
    if (device.lost == 0)
        device.lost = error;
}

bool error_loses_device(int error) {
    return error == CUDA_ERROR_ECC_UNCORRECTABLE ||
           error == CUDA_ERROR_NVLINK_UNCORRECTABLE ||
           error == CUDA_ERROR_CONTAINED ||
           error == CUDA_ERROR_ILLEGAL_ADDRESS ||
           error == CUDA_ERROR_LAUNCH_TIMEOUT || error == CUDA_ERROR_ASSERT ||
           (error >= CUDA_ERROR_HARDWARE_STACK_ERROR &&
            error <= CUDA_ERROR_LAUNCH_FAILED);
}
