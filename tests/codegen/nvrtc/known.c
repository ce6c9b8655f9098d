// Known: kernels that were compiled before without a fault.  A line of the file
// has a hash of all inputs of a kernel's machine code, its registers, bytes of
// shared memory, instructions, of which there are a few more or less with other
// kernels in the text, and bytes in flight.  Only kernels without a line are
// compiled.
#include "tests/codegen/nvrtc/nvrtc.h"

#include <inttypes.h>
#include <nvrtc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

static void hash_text(XXH3_state_t *hash, const char *text) {
    XXH3_64bits_update(hash, text, strlen(text) + 1);
}

static void hash_file(XXH3_state_t *hash, const char *folder,
                      const char *name) {
    char path[4096];
    snprintf(path, sizeof path, "%s/runtime/prelude/%s", folder, name);
    char *text = file_read(path);
    hash_text(hash, text);
    free(text);
}

static void hash_compiler(XXH3_state_t *hash, const char *arch) {
    static const char *const option[] = {
#define OPTION(text) text,
#include "runtime/cuda/kernels/nvrtc.def"
    };
    int version[2] = {0};
    nvrtcVersion(&version[0], &version[1]);
    XXH3_64bits_update(hash, version, sizeof version);
    hash_text(hash, arch);
    for (size_t i = 0; i < sizeof option / sizeof option[0]; i++)
        hash_text(hash, option[i]);
}

static void hashes_find(Kernels *all, const char *include, const char *arch) {
    XXH3_state_t common;
    XXH3_64bits_reset(&common);
    hash_compiler(&common, arch);
    hash_file(&common, include, "prelude.h");
    hash_file(&common, include, "cuda.h");
    hash_file(&common, include, "block.h");
    for (int i = 0; i < all->num_kernels; i++) {
        Kernel *k = &all->kernel[i];
        XXH3_state_t own = common;
        hash_text(&own, k->key);
        for (int m = 0; m < k->num_members; m++)
            hash_text(&own, all->kernel[k->member[m]].key);
        k->hash = XXH3_64bits_digest(&own);
    }
}

static void line_take(Kernels *all, const char *line) {
    uint64_t hash;
    int registers, shared, instructions, in_flight;
    if (sscanf(line, "%" SCNx64 " %d %d %d %d", &hash, &registers, &shared,
               &instructions, &in_flight) != 5)
        return;
    for (int i = 0; i < all->num_kernels; i++) {
        Kernel *k = &all->kernel[i];
        if (k->hash != hash)
            continue;
        k->known = true;
        k->registers = registers;
        k->shared = shared;
        k->instructions = instructions;
        k->in_flight = in_flight;
    }
}

void known_read(Kernels *all, const char *include, const char *arch,
                const char *path) {
    char line[256];
    hashes_find(all, include, arch);
    FILE *f = fopen(path, "r");
    while (f != NULL && fgets(line, sizeof line, f) != NULL)
        line_take(all, line);
    if (f != NULL)
        fclose(f);
}

void known_add(const Kernels *all, const char *path) {
    FILE *f = fopen(path, "a");
    for (int i = 0; i < all->num_kernels && f != NULL; i++) {
        const Kernel *k = &all->kernel[i];
        if (is_first(all, i) && !k->known && !k->faulty)
            fprintf(f, "%016" PRIx64 " %d %d %d %d\n", k->hash, k->registers,
                    k->shared, k->instructions, k->in_flight);
    }
    if (f == NULL || fclose(f) != 0) {
        perror(path);
        exit(EXIT_FAILURE);
    }
}
