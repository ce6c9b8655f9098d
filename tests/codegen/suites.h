#ifndef TESTS_CODEGEN_SUITES_H
#define TESTS_CODEGEN_SUITES_H

#include <check.h>

Suite *agree_suite(void);
Suite *average_suite(void);
Suite *fma_suite(void);
Suite *pointwise_suite(void);
Suite *program_suite(void);
Suite *parametrize_suite(void);
Suite *sums_suite(void);
Suite *tree_suite(void);

#endif
