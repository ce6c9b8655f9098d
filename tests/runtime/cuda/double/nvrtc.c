// NVRTC, of CUDA 13 or, with DOUBLE_CUDA=12, of that: programs are compiled by
// the C compiler, or to PTX by NVIDIA's own.  Options that NVRTC knows but the
// double does not are mistakes here, until they are added.  Contraction of
// products and sums, the default of NVRTC, is a mistake too.
#include "tests/runtime/cuda/double/nvrtc_own.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEFINES = 4096 };

struct _nvrtcProgram {
    nvrtcProgram next;
    char *text;
    int num_headers;
    char **header, **name;
    char defines[DEFINES];
    int architecture; // negative: a virtual one, which gives no machine code
    bool apart;       // products and sums
    bool is_tile;     // CUDA Tile C++; its Tile IR is an image
    void *image;
    size_t bytes;
    char *log;
};

#if DOUBLE_CUDA == 12
enum { MINOR = 9 };
static const int supported[] = {50, 52, 53, 60, 61,  62,  70,  72,  75, 80,
                                86, 87, 89, 90, 100, 101, 103, 120, 121};
#else
#ifdef DOUBLE_TILE
enum { MINOR = 5 };
#else
enum { MINOR = 0 };
#endif
static const int supported[] = {75, 80,  86,  87,  88,  89,
                                90, 100, 103, 110, 120, 121};
#endif
enum { NUM_SUPPORTED = sizeof supported / sizeof supported[0] };

// The compiler holds no lock, so that programs are compiled side by side.
static int fault_of(const char *function, const char *what) {
    const Call call = call_begin(function, "%s", what);
    call_end(&call);
    return call.fault;
}

#define NVRTC_CALL(what)                                                       \
    const int fault = fault_of(__func__, what);                                \
    if (fault != 0)                                                            \
    return (nvrtcResult)fault

// ---- options ----

static bool architecture_read(nvrtcProgram p, const char *of) {
    bool machine = strncmp(of, "sm_", 3) == 0;
    int number = 0;
    if (machine || strncmp(of, "compute_", 8) == 0)
        number = atoi(strchr(of, '_') + 1);
    for (int i = 0; i < NUM_SUPPORTED; i++)
        if (supported[i] == number) {
            p->architecture = machine ? number : -number;
            return true;
        }
    return false;
}

static bool define_add(nvrtcProgram p, const char *name) {
    static const char safe[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrst"
                               "uvwxyz_0123456789=-.";
    size_t used = strlen(p->defines);
    if (name[strspn(name, safe)] != '\0')
        return false;
    return snprintf(p->defines + used, DEFINES - used, " -D%s", name) <
           (int)(DEFINES - used);
}

static bool keep_apart(nvrtcProgram p, const char *rest) {
    p->apart = true;
    return *rest == '\0';
}

static bool tile_set(nvrtcProgram p, const char *rest) {
    p->is_tile = MINOR > 2;
    return p->is_tile && *rest == '\0';
}

static bool option_read(nvrtcProgram p, const char *option) {
    static const struct {
        const char *start;
        bool (*read)(nvrtcProgram p, const char *value);
    } known[] = {
        {"--gpu-architecture=", architecture_read},
        {"-arch=", architecture_read},
        {"--define-macro=", define_add},
        {"-D", define_add},
        {"--std=c++17", NULL},
        {"--std=c++20", NULL},
        {"--enable-tile", tile_set},
        {"--fmad=false", keep_apart},
        {"--ptxas-options=-v", NULL},
        {"-lineinfo", NULL},
        {"--include-path=", NULL},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        size_t length = strlen(known[i].start);
        if (strncmp(option, known[i].start, length) == 0)
            return known[i].read == NULL || known[i].read(p, option + length);
    }
    return false;
}

static nvrtcResult log_set(nvrtcProgram p, const char *text,
                           const char *argument, nvrtcResult result) {
    free(p->log);
    p->log = take(strlen(text) + strlen(argument) + 1);
    sprintf(p->log, "%s%s", text, argument);
    return result;
}

// ---- the library's functions ----

static char *copy_of(const char *text) {
    return strcpy(take(strlen(text) + 1), text);
}

nvrtcResult nvrtcVersion(int *major, int *minor) {
    NVRTC_CALL(DOUBLE_CUDA == 12 ? "12" : "13");
    *major = DOUBLE_CUDA;
    *minor = MINOR;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetNumSupportedArchs(int *to) {
    NVRTC_CALL(" ");
    *to = NUM_SUPPORTED;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetSupportedArchs(int *to) {
    NVRTC_CALL(" ");
    memcpy(to, supported, sizeof supported);
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcCreateProgram(nvrtcProgram *to, const char *text,
                               const char *name, int num_headers,
                               const char *const *header,
                               const char *const *include) {
    NVRTC_CALL(name != NULL ? name : "default_program");
    if (text == NULL || num_headers < 0 ||
        (num_headers > 0 && (header == NULL || include == NULL)))
        return NVRTC_ERROR_INVALID_INPUT;
    nvrtcProgram p = take(sizeof *p);
    p->text = copy_of(text);
    p->num_headers = num_headers;
    p->header = take((size_t)num_headers * sizeof *p->header);
    p->name = take((size_t)num_headers * sizeof *p->name);
    for (int i = 0; i < num_headers; i++) {
        p->header[i] = copy_of(header[i]);
        p->name[i] = copy_of(include[i]);
    }
    p->log = copy_of("");
    *to = p;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcDestroyProgram(nvrtcProgram *of) {
    NVRTC_CALL(" ");
    nvrtcProgram p = *of;
    if (p == NULL)
        return NVRTC_ERROR_INVALID_PROGRAM;
    for (int i = 0; i < p->num_headers; i++) {
        free(p->header[i]);
        free(p->name[i]);
    }
    free(p->header);
    free(p->name);
    free(p->text);
    free(p->image);
    free(p->log);
    free(p);
    *of = NULL;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcCompileProgram(nvrtcProgram p, int count,
                                const char *const *option) {
    char all[1024] = "";
    for (int i = 0; i < count; i++)
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s ", option[i]);
    NVRTC_CALL(all);
    p->architecture = 75;
    p->defines[0] = '\0';
    p->apart = p->is_tile = false;
    for (int i = 0; i < count; i++)
        if (!option_read(p, option[i]))
            return log_set(p,
                           "nvrtc: error: invalid value or option: ", option[i],
                           NVRTC_ERROR_INVALID_OPTION);
    if (!p->apart && !p->is_tile)
        complain("a program is compiled without --fmad=false");
    Unit u = {p->text,
              p->num_headers,
              (const char *const *)p->header,
              (const char *const *)p->name,
              p->defines,
              p->architecture,
              DOUBLE_CUDA,
              p->is_tile};
    free(p->image);
    free(p->log);
    p->image = NULL;
    char *ptx;
    if (p->is_tile) {
        p->image = image_compile(&u, &p->bytes, &p->log);
        return p->image != NULL ? NVRTC_SUCCESS : NVRTC_ERROR_COMPILATION;
    }
    nvrtcResult own = nvrtc_own_compile(&u, count, option, &p->log, &ptx);
    if (own != NVRTC_SUCCESS)
        return own;
    p->image = ptx != NULL ? image_of(&u, ptx, strlen(ptx) + 1, &p->bytes)
                           : image_compile(&u, &p->bytes, &p->log);
    free(ptx);
    return p->image != NULL ? NVRTC_SUCCESS : NVRTC_ERROR_COMPILATION;
}

nvrtcResult nvrtcGetCUBINSize(nvrtcProgram p, size_t *to) {
    NVRTC_CALL(" ");
    *to = p->image != NULL && p->architecture > 0 ? p->bytes : 0;
    return p->image != NULL ? NVRTC_SUCCESS : NVRTC_ERROR_INVALID_PROGRAM;
}

nvrtcResult nvrtcGetCUBIN(nvrtcProgram p, char *to) {
    NVRTC_CALL(" ");
    if (p->image == NULL || p->architecture < 0)
        return NVRTC_ERROR_INVALID_PROGRAM;
    memcpy(to, p->image, p->bytes);
    return NVRTC_SUCCESS;
}

#ifdef DOUBLE_TILE
// Not of nvrtc.h where an earlier toolkit is installed.
nvrtcResult nvrtcGetTileIRSize(nvrtcProgram p, size_t *to);
nvrtcResult nvrtcGetTileIR(nvrtcProgram p, char *to);

nvrtcResult nvrtcGetTileIRSize(nvrtcProgram p, size_t *to) {
    NVRTC_CALL(" ");
    *to = p->is_tile ? p->bytes : 0;
    return p->image != NULL ? NVRTC_SUCCESS : NVRTC_ERROR_INVALID_PROGRAM;
}

nvrtcResult nvrtcGetTileIR(nvrtcProgram p, char *to) {
    NVRTC_CALL(" ");
    if (p->image == NULL || !p->is_tile)
        return NVRTC_ERROR_INVALID_PROGRAM;
    memcpy(to, p->image, p->bytes);
    return NVRTC_SUCCESS;
}
#endif

nvrtcResult nvrtcGetPTXSize(nvrtcProgram p, size_t *to) {
    NVRTC_CALL(" ");
    *to = 2 * p->bytes + 16;
    return p->image != NULL ? NVRTC_SUCCESS : NVRTC_ERROR_INVALID_PROGRAM;
}

nvrtcResult nvrtcGetPTX(nvrtcProgram p, char *to) {
    NVRTC_CALL(" ");
    if (p->image == NULL)
        return NVRTC_ERROR_INVALID_PROGRAM;
    memset(to, 0, 2 * p->bytes + 16);
    image_disassemble(p->image, p->bytes, to);
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram p, size_t *to) {
    NVRTC_CALL(" ");
    *to = strlen(p->log) + 1;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetProgramLog(nvrtcProgram p, char *to) {
    NVRTC_CALL(" ");
    strcpy(to, p->log);
    return NVRTC_SUCCESS;
}

const char *nvrtcGetErrorString(nvrtcResult result) {
    switch (result) {
    case NVRTC_SUCCESS:
        return "NVRTC_SUCCESS";
    case NVRTC_ERROR_OUT_OF_MEMORY:
        return "NVRTC_ERROR_OUT_OF_MEMORY";
    case NVRTC_ERROR_INVALID_INPUT:
        return "NVRTC_ERROR_INVALID_INPUT";
    case NVRTC_ERROR_INVALID_PROGRAM:
        return "NVRTC_ERROR_INVALID_PROGRAM";
    case NVRTC_ERROR_INVALID_OPTION:
        return "NVRTC_ERROR_INVALID_OPTION";
    case NVRTC_ERROR_COMPILATION:
        return "NVRTC_ERROR_COMPILATION";
    default:
        return "NVRTC_ERROR unknown";
    }
}
