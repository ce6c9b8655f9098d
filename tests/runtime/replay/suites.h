// The suites of this folder.
#ifndef TESTS_RUNTIME_REPLAY_SUITES_H
#define TESTS_RUNTIME_REPLAY_SUITES_H

#include <check.h>

Suite *replay_suite(void);

#endif
