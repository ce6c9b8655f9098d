// The suites of this folder.
#ifndef TESTS_BASE_SUITES_H
#define TESTS_BASE_SUITES_H

#include <check.h>

Suite *arena_suite(void);
Suite *text_suite(void);
Suite *source_suite(void);
Suite *diag_suite(void);
Suite *json_suite(void);
Suite *terminal_suite(void);
Suite *options_suite(void);

#endif
