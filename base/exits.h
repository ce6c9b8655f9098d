// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Exit statuses of sinter and of every trainer.  A program that a signal stops
// ends by that signal: a shell reports 128 plus its number.
#ifndef BASE_EXITS_H
#define BASE_EXITS_H

enum {
    EXIT_GOOD = 0,
    EXIT_MODEL = 1,    // the model file is wrong
    EXIT_USAGE = 2,    // the command line is wrong
    EXIT_DATA = 3,     // a data file or checkpoint is missing or invalid
    EXIT_DEVICE = 4,   // device or driver missing or too old
    EXIT_MEMORY = 5,   // does not fit
    EXIT_DIVERGED = 6, // the loss or gradients are no longer finite
    EXIT_COMPARE = 7,  // a comparison failed
    EXIT_FAULT = 70,   // a bug in sinter
    EXIT_IO = 74,      // reading or writing failed
};

#endif
