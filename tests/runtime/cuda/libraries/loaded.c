// rt_cudnn_preload loads all libraries that cuDNN plans with: planning opens no
// other.
//
// usage: loaded DESCRIPTION.json.  Status 77: there is no library.
#include "runtime/cuda/libraries/cudnn.h"
#include "tests/runtime/cuda/libraries/file.h"

#include <stdio.h>
#include <string.h>

enum { MAX_FILES = 64, LONGEST = 512 };

typedef struct {
    char path[MAX_FILES][LONGEST];
    int count;
} Files;

static bool has(const Files *f, const char *path) {
    for (int i = 0; i < f->count; i++)
        if (strcmp(f->path[i], path) == 0)
            return true;
    return false;
}

// The files of which this process has parts in memory.
static void files_find(Files *f) {
    char line[LONGEST];
    FILE *maps = fopen("/proc/self/maps", "r");
    f->count = 0;
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
        const char *path = strchr(line, '/');
        line[strcspn(line, "\n")] = '\0';
        if (path != NULL && f->count < MAX_FILES && !has(f, path))
            strcpy(f->path[f->count++], path);
    }
    if (maps != NULL)
        fclose(maps);
}

// Counts the files that are new, and prints them.
static int count_new(const Files *before, const Files *now) {
    int count = 0;
    for (int i = 0; i < now->count; i++)
        if (!has(before, now->path[i])) {
            printf("%s\n", now->path[i]);
            count++;
        }
    return count;
}

static bool plan(RtCudnn *c, const char *json, RtError *e) {
    static const RtCall call = {.kind = RT_CONV,
                                .type = RT_F16,
                                .layer = "conv",
                                .n = 512,
                                .h = 16,
                                .w = 16,
                                .c = 64,
                                .k = 128,
                                .r = 3,
                                .s = 3,
                                .oh = 16,
                                .ow = 16,
                                .stride = {1, 1},
                                .dilation = {1, 1},
                                .pad = {1, 1, 1, 1},
                                .groups = 1};
    const RtCudnnCriteria wish = {.precompiled_only = true};
    RtCudnnPlan p;
    if (!rt_cudnn_describe(c, json, e) ||
        !rt_cudnn_plan(c, &call, 1u << RT_FUSED_STATISTICS, wish, &p, e))
        return false;
    rt_cudnn_plan_free(&p);
    return true;
}

int main(int argc, char **argv) {
    static Files opened, loaded, planned;
    RtCudnn c;
    RtError e;
    if (argc != 2 || !rt_cudnn_open(&c, &e)) {
        printf("%s\n", argc != 2 ? "usage: loaded DESCRIPTION.json" : e.text);
        return argc != 2 ? 2 : 77;
    }
    char *json = file_read(argv[1]);
    files_find(&opened);
    rt_cudnn_preload(&c);
    files_find(&loaded);
    bool good = plan(&c, json, &e);
    files_find(&planned);
    if (!good)
        printf("FAILED %s\n", e.text);
    if (count_new(&opened, &loaded) == 0) {
        printf("FAILED nothing was loaded\n");
        good = false;
    }
    printf("and then, to plan:\n");
    if (count_new(&loaded, &planned) > 0) {
        printf("FAILED that was loaded late\n");
        good = false;
    }
    free(json);
    rt_cudnn_close(&c);
    return !good;
}
