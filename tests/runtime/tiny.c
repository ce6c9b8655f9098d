// The network: image bytes -> x -> conv 3x3 to K channels -> relu -> linear ->
// softmax and cross entropy.

#include "tests/runtime/tiny.h"

#include <math.h>
#include <string.h>

enum {
    N = TINY_BATCH,
    H = TINY_H,
    W = TINY_W,
    C = TINY_C,
    K = 8, // channels after the convolution
    CLASSES = TINY_CLASSES,
    PIXELS = H * W,
    FEATURES = PIXELS * K,
    CONV_SIZE = K * 9 * C,
    LINEAR_SIZE = FEATURES * CLASSES,
    UPDATE_BLOCKS = 8
};

// The arena: offsets in bytes, each a multiple of 64.
#define ROUND(bytes) (((size_t)(bytes) + 63) / 64 * 64)
#define F32(count) ROUND((count) * sizeof(float))
#define AT_IMAGE ((size_t)0)
#define AT_LABEL (AT_IMAGE + ROUND(N * PIXELS * C))
#define AT_VALID (AT_LABEL + F32(N))
#define AT_X (AT_VALID + 64)
#define AT_HIDDEN (AT_X + F32(N * PIXELS * C))
#define AT_LOGITS (AT_HIDDEN + F32(N * FEATURES))
#define AT_GRAD (AT_LOGITS + F32(N * CLASSES))
#define AT_HIDDEN_GRAD (AT_GRAD + F32(N * CLASSES))
#define AT_CONV_GRAD (AT_HIDDEN_GRAD + F32(N * FEATURES))
#define AT_LINEAR_GRAD (AT_CONV_GRAD + F32(CONV_SIZE))
#define AT_CONV (AT_LINEAR_GRAD + F32(LINEAR_SIZE))
#define AT_LINEAR (AT_CONV + F32(CONV_SIZE))
#define AT_CONV_SPEED (AT_LINEAR + F32(LINEAR_SIZE))
#define AT_LINEAR_SPEED (AT_CONV_SPEED + F32(CONV_SIZE))
#define AT_RUN (AT_LINEAR_SPEED + F32(LINEAR_SIZE))
#define AT_METRIC (AT_RUN + 256)
#define AT_END (AT_METRIC + 256)

static void widen(char *arena, const size_t *arg, int first, int last, int grid,
                  int phase) {
    (void)phase;
    const uint8_t *image = (const uint8_t *)arena + arg[0];
    float *x = (float *)(void *)(arena + arg[1]);
    int each = N * PIXELS * C / grid;
    for (int i = first * each; i < last * each; i++)
        x[i] = ((float)image[i] - 128) / 64;
}

static void relu(char *arena, const size_t *arg, int first, int last, int grid,
                 int phase) {
    (void)phase;
    float *hidden = (float *)(void *)(arena + arg[0]);
    int each = N * FEATURES / grid;
    for (int i = first * each; i < last * each; i++)
        hidden[i] = hidden[i] < 0 ? 0 : hidden[i];
}

// arg: logits, labels, valid, gradient, loss, correct, count.  One block.
static void softmax(char *arena, const size_t *arg, int first, int last,
                    int grid, int phase) {
    (void)phase;
    const float *logits = (const float *)(void *)(arena + arg[0]);
    const int32_t *label = (const int32_t *)(void *)(arena + arg[1]);
    int32_t valid = *(const int32_t *)(void *)(arena + arg[2]);
    float *grad = (float *)(void *)(arena + arg[3]);
    float *loss = (float *)(void *)(arena + arg[4]);
    float *correct = (float *)(void *)(arena + arg[5]);
    float *count = (float *)(void *)(arena + arg[6]);
    (void)first, (void)last, (void)grid;
    for (int i = 0; i < N; i++) {
        const float *row = logits + i * CLASSES;
        float sum = 0, top = row[0];
        int best = 0;
        for (int k = 1; k < CLASSES; k++)
            if (row[k] > top) {
                top = row[k];
                best = k;
            }
        for (int k = 0; k < CLASSES; k++)
            sum += expf(row[k] - top);
        for (int k = 0; k < CLASSES; k++)
            grad[i * CLASSES + k] =
                i < valid ? (expf(row[k] - top) / sum - (k == label[i])) / N
                          : 0;
        if (i < valid) {
            *loss += logf(sum) + top - row[label[i]];
            *correct += best == label[i];
        }
    }
    *count += (float)valid;
}

static void relu_grad(char *arena, const size_t *arg, int first, int last,
                      int grid, int phase) {
    (void)phase;
    const float *hidden = (const float *)(void *)(arena + arg[0]);
    float *grad = (float *)(void *)(arena + arg[1]);
    int each = N * FEATURES / grid;
    for (int i = first * each; i < last * each; i++)
        grad[i] = hidden[i] > 0 ? grad[i] : 0;
}

// arg: weight, its velocity, its gradient, run (seed, steps, epoch_steps,
// step), learning rate.
static void update(char *arena, const size_t *arg, int first, int last,
                   int count) {
    float *weight = (float *)(void *)(arena + arg[0]);
    float *speed = (float *)(void *)(arena + arg[1]);
    const float *grad = (const float *)(void *)(arena + arg[2]);
    const int32_t *run = (const int32_t *)(void *)(arena + arg[3]);
    float *lr = (float *)(void *)(arena + arg[4]);
    float rate = 0.02f * (1 - (float)run[3] / (float)run[1]);
    for (int i = first; i < last; i++) {
        speed[i] = 0.9f * speed[i] + grad[i];
        weight[i] -= rate * speed[i];
    }
    if (first == 0 && count > 0)
        *lr = rate;
}

static void update_conv(char *arena, const size_t *arg, int first, int last,
                        int grid, int phase) {
    (void)phase;
    update(arena, arg, CONV_SIZE * first / grid, CONV_SIZE * last / grid, grid);
}

static void update_linear(char *arena, const size_t *arg, int first, int last,
                          int grid, int phase) {
    (void)phase;
    update(arena, arg, LINEAR_SIZE * first / grid, LINEAR_SIZE * last / grid,
           0);
}

static void count_step(char *arena, const size_t *arg, int first, int last,
                       int grid, int phase) {
    (void)phase;
    (void)first, (void)last, (void)grid;
    ++*(int32_t *)(void *)(arena + arg[0]);
}

// arg: weight, the seed.  Small numbers that depend on the seed.
static void start(char *arena, const size_t *arg, int count) {
    float *weight = (float *)(void *)(arena + arg[0]);
    uint32_t x = (uint32_t) * (const int32_t *)(void *)(arena + arg[1]) + 1;
    for (int i = 0; i < count; i++) {
        x = x * 1664525u + 1013904223u;
        weight[i] = ((float)(x >> 8) / 0x1p24f - 0.5f) * 0.2f;
    }
}

static void start_conv(char *arena, const size_t *arg, int first, int last,
                       int grid, int phase) {
    (void)phase;
    (void)first, (void)last, (void)grid;
    start(arena, arg, CONV_SIZE);
}

static void start_linear(char *arena, const size_t *arg, int first, int last,
                         int grid, int phase) {
    (void)phase;
    (void)first, (void)last, (void)grid;
    start(arena, arg, LINEAR_SIZE);
}

enum {
    WIDEN,
    RELU,
    SOFTMAX,
    RELU_GRAD,
    UPDATE_CONV,
    UPDATE_LINEAR,
    COUNT_STEP,
    START_CONV,
    START_LINEAR
};

#define KERNEL(function)                                                       \
    { .name = #function, .host = function, .phases = 1 }

static const RtKernel kernels[] = {
    [WIDEN] = KERNEL(widen),
    [RELU] = KERNEL(relu),
    [SOFTMAX] = KERNEL(softmax),
    [RELU_GRAD] = KERNEL(relu_grad),
    [UPDATE_CONV] = KERNEL(update_conv),
    [UPDATE_LINEAR] = KERNEL(update_linear),
    [COUNT_STEP] = KERNEL(count_step),
    [START_CONV] = KERNEL(start_conv),
    [START_LINEAR] = KERNEL(start_linear),
};

enum { CONV, LINEAR, HIDDEN_GRAD, LINEAR_GRAD, CONV_GRAD };

#define WINDOW                                                                 \
    .n = N, .h = H, .w = W, .c = C, .k = K, .r = 3, .s = 3, .oh = H, .ow = W,  \
    .stride = {1, 1}, .dilation = {1, 1}, .pad = {1, 1, 1, 1}, .groups = 1

static const RtCall calls[] = {
    [CONV] = {.kind = RT_CONV, WINDOW},
    [LINEAR] =
        {.kind = RT_MATMUL, .batch = 1, .n = N, .k = CLASSES, .c = FEATURES},
    [HIDDEN_GRAD] = {.kind = RT_MATMUL,
                     .batch = 1,
                     .n = N,
                     .k = FEATURES,
                     .c = CLASSES,
                     .tb = true},
    [LINEAR_GRAD] = {.kind = RT_MATMUL,
                     .batch = 1,
                     .n = FEATURES,
                     .k = CLASSES,
                     .c = N,
                     .ta = true},
    [CONV_GRAD] = {.kind = RT_CONV_GRAD_WEIGHT, WINDOW},
};

static void init(RtDevice *d) {
    LAUNCH(d, START_CONV, 1, AT_CONV, AT_RUN);
    LAUNCH(d, START_LINEAR, 1, AT_LINEAR, AT_RUN);
}

static void forward(RtDevice *d) {
    rt_phase(d, RT_FORWARD);
    LAUNCH(d, WIDEN, 16, AT_IMAGE, AT_X);
    rt_contract(d, CONV, AT_X, AT_CONV, AT_HIDDEN);
    LAUNCH(d, RELU, 16, AT_HIDDEN);
    rt_contract(d, LINEAR, AT_HIDDEN, AT_LINEAR, AT_LOGITS);
    LAUNCH(d, SOFTMAX, 1, AT_LOGITS, AT_LABEL, AT_VALID, AT_GRAD, AT_METRIC,
           AT_METRIC + 4, AT_METRIC + 8);
}

static void train(RtDevice *d) {
    forward(d);
    rt_phase(d, RT_BACKWARD);
    rt_contract(d, HIDDEN_GRAD, AT_GRAD, AT_LINEAR, AT_HIDDEN_GRAD);
    rt_contract(d, LINEAR_GRAD, AT_HIDDEN, AT_GRAD, AT_LINEAR_GRAD);
    LAUNCH(d, RELU_GRAD, 16, AT_HIDDEN, AT_HIDDEN_GRAD);
    rt_contract(d, CONV_GRAD, AT_HIDDEN_GRAD, AT_X, AT_CONV_GRAD);
    rt_phase(d, RT_UPDATE);
    LAUNCH(d, UPDATE_CONV, UPDATE_BLOCKS, AT_CONV, AT_CONV_SPEED, AT_CONV_GRAD,
           AT_RUN, AT_METRIC + 12);
    LAUNCH(d, UPDATE_LINEAR, UPDATE_BLOCKS, AT_LINEAR, AT_LINEAR_SPEED,
           AT_LINEAR_GRAD, AT_RUN, AT_METRIC + 12);
    LAUNCH(d, COUNT_STEP, 1, AT_RUN + 12);
}

static const RtState states[] = {
    {"conv.weight", RT_PARAM, RT_F32, 4, {K, 3, 3, C}, AT_CONV, 0},
    {"linear.weight", RT_PARAM, RT_F32, 2, {FEATURES, CLASSES}, AT_LINEAR, 0},
    {"conv.weight.velocity",
     RT_OPTIMIZER,
     RT_F32,
     4,
     {K, 3, 3, C},
     AT_CONV_SPEED,
     0},
    {"linear.weight.velocity",
     RT_OPTIMIZER,
     RT_F32,
     2,
     {FEATURES, CLASSES},
     AT_LINEAR_SPEED,
     0},
    {"run.seed", RT_RUN, RT_I32, 0, {0}, AT_RUN, 0},
    {"run.steps", RT_RUN, RT_I32, 0, {0}, AT_RUN + 4, 0},
    {"run.epoch_steps", RT_RUN, RT_I32, 0, {0}, AT_RUN + 8, 0},
    {"run.step", RT_RUN, RT_I32, 0, {0}, AT_RUN + 12, 0},
    {"metric.loss", RT_METRIC, RT_F32, 0, {0}, AT_METRIC, 0},
    {"metric.correct", RT_METRIC, RT_F32, 0, {0}, AT_METRIC + 4, 0},
    {"metric.count", RT_METRIC, RT_F32, 0, {0}, AT_METRIC + 8, 0},
    {"metric.lr", RT_METRIC, RT_F32, 0, {0}, AT_METRIC + 12, 0},
};

static const RtInput inputs[] = {
    {"image", RT_U8, 4, {N, H, W, C}, AT_IMAGE},
    {"label", RT_I32, 1, {N}, AT_LABEL},
    {"valid", RT_I32, 0, {0}, AT_VALID},
};

static const RtStep steps[] = {
    {.kind = RT_INIT, .run = init},
    {.kind = RT_TRAIN, .run = train, .input = inputs, .num_inputs = 3},
    {.kind = RT_EVAL, .run = forward, .input = inputs, .num_inputs = 3},
};
_Static_assert(sizeof steps / sizeof steps[0] == TINY_STEPS,
               "tiny.h has another number of steps");

static const RtPlan plan = {
    .device = "host",
    .arena_bytes = AT_END,
    .state = states,
    .num_states = sizeof states / sizeof states[0],
    .kernel = kernels,
    .num_kernels = sizeof kernels / sizeof kernels[0],
    .call = calls,
    .num_calls = sizeof calls / sizeof calls[0],
    .step = steps,
    .num_steps = sizeof steps / sizeof steps[0],
};

static const RtTime stages[] = {{0, RT_STEPS}};

// Few, since each run draws them.
static const RtSetting data[] = {{"samples", TINY_EPOCH *N - N / 2, NULL},
                                 {"test", TINY_TESTS, NULL}};

const RtTrainer tiny = {
    .model = "Tiny",
    .file = "tiny.net",
    .version = "0.2.0",
    .fingerprint = 0x0123456789abcdef,
    .data_format = "cifar10",
    .data_path = "data/tiny",
    .data_setting = data,
    .num_data_settings = sizeof data / sizeof data[0],
    .image = {RT_U8, 3, {H, W, C}},
    .label = {RT_I32, 0, {0}},
    .classes = CLASSES,
    .batch = N,
    .length = {2.5, RT_EPOCHS},
    .accumulate = 1,
    .stage_from = stages,
    .num_stages = 1,
    .eval_every = {1, RT_EPOCHS},
    .checkpoint_every = {1, RT_EPOCHS},
    .checkpoint_keep = 2,
    .plan = &plan,
    .num_plans = 1,
};
