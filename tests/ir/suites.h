// The suites of this folder, and how they get their graphs: as text.
#ifndef TESTS_IR_SUITES_H
#define TESTS_IR_SUITES_H

#include "ir/ir.h"

#include <check.h>

Suite *type_suite(void);
Suite *graph_suite(void);
Suite *shape_suite(void);
Suite *read_suite(void);
Suite *verify_suite(void);
Suite *eval_suite(void);
Suite *samples_suite(void);

// The graph whose nodes are the lines of body; fails the test when it cannot
// be read.
Graph *graph_of(Arena *a, const char *body);

// A line of such a body: input number n, of a type.
#define INPUT(n, type) "%" #n " = input {name = \"x" #n "\"} : " type "\n"

#endif
