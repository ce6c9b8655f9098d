// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Predictions: writes the results of --predict, as JSON, an array or images.
// Probabilities are computed in
// double, the same on each device.
#define _POSIX_C_SOURCE 200809L

#include "runtime/session/predictions.h"
#include "base/json.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// An output of the model.
typedef struct {
    const RtInput *out;
    const char *name; // NULL: the only one
    RtOutputKind kind;
    int64_t values, classes; // of a sample; of a row of it
    double *probability;     // of a row's classes
    int *order;
    FILE *array; // NULL: none is written
    char *path;  // of a named output's array
    const RtCheckpoint *names; // of its classes; NULL: unknown
} Part;

struct RtPredictions {
    FILE *file; // of lines, or NULL
    const char *path; // NULL: standard output
    Part part[RT_MAX_ARRAYS];
    int num_parts;
    RtPngWriter *png;  // of images in folder `path`; NULL: not written
    RtPicture picture; // of a sample
    uint8_t *pixel;
    bool is_array, logits, begun;
    int top;
    int64_t failed, total; // samples
};

static bool fail_write(const RtPredictions *p, RtError *e) {
    return rt_fail(e, EXIT_IO, "%s: %s",
                   p->path != NULL ? p->path : "standard output",
                   rt_output_reason(errno));
}

static void predictions_free(RtPredictions *p) {
    for (int i = 0; i < p->num_parts; i++) {
        free(p->part[i].probability);
        free(p->part[i].order);
        free(p->part[i].path);
    }
    free(p->pixel);
    rt_png_writer_close(p->png);
    free(p);
}

static bool ends_in(const char *path, const char *suffix) {
    size_t length = strlen(path), own = strlen(suffix);
    return length > own && strcmp(path + length - own, suffix) == 0;
}

// ---- images ----

// Makes the folder, for an output [N, H, W, C] of classes, labels or values
// with one channel or three.
static bool images_open(RtPredictions *p, RtError *e) {
    const RtInput *out = p->part[0].out;
    bool is_map = p->part[0].kind == RT_CLASSES;
    int64_t channels = out->dim[out->rank - 1];
    if (p->num_parts > 1)
        return rt_fail(e, EXIT_USAGE,
                       "--out %s: images are written of a model with one "
                       "output, and this one has %d",
                       p->path, p->num_parts);
    if (out->rank != 4 ||
        (is_map ? channels > 256 : channels != 1 && channels != 3))
        return rt_fail(e, EXIT_USAGE,
                       "--out %s: images are written of an output [N, H, W, "
                       "C] with scores of at most 256 classes, or with one or "
                       "three channels",
                       p->path);
    p->picture = (RtPicture){.height = (int)out->dim[1],
                             .width = (int)out->dim[2],
                             .channels = is_map ? 1 : (int)channels,
                             .is_map = is_map};
    p->pixel = malloc((size_t)p->part[0].values);
    p->picture.pixel = p->pixel;
    if (p->pixel == NULL)
        return rt_fail(e, EXIT_MEMORY, "out of memory");
    p->png = rt_png_writer_open(e);
    return p->png != NULL && rt_make_folder(p->path, 0777, e);
}

// ---- outputs ----

static bool part_open(RtPredictions *p, const RtInput *out, const RtTrainer *t,
                      const RtCheckpoint *names, RtError *e) {
    int i = p->num_parts++, with_classes = 0;
    Part *part = &p->part[i];
    bool named = t->num_output_names > 0;
    for (int k = 0; k < t->num_output_names; k++)
        with_classes += t->output_name[k].kind == RT_CLASSES;
    *part = (Part){.out = out,
                   .name = named ? t->output_name[i].name : NULL,
                   .kind = named ? t->output_name[i].kind : t->output,
                   .values = 1,
                   .classes = out->dim[out->rank - 1],
                   .names = with_classes <= 1 ? names : NULL};
    for (int k = 1; k < out->rank; k++)
        part->values *= out->dim[k];
    part->probability = calloc((size_t)part->classes, sizeof(double));
    part->order = calloc((size_t)part->classes, sizeof(int));
    return (part->probability != NULL && part->order != NULL) ||
           rt_fail(e, EXIT_MEMORY, "out of memory");
}

// The file of an output: predictions.npy, or predictions_NAME.npy.
static bool array_open(RtPredictions *p, Part *part, RtError *e) {
    int stem = (int)(strlen(p->path) - strlen(".npy"));
    const char *path = p->path;
    if (part->name != NULL) {
        part->path = rt_path("%.*s_%s.npy", stem, p->path, part->name);
        if (part->path == NULL)
            return rt_fail(e, EXIT_MEMORY, "out of memory");
        path = part->path;
    }
    part->array = rt_rows_open(path);
    return part->array != NULL || fail_write(p, e);
}

static bool files_open(RtPredictions *p, RtError *e) {
    bool good = true;
    for (int i = 0; p->is_array && good && i < p->num_parts; i++)
        good = array_open(p, &p->part[i], e);
    if (p->is_array)
        return good;
    p->file = rt_rows_open(p->path != NULL ? p->path : "-");
    return p->file != NULL || fail_write(p, e);
}

static bool files_close(RtPredictions *p, RtError *e) {
    bool good = p->file == NULL || fclose(p->file) == 0;
    for (int i = 0; i < p->num_parts; i++)
        if (p->part[i].array != NULL)
            good = fclose(p->part[i].array) == 0 && good;
    return good || fail_write(p, e);
}

RtPredictions *rt_predictions_open(const char *path, const RtStep *step,
                                   const RtTrainer *t,
                                   const RtCheckpoint *names,
                                   const RtOptions *o, RtError *e) {
    bool is_array = path != NULL && ends_in(path, ".npy");
    bool is_folder = path != NULL && ends_in(path, "/"), good = true;
    RtError ignored;
    if (path != NULL && !is_array && !is_folder && !ends_in(path, ".jsonl") &&
        !rt_is_stdout(path)) {
        rt_fail(e, EXIT_USAGE,
                "--out %s: predictions are written to a .jsonl or an .npy "
                "file, or images to a folder, as %s/",
                path, path);
        return NULL;
    }
    RtPredictions *p = calloc(1, sizeof *p);
    if (p == NULL) {
        rt_fail(e, EXIT_MEMORY, "out of memory");
        return NULL;
    }
    p->path = path;
    p->is_array = is_array;
    p->logits = o->logits;
    p->top = (int)o->top;
    for (int i = 0; good && i < rt_step_num_outputs(step); i++)
        good = part_open(p, rt_step_output(step, i), t, names, e);
    if (good && (is_folder ? images_open(p, e) : files_open(p, e)))
        return p;
    files_close(p, &ignored);
    predictions_free(p);
    return NULL;
}

// ---- arrays ----

// The header of NumPy's format 1.0, which ends at a multiple of 64 bytes.
static bool array_begin(const RtPredictions *p, const Part *part,
                        int64_t count, RtError *e) {
    enum { BEFORE = 10, HEADER = 256 - BEFORE };
    char header[HEADER + 1], dims[200] = "";
    for (int i = 1; i < part->out->rank; i++) {
        size_t used = strlen(dims);
        snprintf(dims + used, sizeof dims - used, " %lld,",
                 (long long)part->out->dim[i]);
    }
    int used = snprintf(
        header, sizeof header,
        "{'descr': '<f4', 'fortran_order': False, 'shape': (%lld,%s), }",
        (long long)count, dims);
    memset(header + used, ' ', (size_t)(HEADER - used));
    header[HEADER - 1] = '\n';
    static const unsigned char start[BEFORE] = {
        0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, HEADER & 255, HEADER >> 8};
    return (fwrite(start, 1, BEFORE, part->array) == BEFORE &&
            fwrite(header, 1, HEADER, part->array) == HEADER) ||
           fail_write(p, e);
}

bool rt_predictions_begin(RtPredictions *p, int64_t count, RtError *e) {
    bool again = p->begun, good = true;
    p->begun = true;
    if (p->is_array && again)
        return rt_fail(e, EXIT_USAGE,
                       "--predict=- does not know the length of an array: "
                       "write a .jsonl file");
    for (int i = 0; p->is_array && good && i < p->num_parts; i++)
        good = array_begin(p, &p->part[i], count, e);
    return good;
}

// A sample that could not be decoded is not a number.
static bool array_add(const RtPredictions *p, const Part *part,
                      const float *output, bool good, RtError *e) {
    const float none = NAN;
    for (int64_t i = 0; i < part->values; i++)
        if (fwrite(good ? &output[i] : &none, sizeof none, 1, part->array) != 1)
            return fail_write(p, e);
    return true;
}

// ---- lines ----

static void number_put(FILE *f, double value) {
    if (isfinite(value))
        fprintf(f, "%.9g", value);
    else
        fputs("null", f);
}

static void numbers_put(FILE *f, const char *name, const float *value,
                        int64_t count) {
    fprintf(f, ",\"%s\":[", name);
    for (int64_t i = 0; i < count; i++) {
        fputs(i > 0 ? "," : "", f);
        number_put(f, value[i]);
    }
    fputc(']', f);
}

// The first of the greatest; -1 if a score is NaN.
static int64_t greatest(const float *score, int64_t count) {
    int64_t best = 0;
    for (int64_t i = 0; i < count; i++) {
        if (isnan(score[i]))
            return -1;
        if (score[i] > score[best])
            best = i;
    }
    return best;
}

// softmax, and the `top` likeliest classes; equal ones in their order.
static void classes_order(const Part *p, const float *score, int64_t best,
                          int top) {
    double sum = 0;
    for (int64_t i = 0; i < p->classes; i++)
        sum += p->probability[i] = exp((double)score[i] - score[best]);
    for (int64_t i = 0; i < p->classes; i++)
        p->probability[i] /= sum;
    for (int64_t i = 0; i < p->classes; i++) {
        int64_t at = i < top ? i : top;
        bool enters = at < top || score[i] > score[p->order[top - 1]];
        if (!enters)
            continue;
        at = at < top ? at : top - 1;
        for (; at > 0 && score[i] > score[p->order[at - 1]]; at--)
            p->order[at] = p->order[at - 1];
        p->order[at] = (int)i;
    }
}

static void class_put(FILE *f, const Part *p, int64_t class) {
    const char *name =
        p->names != NULL ? rt_checkpoint_class(p->names, class) : NULL;
    if (name != NULL) {
        fputs("\"class\":", f);
        json_put_string(f, name);
        fputc(',', f);
    }
    fprintf(f, "\"number\":%lld,\"probability\":", (long long)class);
    number_put(f, p->probability[class]);
}

static void class_add(FILE *f, const Part *p, const float *score, int top) {
    int64_t best = greatest(score, p->classes);
    if (best < 0) {
        fputs(",\"number\":null,\"probability\":null", f);
        return;
    }
    int listed = top == 0 ? 1 : top > p->classes ? (int)p->classes : top;
    classes_order(p, score, best, listed);
    fputc(',', f);
    class_put(f, p, best);
    if (top == 0)
        return;
    fputs(",\"top\":[", f);
    for (int i = 0; i < listed; i++) {
        fputs(i > 0 ? ",{" : "{", f);
        class_put(f, p, p->order[i]);
        fputc('}', f);
    }
    fputc(']', f);
}

// The class of each row of a sample with several.
static void rows_add(FILE *f, const Part *p, const float *score) {
    fputs(",\"numbers\":[", f);
    for (int64_t i = 0; i < p->values; i += p->classes) {
        int64_t best = greatest(score + i, p->classes);
        fprintf(f, i > 0 ? "," : "");
        fprintf(f, best < 0 ? "null" : "%lld", (long long)best);
    }
    fputc(']', f);
}

static void labels_add(FILE *f, const Part *p, const float *logit) {
    fputs(",\"probabilities\":[", f);
    for (int64_t i = 0; i < p->values; i++) {
        fputs(i > 0 ? "," : "", f);
        number_put(f, 1 / (1 + exp(-(double)logit[i])));
    }
    fputc(']', f);
}

// The members of an output, each after a comma.
static void part_add(const RtPredictions *p, const Part *part,
                     const float *output) {
    FILE *f = p->file;
    if (part->kind == RT_LABELS)
        labels_add(f, part, output);
    else if (part->kind == RT_VALUES)
        numbers_put(f, "output", output, part->values);
    else if (part->values == part->classes)
        class_add(f, part, output, p->top);
    else
        rows_add(f, part, output);
    if (p->logits && part->kind != RT_VALUES)
        numbers_put(f, "logits", output, part->values);
}

// An object for each named output, with its kind first.
static void parts_add(const RtPredictions *p, float *const *output,
                      int64_t row) {
    static const char *const kind[] = {[RT_VALUES] = "values",
                                       [RT_CLASSES] = "classes",
                                       [RT_LABELS] = "labels"};
    const Part *first = &p->part[0];
    if (first->name == NULL) {
        part_add(p, first, output[0] + row * first->values);
        return;
    }
    fputs(",\"outputs\":{", p->file);
    for (int i = 0; i < p->num_parts; i++) {
        const Part *part = &p->part[i];
        fputs(i > 0 ? "," : "", p->file);
        json_put_string(p->file, part->name);
        fprintf(p->file, ":{\"kind\":\"%s\"", kind[part->kind]);
        part_add(p, part, output[i] + row * part->values);
        fputc('}', p->file);
    }
    fputc('}', p->file);
}

static bool line_add(const RtPredictions *p, const RtData *d,
                     float *const *output, int64_t row, int64_t sample,
                     RtError *e) {
    const char *path = rt_inputs_path(d, sample);
    const char *error = rt_inputs_error(d, sample);
    FILE *f = p->file;
    fputs("{\"input\":", f);
    if (path != NULL)
        json_put_string(f, path);
    else
        fprintf(f, "%lld", (long long)sample);
    if (error != NULL) {
        fputs(",\"error\":", f);
        json_put_string(f, error);
    } else {
        parts_add(p, output, row);
    }
    fputs("}\n", f);
    return !ferror(f) || fail_write(p, e);
}

// 0 .. 1 as 0 .. 255; NaN is 0.
static uint8_t byte_of(double share) {
    return share > 0 ? (uint8_t)(share < 1 ? share * 255 + 0.5 : 255) : 0;
}

// A class for each pixel, or the probability of each label, or the values as
// they are from 0 to 1.
static void pixels_fill(RtPredictions *p, const float *output) {
    const Part *part = &p->part[0];
    if (p->picture.is_map) {
        for (int64_t i = 0; i < part->values; i += part->classes) {
            int64_t best = greatest(output + i, part->classes);
            p->pixel[i / part->classes] = (uint8_t)(best < 0 ? 0 : best);
        }
        return;
    }
    bool is_logit = part->kind == RT_LABELS;
    for (int64_t i = 0; i < part->values; i++)
        p->pixel[i] =
            byte_of(is_logit ? 1 / (1 + exp(-(double)output[i])) : output[i]);
}

// photos/a/1.jpg becomes photos_a_1.png; a sample without a file, its number.
static char *image_path(const RtPredictions *p, const RtData *d,
                        int64_t sample) {
    const char *from = rt_inputs_path(d, sample);
    if (from == NULL)
        return rt_path("%s%06lld.png", p->path, (long long)sample);
    from += strspn(from, "./");
    const char *dot = strrchr(from, '.'), *slash = strrchr(from, '/');
    int stem = dot != NULL && (slash == NULL || dot > slash)
                   ? (int)(dot - from)
                   : (int)strlen(from);
    char *path = rt_path("%s%.*s.png", p->path, stem, from);
    for (char *c = path != NULL ? path + strlen(p->path) : NULL;
         c != NULL && *c != '\0'; c++)
        *c = *c == '/' ? '_' : *c;
    return path;
}

// A file that could not be read has no image.
static bool image_add(RtPredictions *p, const RtData *d, const float *output,
                      int64_t sample, RtError *e) {
    uint8_t *bytes;
    size_t length;
    const char *error = rt_inputs_error(d, sample);
    if (error != NULL) {
        fprintf(stderr, "warning: %s\n", error);
        return true;
    }
    pixels_fill(p, output);
    char *path = image_path(p, d, sample);
    if (path == NULL)
        return rt_fail(e, EXIT_MEMORY, "out of memory");
    bool good = rt_png_encode(p->png, &p->picture, &bytes, &length, e);
    if (good) {
        FILE *f = fopen(path, "wb");
        good = f != NULL && fwrite(bytes, 1, length, f) == length;
        if ((f != NULL && fclose(f) != 0) || !good)
            good = rt_fail(e, EXIT_IO, "%s: %s", path, strerror(errno));
        free(bytes);
    }
    free(path);
    return good;
}

static bool arrays_add(const RtPredictions *p, float *const *output,
                       int64_t row, bool is_read, RtError *e) {
    bool good = true;
    for (int i = 0; good && i < p->num_parts; i++) {
        const Part *part = &p->part[i];
        good = array_add(p, part, output[i] + row * part->values, is_read, e);
    }
    return good;
}

bool rt_predictions_add(RtPredictions *p, const RtData *d,
                        float *const *output, int64_t first, int64_t count,
                        RtError *e) {
    for (int64_t i = 0; i < count; i++) {
        bool good = rt_inputs_error(d, first + i) == NULL;
        const float *own = output[0] + i * p->part[0].values;
        p->total++;
        p->failed += !good;
        if (p->png != NULL ? !image_add(p, d, own, first + i, e)
            : p->is_array  ? !arrays_add(p, output, i, good, e)
                           : !line_add(p, d, output, i, first + i, e))
            return false;
    }
    return true;
}

bool rt_predictions_flush(RtPredictions *p, RtError *e) {
    return p->file == NULL || fflush(p->file) == 0 || fail_write(p, e);
}

bool rt_predictions_close(RtPredictions *p, bool complete, RtError *e) {
    RtError ignored;
    bool good = files_close(p, complete ? e : &ignored);
    if (good && complete && p->failed > 0)
        good = rt_fail(e, EXIT_DATA, "%lld of %lld inputs could not be read",
                       (long long)p->failed, (long long)p->total);
    predictions_free(p);
    return good || !complete;
}
