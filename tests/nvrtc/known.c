// Known: what came of kernels that were compiled before.  FOLDER/all.ARCH has a
// line for each distinct kernel: a hash of all that its machine code follows
// from, registers, bytes of shared memory, and which it is.  Only kernels that
// it has not are compiled again.
#include "tests/nvrtc/nvrtc.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

static bool is_listed(const Kernels *all, int i) {
    return all->kernel[i].twin == i && is_meant(all, &all->kernel[i]);
}

static void hash_file(XXH3_state_t *hash, const char *folder,
                      const char *name) {
    char path[4096];
    snprintf(path, sizeof path, "%s/runtime/prelude/%s", folder, name);
    char *text = file_read(path);
    XXH3_64bits_update(hash, text, strlen(text));
    free(text);
}

static void hash_options(XXH3_state_t *hash) {
    static const char *const option[] = {
#define OPTION(text) text,
#include "runtime/cuda/nvrtc.def"
    };
    for (size_t i = 0; i < sizeof option / sizeof option[0]; i++)
        XXH3_64bits_update(hash, option[i], strlen(option[i]) + 1);
}

static void hash_key(XXH3_state_t *hash, const Kernel *k) {
    XXH3_64bits_update(hash, k->key, strlen(k->key) + 1);
}

static void hashes_find(Kernels *all, const char *include) {
    XXH3_state_t prelude;
    XXH3_64bits_reset(&prelude);
    hash_file(&prelude, include, "prelude.h");
    hash_file(&prelude, include, "cuda.h");
    hash_file(&prelude, include, "block.h");
    hash_options(&prelude);
    for (int i = 0; i < all->num_kernels; i++) {
        Kernel *k = &all->kernel[i];
        XXH3_state_t own = prelude;
        hash_key(&own, k);
        for (int m = 0; m < k->num_members; m++)
            hash_key(&own, &all->kernel[k->member[m]]);
        k->hash = XXH3_64bits_digest(&own);
    }
}

static void line_take(Kernels *all, const char *line) {
    uint64_t hash;
    int registers, shared;
    if (sscanf(line, "%" SCNx64 " %d %d", &hash, &registers, &shared) != 3)
        return;
    for (int i = 0; i < all->num_kernels; i++) {
        Kernel *k = &all->kernel[i];
        if (k->hash != hash || !is_listed(all, i))
            continue;
        k->registers = registers;
        k->shared = shared;
        k->known = getenv("NVRTC_ALL") == NULL;
    }
}

static void path_make(char *path, size_t size, const Kernels *all,
                      const char *arch, const char *folder) {
    snprintf(path, size, "%s/all.%s%s", folder, all->joined ? "joined." : "",
             arch);
}

void known_read(Kernels *all, const char *include, const char *arch,
                const char *folder) {
    char path[4096], line[512];
    path_make(path, sizeof path, all, arch, folder);
    hashes_find(all, include);
    FILE *f = fopen(path, "r");
    if (f == NULL || !report_fits(path)) {
        if (f != NULL)
            fclose(f);
        return;
    }
    while (fgets(line, sizeof line, f) != NULL)
        line_take(all, line);
    fclose(f);
}

int known_compare(const Kernels *all, const char *arch, const char *folder) {
    char path[4096], *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    if (f == NULL)
        abort();
    report_head(f);
    fprintf(f,
            "# %s: hash, registers, bytes of shared memory.  Nothing "
            "spills.\n",
            arch);
    for (int i = 0; i < all->num_kernels; i++) {
        const Kernel *k = &all->kernel[i];
        if (is_listed(all, i))
            fprintf(f, "%016" PRIx64 " %d %d %s.%s\n", k->hash, k->registers,
                    k->shared, k->model->name, k->name);
    }
    fclose(f);
    path_make(path, sizeof path, all, arch, folder);
    int differs = report_differs(path, text);
    free(text);
    return differs;
}
