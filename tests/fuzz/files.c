// Any bytes as a file that a trainer reads: data, an image, weights, a header
// of them, a tuning or a tokenizer; it is used or refused with a message, never
// a crash. The first byte says what the others are taken for.
#define _POSIX_C_SOURCE 200809L

#include "runtime/checkpoint/checkpoint.h"
#include "runtime/cuda/tune/tune.h"
#include "runtime/data/data.h"
#include "runtime/tokenizer.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SIDE = 4, PIXELS = SIDE * SIDE };

// ---- files ----

// Under these names a format finds the images, under those the labels.
static const char *const images[] = {
    "data_batch_1.bin",
    "test_batch.bin",
    "train.bin",
    "val.bin",
    "train_x.npy",
    "test_x.npy",
    "train-images-idx3-ubyte",
    "t10k-images-idx3-ubyte",
};
static const char *const labels[] = {
    "train_y.npy",
    "test_y.npy",
    "train-labels-idx1-ubyte",
    "t10k-labels-idx1-ubyte",
};

static void write_file(const char *name, const uint8_t *data, size_t size) {
    FILE *f = fopen(name, "wb");
    if (f == NULL || fwrite(data, 1, size, f) != size || fclose(f) != 0)
        abort();
}

static void name_file(const char *file, const char *const *name, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (symlink(file, name[i]) != 0 && errno != EEXIST)
            abort();
}

// Two bytes say how many of the others are the images.
static void write_files(const uint8_t *data, size_t size) {
    size_t first = size < 2 ? 0 : data[0] | (size_t)data[1] << 8;
    size_t rest = size < 2 ? 0 : size - 2;
    first = first < rest ? first : rest;
    write_file("images", data + size - rest, first);
    write_file("labels", data + size - rest + first, rest - first);
    name_file("images", images, sizeof images / sizeof *images);
    name_file("labels", labels, sizeof labels / sizeof *labels);
}

// What is refused is refused with a sentence.
static void check_refusal(const RtError *e) {
    if (e->status == EXIT_GOOD || e->text[0] == '\0')
        abort();
}

// ---- data ----

static void read_split(const RtSplit *s) {
    RtError e = {0};
    uint8_t *to = malloc(s->image.values * sizeof(float));
    if (to == NULL || !s->fetch(s, s->count - 1, to, &e))
        abort();
    free(to);
}

static void read_folder(const char *format, const RtDataSpec *sample) {
    RtData d;
    RtError e = {0};
    if (!rt_data_open(&d, format, ".", sample, &rt_system_files, &e)) {
        check_refusal(&e);
        return;
    }
    read_split(&d.train);
    read_split(&d.test);
    rt_data_close(&d);
}

static void read_cifar10(const uint8_t *data, size_t size) {
    const RtDataSpec sample = {.image = {RT_U8, 3, {32, 32, 3}},
                               .label = {RT_I32, 0, {0}},
                               .classes = 10};
    write_files(data, size);
    read_folder("cifar10", &sample);
}

static void read_idx(const uint8_t *data, size_t size) {
    const RtDataSpec sample = {.image = {RT_U8, 3, {SIDE, SIDE, 1}},
                               .label = {RT_I32, 0, {0}},
                               .classes = 10};
    write_files(data, size);
    read_folder("idx", &sample);
}

static void read_npy(const uint8_t *data, size_t size) {
    const RtDataSpec sample = {.image = {RT_F32, 2, {SIDE, 3}},
                               .label = {RT_F32, 2, {SIDE, 3}},
                               .classes = 10};
    write_files(data, size);
    read_folder("npy", &sample);
}

static void read_tokens(const uint8_t *data, size_t size) {
    static const RtSetting setting[] = {{"length", SIDE, NULL},
                                        {"vocabulary", 30000, NULL}};
    const RtDataSpec sample = {.image = {RT_I32, 1, {SIDE}},
                               .label = {RT_I32, 1, {SIDE}},
                               .classes = 30000,
                               .setting = setting,
                               .num_settings = 2};
    write_files(data, size);
    read_folder("tokens", &sample);
}

// Makes the checksum of each tar header right, which no changed bytes hit.
static void sum_headers(uint8_t *data, size_t size) {
    enum { BLOCK = 512, SUM = 148, MAGIC = 257 };
    for (; size >= BLOCK; data += BLOCK, size -= BLOCK) {
        unsigned sum = 0;
        if (memcmp(data + MAGIC, "ustar", 5) != 0)
            continue;
        memset(data + SUM, ' ', 8);
        for (int i = 0; i < BLOCK; i++)
            sum += data[i];
        snprintf((char *)data + SUM, 8, "%06o", sum & 0777777);
    }
}

// Reads every image of a data set in the folder.
static void read_images(const char *format) {
    const RtDataSpec sample = {.image = {RT_U8, 3, {SIDE, SIDE, 3}},
                               .label = {RT_I32, 0, {0}},
                               .classes = 3,
                               .max_pixels = 1 << 22,
                               .test_optional = true};
    RtData d;
    RtError e = {0};
    uint8_t square[PIXELS * 3];
    if (!rt_data_open(&d, format, ".", &sample, &rt_system_files, &e)) {
        check_refusal(&e);
        return;
    }
    for (int64_t i = 0; i < d.train.count; i++)
        if (!d.train.fetch(&d.train, i, square, &e))
            check_refusal(&e);
    rt_data_close(&d);
}

static void read_webdataset(const uint8_t *data, size_t size) {
    uint8_t *bytes = malloc(size + 1);
    if (bytes == NULL)
        abort();
    memcpy(bytes, data, size);
    sum_headers(bytes, size);
    write_file("train.tar", bytes, size);
    free(bytes);
    read_images("webdataset");
}

static void read_lmdb(const uint8_t *data, size_t size) {
    write_file("data.mdb", data, size);
    read_images("lmdb");
}

// ---- images ----

static void read_image(const uint8_t *data, size_t size) {
    static RtImageDecoder by = {
        .files = &rt_system_files, .h = SIDE, .w = SIDE, .max_pixels = 1 << 22};
    uint8_t square[PIXELS * 3];
    bool broken;
    RtError e = {0};
    if (by.memory == NULL) {
        by.memory = rt_decode_memory_new(by.max_pixels);
        by.jpeg = rt_jpeg_open(&e);
        by.png = rt_png_open(&e);
        by.webp = rt_webp_open(&e);
    }
    if (by.memory == NULL || by.jpeg == NULL || by.png == NULL ||
        by.webp == NULL)
        abort();
    write_file("image", data, size);
    if (!rt_image_read(&by, "image", square, &broken, &e))
        check_refusal(&e);
}

// ---- what trainers leave ----

static void read_header(const uint8_t *data, size_t size) {
    RtHeader h;
    RtError e = {0};
    if (rt_header_parse(&h, (const char *)data, size, 64, &e))
        rt_header_free(&h);
    else
        check_refusal(&e);
}

static void read_tuning(const uint8_t *data, size_t size) {
    static const RtPlan plan = {.device = "cuda"};
    static const RtTuningKey key = {.plan = &plan,
                                    .gpu = "GPU",
                                    .capability = 90,
                                    .processors = 132,
                                    .driver = 13000,
                                    .cudnn = 91900};
    RtChosen t = {0};
    RtError e = {0};
    write_file("tuning", data, size);
    if (rt_tuning_read(&t, "tuning", &key, &rt_system_files, &e))
        rt_chosen_free(&t);
    else
        check_refusal(&e);
}

// ---- weights that a run starts with ----

static const RtState states[] = {
    {"a.weight", RT_PARAM, RT_F32, 2, {2, 3}, 0, 0},
    {"a.mean", RT_STATISTIC, RT_F32, 1, {3}, 24, 0},
    {"b", RT_PARAM, RT_F32, 0, {0}, 36, 0},
    {"run.step", RT_RUN, RT_I32, 0, {0}, 40, 0},
};
enum { STATE_BYTES = 44 };

// A write is to states that start, and no further.
static void write_state(RtDevice *d, size_t to, const void *from,
                        size_t bytes) {
    static uint8_t arena[STATE_BYTES];
    (void)d;
    if (to > 40 || bytes > 40 - to)
        abort();
    memcpy(arena + to, from, bytes);
}

static void read_weights(const uint8_t *data, size_t size) {
    static const RtPlan plan = {.device = "host",
                                .arena_bytes = STATE_BYTES,
                                .state = states,
                                .num_states = sizeof states / sizeof states[0]};
    static const RtTrainer trainer = {.model = "M", .version = "0"};
    RtDevice device = {.write = write_state};
    char said[RT_LOADED_BYTES];
    RtError e = {0};
    RtProgress p;
    RtCheckpoint *c =
        rt_checkpoint_new(&trainer, &plan, &device, &rt_system_files, &e);
    if (c == NULL)
        abort();
    write_file("weights", data, size);
    if (!rt_checkpoint_load_weights(c, "weights", &(RtWeightsOptions){0}, said,
                                    &e))
        check_refusal(&e);
    if (!rt_checkpoint_load_weights(
            c, "weights", &(RtWeightsOptions){.except = "b*,*.mean"}, said, &e))
        check_refusal(&e);
    if (rt_checkpoint_read(c, "weights", &p, &e) != RT_GOOD)
        check_refusal(&e);
    rt_checkpoint_free(c);
}

// ---- tokenizers ----

static void read_tokenizer(const uint8_t *data, size_t size) {
    static const char text[] = "It's a caf\xc3\xa9, <end> 12\n  and\ta tail ";
    RtError e = {0};
    RtTokens all = {0};
    write_file("tokenizer.json", data, size);
    RtTokenizer *t = rt_tokenizer_open("tokenizer.json", &e);
    if (t == NULL) {
        check_refusal(&e);
        return;
    }
    if (!rt_tokenizer_encode(t, text, sizeof text - 1, &all, &e))
        check_refusal(&e);
    for (size_t i = 0; i < all.count; i++) {
        size_t length;
        if (rt_tokenizer_bytes(t, all.token[i], &length) == NULL)
            abort();
    }
    free(all.token);
    rt_tokenizer_free(t);
}

static void (*const readers[])(const uint8_t *, size_t) = {
    read_cifar10, read_idx,       read_npy,        read_tokens,
    read_image,   read_image,     read_header,     read_tuning,
    read_weights, read_tokenizer, read_webdataset, read_lmdb,
};
enum { NUM_READERS = sizeof readers / sizeof readers[0] };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size > 0 && data[0] < NUM_READERS)
        readers[data[0]](data + 1, size - 1);
    return 0;
}
