// Names of other systems: their equivalents exist.
#include "frontend/foreign.h"
#include "frontend/functions/functions.h"
#include "frontend/train/train.h"
#include "tests/frontend/suites.h"

#include <string.h>

static const struct {
    Foreign where;
    const char *word, *ours, *note;
} rows[] = {
#define FOREIGN(where, word, ours, note) {FOREIGN_##where, word, ours, note},
#include "frontend/foreign.def"
};

static bool is_param(const char *name) {
    for (int i = 0; i < NUM_PARAMS; i++)
        if (strcmp(param_info[i].name, name) == 0)
            return true;
    return false;
}

// A row has a name or a note; and the name exists.
START_TEST(foreign_names_resolve) {
    const char *ours = rows[_i].ours;
    ck_assert_msg((ours == NULL) != (rows[_i].note == NULL), "%s",
                  rows[_i].word);
    if (ours == NULL)
        return;
    // One argument may have different names in different functions.
    if (rows[_i].where != FOREIGN_ARGUMENT)
        ck_assert_str_eq(foreign_name(rows[_i].where, rows[_i].word), ours);
    bool boolean = strcmp(ours, "true") == 0 || strcmp(ours, "false") == 0;
    if (rows[_i].where == FOREIGN_FUNCTION || rows[_i].where == FOREIGN_MODULE)
        ck_assert_msg(boolean || builtin_find(ours) != NULL, "%s", ours);
    if (rows[_i].where == FOREIGN_ARGUMENT)
        ck_assert_msg(is_param(ours), "%s", ours);
    if (rows[_i].where == FOREIGN_KEY)
        ck_assert_msg(key_find(ours) >= 0, "%s", ours);
}
END_TEST

Suite *foreign_suite(void) {
    Suite *s = suite_create("foreign");
    TCase *t = tcase_create("foreign");
    tcase_add_loop_test(t, foreign_names_resolve, 0,
                        sizeof rows / sizeof rows[0]);
    suite_add_tcase(s, t);
    return s;
}
