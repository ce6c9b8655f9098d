// The suites of this folder.
#ifndef TESTS_REPLAY_SUITES_H
#define TESTS_REPLAY_SUITES_H

#include <check.h>

Suite *replay_suite(void);

#endif
