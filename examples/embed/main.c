// Trains a perceptron on generated digits, saves it, and predicts with a second
// library of the same model, which only predicts.
#include "mlp.h"
#include "small.h"

#include <stdio.h>
#include <stdlib.h>

enum { SAMPLES = 1024, PIXELS = 28 * 28, EPOCHS = 5 };

static uint8_t image[SAMPLES][PIXELS];
static int32_t label[SAMPLES];
static float output[mlp_outputs];

// Every tenth pixel, from the label's on, is brighter.
static void samples_draw(void) {
    for (int i = 0; i < SAMPLES; i++) {
        label[i] = i % 10;
        for (int k = 0; k < PIXELS; k++)
            image[i][k] =
                (uint8_t)(rand() % 60 + (k % 10 == label[i] ? 120 : 0));
    }
}

static int largest(const float *logit) {
    int best = 0;
    for (int k = 1; k < mlp_outputs; k++)
        best = logit[k] > logit[best] ? k : best;
    return best;
}

static int train(mlp *m) {
    float loss = 0;
    if (mlp_begin(m, SAMPLES, EPOCHS, 1) != 0)
        return 1;
    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        for (int i = 0; i < SAMPLES; i += mlp_batch)
            if (mlp_train(m, image[i], &label[i], mlp_batch, &loss) != 0)
                return 1;
        printf("epoch %d: loss %.4f\n", epoch + 1, loss);
    }
    return mlp_save(m, "embed.safetensors");
}

static int predict(small *s) {
    int right = 0;
    if (small_load(s, "embed.safetensors") != 0)
        return 1;
    for (int i = 0; i < SAMPLES; i++) {
        if (small_predict(s, image[i], 1, output) != 0)
            return 1;
        right += largest(output) == label[i];
    }
    printf("%d of %d are right\n", right, SAMPLES);
    return 0;
}

int main(void) {
    mlp *m = mlp_create("host", 0);
    small *s = small_create("host", 1);
    samples_draw();
    int failed = m == NULL || train(m) != 0;
    if (failed)
        fprintf(stderr, "mlp: %s\n", mlp_error());
    else if ((failed = s == NULL || predict(s) != 0))
        fprintf(stderr, "small: %s\n", small_error());
    mlp_free(m);
    small_free(s);
    return failed;
}
