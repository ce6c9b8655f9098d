// The suites of this folder, and their shared functions.
#ifndef TESTS_FRONTEND_SUITES_H
#define TESTS_FRONTEND_SUITES_H

#include "frontend/frontend.h"

#include <check.h>

Suite *lex_suite(void);
Suite *parse_suite(void);
Suite *expand_suite(void);
Suite *lower_suite(void);
Suite *layers_suite(void);
Suite *recipe_suite(void);
Suite *loss_suite(void);
Suite *initial_suite(void);
Suite *schedule_suite(void);
Suite *limits_suite(void);
Suite *augment_suite(void);
Suite *augment_std_suite(void);
Suite *transform_suite(void);
Suite *format_suite(void);
Suite *docs_suite(void);
Suite *editors_suite(void);
Suite *std_suite(void);
Suite *foreign_suite(void);
Suite *diagnostics_suite(void);

// A program from a model's body and the lines of its train block beside data,
// loss and optimizer; the model takes u8[N, 4, 4, 1], and a width if the body
// uses it; the batch is 4.
typedef struct {
    Arena *arena;
    Diagnostics diags;
    Program *program;
} Loaded;

Loaded load_text(const char *text);
Loaded load_model(const char *body, const char *keys);
Loaded load_with(const char *body, const char *keys, const Setting *setting,
                 int num_settings);

// The codes of all diagnostics, as "E0201 W0601".
const char *codes_of(Loaded *l);

#endif
