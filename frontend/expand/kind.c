// Kinds: the values that a parameter of a builtin accepts.

#include "frontend/expand/interpreter.h"

#include <math.h>
#include <string.h>

// ---- lists of words, separated by spaces ----

const char *next_word(Expansion *e, const char **words) {
    const char *start = *words + strspn(*words, " ");
    size_t length = strcspn(start, " ");
    *words = start + length;
    return length ? arena_string(e->arena, start, length) : NULL;
}

const char *word_list(Expansion *e, const char *words) {
    Text t = text_new(e->arena);
    for (const char *w; (w = next_word(e, &words)) != NULL;)
        text_add(&t, "%s%s", t.length ? ", " : "", w);
    return text_string(&t);
}

bool word_allowed(const char *words, const char *word) {
    size_t length = strlen(word);
    for (const char *w = words; *w != '\0';) {
        size_t end = strcspn(w, " ");
        if (end == length && strncmp(w, word, length) == 0)
            return true;
        w += end + strspn(w + end, " ");
    }
    return false;
}

// ---- descriptions ----

const char *kind_expected(Expansion *e, const ParamInfo *p) {
    switch (p->kind) {
    case TENSOR:
        return "a tensor";
    case OPERAND:
        return "a tensor or a number";
    case TENSORS:
        return "a list of tensors";
    case TERMS:
        return "a tensor, a number or a list of numbers";
    case AXIS:
        return arena_format(e->arena, "one of: %s; or an axis's number",
                            word_list(e, p->words));
    case AXES:
    case AXES_OR_NUMBER:
        return arena_format(e->arena, "of: %s; or axes' numbers; or a list",
                            word_list(e, p->words));
    case SIZES:
        return "a whole number from 1, or a list of whole numbers";
    case INITIALISER:
        return "an initializer, as zeros or normal(0, 0.02), a number or a "
               "list of numbers";
    case NUMBER:
        return "a number";
    case POSITIVE:
        return "a number above 0";
    case FRACTION:
        return "a number from 0 to 1";
    case COUNT:
        return "a whole number from 1";
    case WHOLE:
        return "a whole number from 0";
    case INDEX:
        return "a whole number";
    case PAIR:
        return "a whole number from 1, or [rows, columns]";
    case PADDING:
        return "`same`, `valid`, a whole number, [rows, columns] or "
               "[top, bottom, left, right]";
    case FLAG:
        return "true or false";
    case NAMES:
        return "true, false, or names as in [\"box\"]";
    case NUMBERS:
        return "a number or a list of numbers";
    case LIST:
        return "a list";
    case LISTS:
        return "a list of numbers, or of such lists";
    case WEIGHTS:
        return "a list, or a number for each sample";
    case SCALAR:
        return "a number or a schedule";
    case RATE:
        return "a number from 0, or a schedule";
    case TIME:
        return "a time, as `2 epoch`, `5 step` or 10%";
    case TIME_POINT:
        return "a share of the run, `N epoch` or `N step`";
    case TIME_POINTS:
        return "times, as in [30 epoch, 60 epoch] or [50%, 75%]";
    case STRING:
        return "a string";
    case STRINGS:
        return "a string or a list of strings";
    case WORD:
        return arena_format(e->arena, "one of: %s", word_list(e, p->words));
    case KNOTS:
        return "knots, as in `0: 0, 1: 0.4`";
    }
    return "";
}

// ---- tests ----

bool is_plain(Value v) {
    return v.kind == VALUE_NUMBER && v.unit == UNIT_NONE;
}

static bool is_integer(Value v, double least) {
    return is_plain(v) && v.number >= least && v.number <= INT32_MAX &&
           v.number == floor(v.number);
}

// A list of 2, or of 2 or 4, integers.
static bool is_integer_list(Value v, double least, bool four) {
    if (v.kind != VALUE_LIST ||
        !(v.list.count == 2 || (four && v.list.count == 4)))
        return false;
    for (int i = 0; i < v.list.count; i++)
        if (!is_integer(v.list.item[i], least))
            return false;
    return true;
}

// An axis counts from 0, or from the last, which is -1.
static bool is_axis(Value v) {
    return v.kind == VALUE_WORD || is_integer(v, -MAX_RANK);
}

static bool is_tensor(Value v) {
    return v.kind == VALUE_TENSOR;
}

static bool is_string(Value v) {
    return v.kind == VALUE_STRING;
}

static bool is_size(Value v) {
    return is_integer(v, -1);
}

static bool is_start(Value v) {
    return is_plain(v) ||
           (v.kind == VALUE_CALL && v.call->builtin->class == INITIAL);
}

static bool is_time_point(Value v) {
    return v.kind == VALUE_NUMBER && v.number >= 0 &&
           (v.unit != UNIT_NONE || v.number <= 1);
}

static bool is_scalar(Expansion *e, Value v) {
    return is_plain(v) ||
           (v.kind == VALUE_TENSOR &&
            type_is(node_type(e, v.node), (Type[]){type_scalar(F32)}));
}

// Whether all items, at least one, are good.
static bool is_list_of(Value v, bool (*good)(Value)) {
    if (v.kind != VALUE_LIST)
        return false;
    for (int i = 0; i < v.list.count; i++)
        if (!good(v.list.item[i]))
            return false;
    return v.list.count > 0;
}

bool kind_accepts(Expansion *e, const ParamInfo *p, Value v) {
    switch (p->kind) {
    case TENSOR:
        return is_tensor(v);
    case OPERAND:
        return is_tensor(v) || is_plain(v);
    case TENSORS:
        return is_list_of(v, is_tensor);
    case TERMS:
        return is_tensor(v) || is_plain(v) || is_list_of(v, is_plain) ||
               (v.kind == VALUE_LIST && v.list.count == 0);
    case AXIS:
        return is_axis(v);
    case AXES_OR_NUMBER:
        return is_plain(v) || is_axis(v) || is_list_of(v, is_axis);
    case AXES:
        return is_axis(v) || is_list_of(v, is_axis);
    case SIZES:
        return is_integer(v, 1) || is_list_of(v, is_size);
    case INITIALISER:
        return is_start(v) || v.kind == VALUE_LIST;
    case NUMBER:
        return is_plain(v);
    case POSITIVE:
        return is_plain(v) && v.number > 0;
    case FRACTION:
        return is_plain(v) && v.number >= 0 && v.number <= 1;
    case COUNT:
        return is_integer(v, 1);
    case WHOLE:
        return is_integer(v, 0);
    case INDEX:
        return is_integer(v, -INT32_MAX);
    case PAIR:
        return is_integer(v, 1) || is_integer_list(v, 1, false);
    case PADDING:
        return v.kind == VALUE_WORD || is_integer(v, 0) ||
               is_integer_list(v, 0, true);
    case FLAG:
        return v.kind == VALUE_BOOL;
    case NAMES:
        return v.kind == VALUE_BOOL || is_string(v) || is_list_of(v, is_string);
    case NUMBERS:
        return is_plain(v) || is_list_of(v, is_plain);
    case LIST:
    case LISTS:
        return v.kind == VALUE_LIST; // lists may share items: see literal.c
    case WEIGHTS:
        return v.kind == VALUE_LIST || is_tensor(v);
    case SCALAR:
        return is_scalar(e, v);
    case RATE:
        return is_scalar(e, v) && (!is_plain(v) || v.number >= 0);
    case TIME:
        return time_of_value(v, &(Time){0});
    case TIME_POINT:
        return is_time_point(v);
    case TIME_POINTS:
        return is_time_point(v) || is_list_of(v, is_time_point);
    case STRING:
        return is_string(v);
    case STRINGS:
        return is_string(v) || is_list_of(v, is_string);
    case WORD:
        return v.kind == VALUE_WORD;
    case KNOTS:
        return v.kind == VALUE_KNOT;
    }
    return false;
}

// ---- kinds of values ----

bool advise_kind(Expansion *e, Value v, ValueKind kind, Span at,
                 const char *subject, const char *advice) {
    if (v.kind == kind)
        return true;
    if (v.kind == VALUE_POISON)
        return false;
    Diagnostic *d =
        report(e->diags, D_wrong_kind, at, "%s must be %s, but this is %s",
               subject, value_kind_name(kind), value_described(v));
    if (advice != NULL)
        diag_note(d, "%s", advice);
    if (kind == VALUE_TENSOR)
        note_initialiser(v, d);
    return false;
}

bool expect_kind(Expansion *e, Value v, ValueKind kind, Span at,
                 const char *subject) {
    return advise_kind(e, v, kind, at, subject, NULL);
}
