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

struct RtPredictions {
    FILE *file;
    const char *path; // NULL: standard output
    const RtInput *out;
    const RtTrainer *trainer;
    const RtCheckpoint *names;
    RtPngWriter *png;  // of images in folder `path`; NULL: not written
    RtPicture picture; // of a sample
    uint8_t *pixel;
    bool is_array, logits, begun;
    int top;
    int64_t values, classes; // of a sample; of a row of it
    int64_t failed, total;   // samples
    double *probability;     // of a row's classes
    int *order;
};

static bool fail_write(const RtPredictions *p, RtError *e) {
    return rt_fail(e, EXIT_IO, "%s: %s",
                   p->path != NULL ? p->path : "standard output",
                   rt_output_reason(errno));
}

static void predictions_free(RtPredictions *p) {
    free(p->probability);
    free(p->order);
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
    const RtInput *out = p->out;
    bool is_map = p->trainer->output == RT_CLASSES;
    int64_t channels = out->dim[out->rank - 1];
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
    p->pixel = malloc((size_t)p->values);
    p->picture.pixel = p->pixel;
    if (p->pixel == NULL)
        return rt_fail(e, EXIT_MEMORY, "out of memory");
    p->png = rt_png_writer_open(e);
    return p->png != NULL && rt_make_folder(p->path, 0777, e);
}

RtPredictions *rt_predictions_open(const char *path, const RtInput *out,
                                   const RtTrainer *t,
                                   const RtCheckpoint *names,
                                   const RtOptions *o, RtError *e) {
    bool is_array = path != NULL && ends_in(path, ".npy");
    bool is_folder = path != NULL && ends_in(path, "/");
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
    *p = (RtPredictions){.path = path,
                         .out = out,
                         .trainer = t,
                         .names = names,
                         .is_array = is_array,
                         .logits = o->logits,
                         .top = (int)o->top,
                         .values = 1,
                         .classes = out->dim[out->rank - 1]};
    for (int i = 1; i < out->rank; i++)
        p->values *= out->dim[i];
    p->probability = calloc((size_t)p->classes, sizeof *p->probability);
    p->order = calloc((size_t)p->classes, sizeof *p->order);
    if (is_folder) {
        if (images_open(p, e))
            return p;
    } else if (p->probability != NULL && p->order != NULL) {
        p->file = rt_rows_open(path != NULL ? path : "-");
        if (p->file != NULL)
            return p;
        fail_write(p, e);
    } else {
        rt_fail(e, EXIT_MEMORY, "out of memory");
    }
    predictions_free(p);
    return NULL;
}

// ---- arrays ----

// The header of NumPy's format 1.0, which ends at a multiple of 64 bytes.
static bool array_begin(RtPredictions *p, int64_t count, RtError *e) {
    enum { BEFORE = 10, HEADER = 256 - BEFORE };
    char header[HEADER + 1], dims[200] = "";
    for (int i = 1; i < p->out->rank; i++) {
        size_t used = strlen(dims);
        snprintf(dims + used, sizeof dims - used, " %lld,",
                 (long long)p->out->dim[i]);
    }
    int used = snprintf(
        header, sizeof header,
        "{'descr': '<f4', 'fortran_order': False, 'shape': (%lld,%s), }",
        (long long)count, dims);
    memset(header + used, ' ', (size_t)(HEADER - used));
    header[HEADER - 1] = '\n';
    static const unsigned char start[BEFORE] = {
        0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, HEADER & 255, HEADER >> 8};
    return (fwrite(start, 1, BEFORE, p->file) == BEFORE &&
            fwrite(header, 1, HEADER, p->file) == HEADER) ||
           fail_write(p, e);
}

bool rt_predictions_begin(RtPredictions *p, int64_t count, RtError *e) {
    bool again = p->begun;
    p->begun = true;
    if (!p->is_array)
        return true;
    return again ? rt_fail(e, EXIT_USAGE,
                           "--predict=- does not know the length of an array: "
                           "write a .jsonl file")
                 : array_begin(p, count, e);
}

// A sample that could not be decoded is not a number.
static bool array_add(RtPredictions *p, const float *output, bool good,
                      RtError *e) {
    const float none = NAN;
    for (int64_t i = 0; i < p->values; i++)
        if (fwrite(good ? &output[i] : &none, sizeof none, 1, p->file) != 1)
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

// softmax, and the classes from the likeliest on; equal ones in their order.
static void classes_order(RtPredictions *p, const float *score, int64_t best) {
    double sum = 0;
    for (int64_t i = 0; i < p->classes; i++)
        sum += p->probability[i] = exp((double)score[i] - score[best]);
    for (int64_t i = 0; i < p->classes; i++)
        p->probability[i] /= sum;
    for (int64_t i = 0; i < p->classes; i++) {
        int64_t at = i < p->top ? i : p->top;
        bool enters = at < p->top || score[i] > score[p->order[p->top - 1]];
        if (!enters)
            continue;
        at = at < p->top ? at : p->top - 1;
        for (; at > 0 && score[i] > score[p->order[at - 1]]; at--)
            p->order[at] = p->order[at - 1];
        p->order[at] = (int)i;
    }
}

static void class_put(const RtPredictions *p, int64_t class,
                      double probability) {
    const char *name = rt_checkpoint_class(p->names, class);
    if (name != NULL) {
        fputs("\"class\":", p->file);
        json_put_string(p->file, name);
        fputc(',', p->file);
    }
    fprintf(p->file, "\"number\":%lld,\"probability\":", (long long)class);
    number_put(p->file, probability);
}

static void class_add(RtPredictions *p, const float *score) {
    int64_t best = greatest(score, p->classes);
    if (best < 0) {
        fputs(",\"number\":null,\"probability\":null", p->file);
        return;
    }
    int top = p->top;
    if (p->top == 0 || p->top > p->classes)
        p->top = p->top == 0 ? 1 : (int)p->classes;
    classes_order(p, score, best);
    fputc(',', p->file);
    class_put(p, best, p->probability[best]);
    if (top > 0) {
        fputs(",\"top\":[", p->file);
        for (int i = 0; i < p->top; i++) {
            fputs(i > 0 ? ",{" : "{", p->file);
            class_put(p, p->order[i], p->probability[p->order[i]]);
            fputc('}', p->file);
        }
        fputc(']', p->file);
    }
    p->top = top;
}

// The class of each row of a sample with several.
static void rows_add(RtPredictions *p, const float *score) {
    fputs(",\"numbers\":[", p->file);
    for (int64_t i = 0; i < p->values; i += p->classes) {
        int64_t best = greatest(score + i, p->classes);
        fprintf(p->file, i > 0 ? "," : "");
        fprintf(p->file, best < 0 ? "null" : "%lld", (long long)best);
    }
    fputc(']', p->file);
}

static void labels_add(RtPredictions *p, const float *logit) {
    fputs(",\"probabilities\":[", p->file);
    for (int64_t i = 0; i < p->values; i++) {
        fputs(i > 0 ? "," : "", p->file);
        number_put(p->file, 1 / (1 + exp(-(double)logit[i])));
    }
    fputc(']', p->file);
}

static bool line_add(RtPredictions *p, const RtData *d, const float *output,
                     int64_t sample, RtError *e) {
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
        if (p->trainer->output == RT_LABELS)
            labels_add(p, output);
        else if (p->trainer->output == RT_VALUES)
            numbers_put(f, "output", output, p->values);
        else if (p->values == p->classes)
            class_add(p, output);
        else
            rows_add(p, output);
        if (p->logits && p->trainer->output != RT_VALUES)
            numbers_put(f, "logits", output, p->values);
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
    if (p->picture.is_map) {
        for (int64_t i = 0; i < p->values; i += p->classes) {
            int64_t best = greatest(output + i, p->classes);
            p->pixel[i / p->classes] = (uint8_t)(best < 0 ? 0 : best);
        }
        return;
    }
    bool is_logit = p->trainer->output == RT_LABELS;
    for (int64_t i = 0; i < p->values; i++)
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

bool rt_predictions_add(RtPredictions *p, const RtData *d, const float *output,
                        int64_t first, int64_t count, RtError *e) {
    for (int64_t i = 0; i < count; i++, output += p->values) {
        bool good = rt_inputs_error(d, first + i) == NULL;
        p->total++;
        p->failed += !good;
        if (p->png != NULL ? !image_add(p, d, output, first + i, e)
            : p->is_array  ? !array_add(p, output, good, e)
                           : !line_add(p, d, output, first + i, e))
            return false;
    }
    return true;
}

bool rt_predictions_flush(RtPredictions *p, RtError *e) {
    return p->file == NULL || fflush(p->file) == 0 || fail_write(p, e);
}

bool rt_predictions_close(RtPredictions *p, bool complete, RtError *e) {
    RtError ignored;
    bool good = p->file == NULL || fclose(p->file) == 0 ||
                fail_write(p, complete ? e : &ignored);
    if (good && complete && p->failed > 0)
        good = rt_fail(e, EXIT_DATA, "%lld of %lld inputs could not be read",
                       (long long)p->failed, (long long)p->total);
    predictions_free(p);
    return good || !complete;
}
