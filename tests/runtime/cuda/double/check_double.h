// Declarations that the suites of the stand-in share.
#ifndef TESTS_DOUBLE_CHECK_H
#define TESTS_DOUBLE_CHECK_H

#define _DEFAULT_SOURCE
#include <check.h>
#include <cuda.h>
#include <nvrtc.h>
#include <stdbool.h>

#define GOOD(call) ck_assert_int_eq((call), CUDA_SUCCESS)

// Opens the device, with streams in the order of this seed.
void double_open(const char *seed);
CUstream double_stream(void);
CUdeviceptr double_memory(size_t bytes);
// Code for an architecture, to be freed; "compute_NN" is assembly.
char *double_image(const char *text, const char *architecture);
// The kernel of a text that follows the prelude.
CUfunction double_kernel(const char *text, const char *name);
void double_launch(CUfunction f, int grid, CUstream s, void **argument);

Suite *capture_suite(void);
Suite *dnn_suite(void);
Suite *fault_suite(void);
Suite *kernel_suite(void);
Suite *memory_suite(void);
Suite *nccl_suite(void);
Suite *number_suite(void);
Suite *product_suite(void);
Suite *stream_suite(void);

#endif
