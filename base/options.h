// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Options: a program's options as a table.  Its parser, help, completions and
// manual pages are made from it.  Nothing here allocates or prints.
#ifndef BASE_OPTIONS_H
#define BASE_OPTIONS_H

#include "base/nearest.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Option Option;

typedef struct {
    const char *expects; // in a message: "a number of steps"
    // Reads a value into the program's struct; false if it is none.  The text
    // is NULL where the option has no value.
    bool (*read)(const Option *o, const char *text, void *to);
} OptionKind;

// A row of a table, whose last row has no name.
struct Option {
    const char *name;  // without dashes
    const char *value; // its placeholder; NULL: a flag; [=PATH]: may be absent
    const OptionKind *kind;
    size_t offset;        // of the field in the program's struct
    int64_t least, most;  // of a whole number; most 0: no limit
    char letter;          // -o for --out; a capital is followed by its value
    const char *commands; // with spaces between; NULL: all
    const char *help;
};

#define OPTION_FIELD(o, to) ((void *)((char *)(to) + (o)->offset))

// Whether a word is one of a list, such as auto|yes|no.
bool option_among(const char *list, char apart, const char *word);

bool option_suits(const Option *o, const char *command);

// The kinds of every program: a bool that becomes true, a const char *.
extern const OptionKind option_flag, option_text;

// Reads decimal digits; false if the number is outside the option's range.
bool option_whole(const Option *o, const char *text, int64_t *value);

enum { OPTION_ROOM = 128 };

// Writes the value that an option expects: "a number of steps from 1 to 9".
void option_expected(const Option *o, char to[OPTION_ROOM]);

// Writes an option and its placeholder, as --data=DIR.
void option_form(const Option *o, char between, char to[OPTION_ROOM]);

// Writes the name in a word such as --data=DIR.
void option_name(const char *word, char to[OPTION_ROOM]);

void options_offer(const Option *table, const char *command, Nearest *near);

// The words of a command line, which option_step takes from the front.
typedef struct {
    const Option *table;
    const char *command;
    char **word;
    int count;
    const Option *option; // the last one
    const char *value;    // its value, or the operand
} OptionReader;

typedef enum {
    OPTION_END,
    OPTION_OPERAND, // or an unknown letter
    OPTION_TAKEN,
    OPTION_UNKNOWN, // the word stays
    OPTION_NEEDS_VALUE,
    OPTION_TAKES_NONE
} OptionStep;

OptionStep option_step(OptionReader *r);

#endif
