// Known: what came of kernels that were compiled before.  FOLDER/all.ARCH has a
// line for each distinct kernel: a hash of all that its machine code follows
// from, registers, bytes of shared memory, and which it is.  Only kernels that
// it has not are compiled again.
//
// Where there are reports, a line has all that they tell: instructions too, of
// which there are a few more or less with other kernels in the text.  So there
// the hash is of all kernels of the text, and some texts that are known are
// compiled again, to see that what is known still holds.
#include "tests/codegen/nvrtc/nvrtc.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

static bool is_listed(const Kernels *all, int i) {
    return all->kernel[i].twin == i && is_meant(all, &all->kernel[i]);
}

// The text behind the line that names its licence.
static const char *behind_licence(const char *text) {
    static const char licence[] = "// SPDX-License-Identifier: ";
    const char *end = strchr(text, '\n');
    bool is_licence = strncmp(text, licence, sizeof licence - 1) == 0;
    return is_licence && end ? end + 1 : text;
}

static void hash_file(XXH3_state_t *hash, const char *folder,
                      const char *name) {
    char path[4096];
    snprintf(path, sizeof path, "%s/runtime/prelude/%s", folder, name);
    char *text = file_read(path);
    const char *hashed = behind_licence(text);
    XXH3_64bits_update(hash, hashed, strlen(hashed));
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

static void hash_kernel(XXH3_state_t *hash, const Kernels *all,
                        const Kernel *k) {
    hash_key(hash, k);
    for (int m = 0; m < k->num_members; m++)
        hash_key(hash, &all->kernel[k->member[m]]);
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
        hash_kernel(&own, all, k);
        for (int n = 0; n < all->num_kernels && all->reported; n++)
            if (is_listed(all, n) && all->kernel[n].unit == k->unit)
                hash_kernel(&own, all, &all->kernel[n]);
        k->hash = XXH3_64bits_digest(&own);
    }
}

// What reports tell beyond the line of a kernel: it is text, and whether it is
// that of so many parameters.
static bool rest_take(Kernel *k, const char *text) {
    int used = 0;
    if (sscanf(text, "%d%n", &k->instructions, &used) != 1)
        return false;
    text += used;
    for (int i = 0; i < k->num_parameters; i++, text += used) {
        Widths *w = &k->widths[i];
        if (sscanf(text, "%d/%d%n", &w->read, &w->written, &used) != 2)
            return false;
    }
    return true;
}

static void rest_print(FILE *f, const Kernel *k) {
    fprintf(f, " %d", k->instructions);
    for (int i = 0; i < k->num_parameters; i++)
        fprintf(f, " %d/%d", k->widths[i].read, k->widths[i].written);
}

static void line_take(Kernels *all, const char *line) {
    enum { TRIED = 16 }; // one text in so many is compiled all the same
    uint64_t hash;
    int registers, shared, used = 0;
    if (sscanf(line, "%" SCNx64 " %d %d %*s%n", &hash, &registers, &shared,
               &used) != 3 ||
        used == 0)
        return;
    for (int i = 0; i < all->num_kernels; i++) {
        Kernel *k = &all->kernel[i];
        if (k->hash != hash || !is_listed(all, i))
            continue;
        k->registers = registers;
        k->shared = shared;
        k->known = getenv("NVRTC_ALL") == NULL;
        if (all->reported)
            k->known &= rest_take(k, line + used) && k->unit % TRIED != 0;
    }
}

static void path_make(char *path, size_t size, const Kernels *all,
                      const char *arch, const char *folder) {
    snprintf(path, size, "%s/all.%s%s", folder, all->joined ? "joined." : "",
             arch);
}

void known_read(Kernels *all, const char *include, const char *arch,
                const char *folder) {
    char path[4096], line[2048];
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
    if (all->reported)
        fputs("# Then instructions, and read/written widths of parameters.\n",
              f);
    for (int i = 0; i < all->num_kernels; i++) {
        const Kernel *k = &all->kernel[i];
        if (!is_listed(all, i))
            continue;
        fprintf(f, "%016" PRIx64 " %d %d %s.%s", k->hash, k->registers,
                k->shared, k->model->name, k->name);
        if (all->reported)
            rest_print(f, k);
        fputc('\n', f);
    }
    fclose(f);
    path_make(path, sizeof path, all, arch, folder);
    int differs = report_differs(path, text);
    free(text);
    return differs;
}
