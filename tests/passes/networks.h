// Small networks as text, for tests that look at many passes.
#ifndef TESTS_PASSES_NETWORKS_H
#define TESTS_PASSES_NETWORKS_H

// Images to classes: convolution, batch_norm, a residual, pooling, a matrix
// product and cross_entropy.  The first convolution's weight trains with
// momentum, bn.scale with decay; the second convolution is frozen.
extern const char residual_network[];

// The same network as it is evaluated.
extern const char residual_evaluation[];

#endif
