// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Options: see options.h.

#include "base/options.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool option_among(const char *list, char apart, const char *word) {
    size_t length = strlen(word);
    for (const char *at = list; at != NULL; at = strchr(at, apart)) {
        at += *at == apart;
        if (strncmp(at, word, length) == 0 &&
            (at[length] == apart || at[length] == '\0'))
            return true;
    }
    return false;
}

bool option_suits(const Option *o, const char *command) {
    return command == NULL || o->commands == NULL ||
           option_among(o->commands, ' ', command);
}

// ---- values ----

static bool flag_read(const Option *o, const char *text, void *to) {
    (void)text;
    *(bool *)OPTION_FIELD(o, to) = true;
    return true;
}

static bool text_read(const Option *o, const char *text, void *to) {
    *(const char **)OPTION_FIELD(o, to) = text;
    return true;
}

const OptionKind option_flag = {.read = flag_read};
const OptionKind option_text = {.read = text_read};

bool option_whole(const Option *o, const char *text, int64_t *value) {
    char *end;
    errno = 0;
    *value = strtoll(text, &end, 10);
    return isdigit((unsigned char)*text) && *end == '\0' && errno == 0 &&
           *value >= o->least && (o->most == 0 || *value <= o->most);
}

void option_expected(const Option *o, char to[OPTION_ROOM]) {
    int length = snprintf(to, OPTION_ROOM, "%s", o->kind->expects);
    if (o->least > 0 || o->most > 0)
        length += snprintf(to + length, (size_t)(OPTION_ROOM - length),
                           " from %" PRId64, o->least);
    if (o->most > 0)
        snprintf(to + length, (size_t)(OPTION_ROOM - length), " to %" PRId64,
                 o->most);
}

// ---- names ----

// Whether the value may be absent.
static bool may_lack(const Option *o) {
    return o->value == NULL || o->value[0] == '[';
}

void option_form(const Option *o, char between, char to[OPTION_ROOM]) {
    char sign[] = {may_lack(o) ? '\0' : between, '\0'};
    snprintf(to, OPTION_ROOM, "--%s%s%s", o->name, sign,
             o->value ? o->value : "");
}

void option_name(const char *word, char to[OPTION_ROOM]) {
    word += strspn(word, "-");
    snprintf(to, OPTION_ROOM, "%.*s", (int)strcspn(word, "="), word);
}

void options_offer(const Option *table, const char *command, Nearest *near) {
    for (const Option *o = table; o->name; o++)
        if (option_suits(o, command))
            nearest_offer(near, o->name);
}

// ---- words ----

// Whether the word is the option, and the value that is in the same word.
static bool matches(const Option *o, const char *word, const char **value) {
    size_t length = strlen(o->name);
    if (word[0] != '-' || word[1] == '\0')
        return false;
    if (word[1] != '-') {
        *value = word[2] ? word + 2 : NULL;
        return word[1] == o->letter &&
               (*value == NULL) == !isupper((unsigned char)o->letter);
    }
    if (strncmp(word + 2, o->name, length) != 0)
        return false;
    const char *end = word + 2 + length;
    *value = *end == '=' ? end + 1 : NULL;
    return *end == '=' || *end == '\0';
}

static const Option *option_find(OptionReader *r) {
    for (const Option *o = r->table; o->name; o++)
        if (matches(o, r->word[0], &r->value) && option_suits(o, r->command))
            return o;
    return NULL;
}

static const char *word_take(OptionReader *r) {
    r->count--;
    return *r->word++;
}

OptionStep option_step(OptionReader *r) {
    if (r->count <= 0)
        return OPTION_END;
    const Option *o = option_find(r);
    const char *word = r->word[0];
    if (o == NULL && strncmp(word, "--", 2) == 0 && word[2] != '\0')
        return OPTION_UNKNOWN;
    word_take(r);
    if (o == NULL) {
        r->value = word;
        return OPTION_OPERAND;
    }
    r->option = o;
    if (o->value == NULL)
        return r->value == NULL ? OPTION_TAKEN : OPTION_TAKES_NONE;
    if (r->value == NULL && !may_lack(o) && r->count > 0)
        r->value = word_take(r);
    return r->value != NULL || may_lack(o) ? OPTION_TAKEN : OPTION_NEEDS_VALUE;
}
