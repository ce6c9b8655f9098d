// The suites that main.c runs.
#ifndef TESTS_NUMBERS_SUITES_H
#define TESTS_NUMBERS_SUITES_H

#include <check.h>

Suite *cases_suite(void);
Suite *layers_suite(void);

#endif
