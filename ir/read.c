// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Read: text as a graph; print.c describes the form.
//
// Each function reads the rule above it at r->at, and returns whether it was
// there; the first mistake is kept.  A node ends with its line.
// Time and memory are linear in the text, whatever bytes it holds.

#include "ir/form.h"

#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_STRING = 1 << 20, // bytes between quotes
    MAX_LIST = 1 << 20,   // numbers between brackets
};

typedef struct {
    Arena *arena;
    Graph *g;
    const char *at, *end;
    long line;
    const char *error;
    const char *file, *path; // the last origin's, which the next may share
} Reader;

__attribute__((format(printf, 2, 3))) static bool
fail(Reader *r, const char *format, ...) {
    if (r->error)
        return false;
    Text t = text_new(r->arena);
    text_add(&t, "%ld: ", r->line);
    va_list list;
    va_start(list, format);
    text_addv(&t, format, list);
    va_end(list);
    r->error = text_string(&t);
    return false;
}

// ---- characters ----

static void skip_blanks(Reader *r) {
    while (r->at < r->end &&
           (*r->at == ' ' || *r->at == '\t' || *r->at == '\r'))
        r->at++;
}

static bool next_is(Reader *r, char c) {
    skip_blanks(r);
    return r->at < r->end && *r->at == c;
}

static bool accept(Reader *r, char c) {
    if (!next_is(r, c))
        return false;
    r->at++;
    return true;
}

static bool expect(Reader *r, char c) {
    return accept(r, c) || fail(r, "expected '%c'", c);
}

static bool read_line_end(Reader *r) {
    skip_blanks(r);
    if (r->at == r->end)
        return true;
    if (*r->at != '\n')
        return fail(r, "expected the end of the line");
    r->at++;
    r->line++;
    return true;
}

// Empty lines and lines of comment.
static void skip_lines(Reader *r) {
    for (;;) {
        if (next_is(r, '#'))
            while (r->at < r->end && *r->at != '\n')
                r->at++;
        if (!next_is(r, '\n'))
            return;
        r->at++;
        r->line++;
    }
}

// ---- words and numbers ----

static bool word_char(char c) {
    return isalnum((unsigned char)c) || (c != '\0' && strchr("_.-/", c));
}

// word = one or more of A-Z a-z 0-9 _ . - /
static bool read_word(Reader *r, const char *what, const char **word,
                      size_t *length) {
    skip_blanks(r);
    *word = r->at;
    while (r->at < r->end && word_char(*r->at))
        r->at++;
    *length = (size_t)(r->at - *word);
    return *length > 0 || fail(r, "expected %s", what);
}

static bool word_is(const char *word, size_t length, const char *s) {
    return strlen(s) == length && memcmp(word, s, length) == 0;
}

static bool unknown(Reader *r, const char *what, const char *word,
                    size_t length) {
    return fail(r, "unknown %s '%.*s'", what, length < 40 ? (int)length : 40,
                word);
}

// integer = "-"? digit+
static bool read_int(Reader *r, int64_t least, int64_t most, int64_t *value) {
    bool negative = accept(r, '-');
    int64_t sum = 0;
    if (r->at == r->end || !isdigit((unsigned char)*r->at))
        return fail(r, "expected an integer");
    for (; r->at < r->end && isdigit((unsigned char)*r->at); r->at++)
        if (__builtin_mul_overflow(sum, 10, &sum) ||
            __builtin_sub_overflow(sum, *r->at - '0', &sum))
            return fail(r, "the integer is too large");
    if (!negative && __builtin_sub_overflow((int64_t)0, sum, &sum))
        return fail(r, "the integer is too large");
    if (sum < least || sum > most)
        return fail(r, "the integer is not in %lld .. %lld", (long long)least,
                    (long long)most);
    *value = sum;
    return true;
}

// number = as for strtod, at most 63 characters
static bool read_double(Reader *r, double *value) {
    char digits[64];
    size_t length = 0;
    skip_blanks(r);
    while (r->at < r->end && length < sizeof digits - 1 &&
           (word_char(*r->at) || *r->at == '+'))
        digits[length++] = *r->at++;
    digits[length] = '\0';
    char *end;
    *value = strtod(digits, &end);
    return (length > 0 && *end == '\0') || fail(r, "expected a number");
}

// The bytes up to the closing quote, 0 if there is none on the line.
static size_t quoted_length(const Reader *r) {
    const char *s = r->at;
    while (s < r->end && *s != '"' && *s != '\n' && *s != '\0')
        s += *s == '\\' && s + 1 < r->end ? 2 : 1;
    return s < r->end && *s == '"' ? (size_t)(s - r->at) + 1 : 0;
}

static int hex_digit(char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
}

// The byte that follows a backslash; r->at is at the last of its letters
// afterwards.
static bool read_escape(Reader *r, char *byte) {
    r->at++;
    *byte = *r->at == 'n' ? '\n' : *r->at;
    if (*r->at == 'n' || *r->at == '"' || *r->at == '\\')
        return true;
    int high = *r->at == 'x' ? hex_digit(r->at[1]) : -1;
    int low = high >= 0 ? hex_digit(r->at[2]) : -1;
    if (low < 0 || high + low == 0)
        return fail(r, "unknown escape in a string");
    *byte = (char)(16 * high + low);
    r->at += 2;
    return true;
}

// string = '"' (any byte | '\"' | '\\' | '\n' | '\x' digit digit)* '"'
static bool read_quoted(Reader *r, const char **string, int *length) {
    if (!expect(r, '"'))
        return false;
    size_t most = quoted_length(r);
    if (most == 0)
        return fail(r, "the string does not end");
    if (most > MAX_STRING)
        return fail(r, "the string is longer than %d bytes", MAX_STRING);
    char *to = arena_alloc(r->arena, most);
    *length = 0;
    for (; *r->at != '"'; r->at++) {
        to[*length] = *r->at;
        if (*r->at == '\\' && !read_escape(r, &to[*length]))
            return false;
        ++*length;
    }
    r->at++;
    *string = to;
    return true;
}

// name = word | string
static bool read_name(Reader *r, const char *what, const char **name) {
    int ignored;
    size_t length;
    if (next_is(r, '"'))
        return read_quoted(r, name, &ignored);
    if (!read_word(r, what, name, &length))
        return false;
    *name = arena_string(r->arena, *name, length);
    return true;
}

// ---- attributes ----

// An upper bound for the numbers of the list that starts here.
static bool measure_list(Reader *r, size_t *most) {
    *most = 1;
    for (const char *s = r->at; s < r->end && *s != ']' && *s != '\n'; s++)
        *most += *s == ',';
    return *most <= MAX_LIST ||
           fail(r, "the list has more than %d numbers", MAX_LIST);
}

// list = "[" (number ("," number)*)? "]"
static bool read_list(Reader *r, Attr *attr) {
    size_t most;
    if (!expect(r, '[') || !measure_list(r, &most))
        return false;
    bool whole = attr_info[attr->key].kind == INTS;
    int64_t *ints = whole ? ARENA_ARRAY(r->arena, most, int64_t) : NULL;
    double *floats = whole ? NULL : ARENA_ARRAY(r->arena, most, double);
    if (whole)
        attr->ints = ints;
    else
        attr->floats = floats;
    if (accept(r, ']'))
        return true;
    do {
        if (whole ? !read_int(r, INT64_MIN, INT64_MAX, &ints[attr->count])
                  : !read_double(r, &floats[attr->count]))
            return false;
        attr->count++;
    } while (accept(r, ','));
    return expect(r, ']');
}

// attr = word "=" (integer | number | string | list)
static bool read_attr(Reader *r, Attr *attr) {
    const char *word;
    size_t length;
    if (!read_word(r, "an attribute", &word, &length))
        return false;
    int key = 0;
    while (key < NUM_ATTRS && !word_is(word, length, attr_info[key].name))
        key++;
    if (key == NUM_ATTRS)
        return unknown(r, "attribute", word, length);
    *attr = (Attr){.key = (AttrKey)key};
    if (!expect(r, '='))
        return false;
    switch (attr_info[key].kind) {
    case INT:
        return read_int(r, INT64_MIN, INT64_MAX, &attr->i);
    case FLOAT:
        return read_double(r, &attr->f);
    case TEXT:
        return read_quoted(r, &attr->s, &attr->count);
    default:
        return read_list(r, attr);
    }
}

// Puts attr in order of key among the first count of list.
static bool insert_attr(Reader *r, Attr *list, int count, Attr attr) {
    int i = count;
    while (i > 0 && list[i - 1].key > attr.key)
        i--;
    if (i > 0 && list[i - 1].key == attr.key)
        return fail(r, "attribute '%s' is given twice",
                    attr_info[attr.key].name);
    memmove(&list[i + 1], &list[i], (size_t)(count - i) * sizeof *list);
    list[i] = attr;
    return true;
}

// attrs = "{" (attr ("," attr)*)? "}"
static bool read_attrs(Reader *r, Attr *list, int *count) {
    if (!accept(r, '{') || accept(r, '}'))
        return true;
    do {
        Attr attr;
        if (!read_attr(r, &attr) || !insert_attr(r, list, *count, attr))
            return false;
        ++*count;
    } while (accept(r, ','));
    return expect(r, '}');
}

// ---- nodes ----

static bool read_id(Reader *r, NodeId *id) {
    int64_t number;
    if (!expect(r, '%') || !read_int(r, 0, MAX_NODES - 1, &number))
        return false;
    *id = (NodeId)number;
    return true;
}

// operands = (id ("," id)*)?
static bool read_operands(Reader *r, Node *n) {
    size_t most = 1;
    if (!next_is(r, '%'))
        return true;
    for (const char *s = r->at; s < r->end && (*s != '{' && *s != '\n'); s++)
        most += *s == ',';
    if (most > MAX_NODES)
        return fail(r, "there are too many operands");
    NodeId *arg = ARENA_ARRAY(r->arena, most, NodeId);
    n->arg = arg;
    do
        if (!read_id(r, &arg[n->num_args++]))
            return false;
    while (accept(r, ','));
    return true;
}

static bool read_dtype(Reader *r, DType *dtype) {
    const char *word;
    size_t length;
    if (!read_word(r, "an element type", &word, &length))
        return false;
    return dtype_find(word, length, dtype) ||
           unknown(r, "element type", word, length);
}

// type = dtype "[" (integer ("," integer)*)? "]"
static bool read_type(Reader *r, Type *type) {
    if (!read_dtype(r, &type->dtype) || !expect(r, '['))
        return false;
    if (accept(r, ']'))
        return true;
    do {
        if (type->rank == MAX_RANK)
            return fail(r, "there are more than %d dimensions", MAX_RANK);
        if (!read_int(r, 0, INT32_MAX, &type->dim[type->rank++]))
            return false;
    } while (accept(r, ','));
    return expect(r, ']');
}

// Gives s, or the string that the origin before had if it is the same.
static const char *shared(const char **last, const char *s) {
    if (*last == NULL || strcmp(*last, s) != 0)
        *last = s;
    return *last;
}

// origin = (name ":" integer)? name? "full"? "backward"?
static bool read_origin(Reader *r, Origin *from) {
    while (!next_is(r, '\n') && r->at < r->end) {
        bool word = *r->at != '"';
        const char *name;
        int64_t line;
        if (from->backward || !read_name(r, "file:line or a path", &name))
            return fail(r, "expected the end of the line");
        if (!from->file && !from->path && accept(r, ':')) {
            if (!read_int(r, INT_MIN, INT_MAX, &line))
                return false;
            from->file = shared(&r->file, name);
            from->line = (int)line;
        } else if (word && !from->full_precision && strcmp(name, "full") == 0) {
            from->full_precision = true;
        } else if (word && strcmp(name, "backward") == 0) {
            from->backward = true;
        } else if (!from->path && !from->full_precision) {
            from->path = shared(&r->path, name);
        } else {
            return fail(r, "expected the end of the line");
        }
    }
    return true;
}

static bool read_reason(Reader *r, Reason *why) {
    const char *word;
    size_t length;
    if (!read_word(r, "a reason", &word, &length))
        return false;
    for (int i = REASON_none + 1; i < NUM_REASONS; i++)
        if (word_is(word, length, reason_info[i].name)) {
            *why = (Reason)i;
            return true;
        }
    return unknown(r, "reason", word, length);
}

// decoration = ("!" "g" integer)? ("~" reason)? ("@" integer)? ("#" origin)?
static bool read_decoration(Reader *r, Node *n) {
    int64_t group = -1;
    if (accept(r, '!') && (!expect(r, 'g') || !read_int(r, 0, INT_MAX, &group)))
        return false;
    n->group = (int)group;
    n->offset = -1;
    if (accept(r, '~') && !read_reason(r, &n->why))
        return false;
    if (accept(r, '@') && !read_int(r, 0, INT64_MAX, &n->offset))
        return false;
    return !accept(r, '#') || read_origin(r, &n->from);
}

static bool read_op(Reader *r, Op *op) {
    const char *word;
    size_t length;
    if (!read_word(r, "an operation", &word, &length))
        return false;
    return op_find(word, length, op) || unknown(r, "operation", word, length);
}

// node = id "=" op operands attrs? ":" type decoration
static bool read_node(Reader *r) {
    Attr attr[NUM_ATTRS];
    Type type = {.dtype = F32};
    Node n = {.op = OP_input, .type = &type, .attr = attr};
    NodeId id;
    if (!read_id(r, &id))
        return false;
    if (id != r->g->count)
        return fail(r, "expected %%%lu", (unsigned long)r->g->count);
    if (!expect(r, '=') || !read_op(r, &n.op) || !read_operands(r, &n) ||
        !read_attrs(r, attr, &n.num_attrs) || !expect(r, ':') ||
        !read_type(r, &type) || !read_decoration(r, &n) || !read_line_end(r))
        return false;
    graph_append(r->g, n);
    return true;
}

// ---- the graph ----

// fact = word | "act" "=" dtype | ("arena" | "multiprocessors") "=" integer
static bool read_fact(Reader *r) {
    const char *word;
    size_t length;
    if (!read_word(r, "a fact", &word, &length))
        return false;
    if (word_is(word, length, "arena"))
        return expect(r, '=') && read_int(r, 0, INT64_MAX, &r->g->arena_bytes);
    if (word_is(word, length, "multiprocessors")) {
        int64_t count = 0;
        bool good =
            expect(r, '=') && read_int(r, 1, MAX_MULTIPROCESSORS, &count);
        r->g->multiprocessors = (int)count;
        return good;
    }
    if (word_is(word, length, "act")) {
        if (!expect(r, '=') || !read_dtype(r, &r->g->act))
            return false;
        return r->g->act == F32 || r->g->act == F16 || r->g->act == BF16 ||
               fail(r, "act must be f32, f16 or bf16");
    }
    for (int i = 0; i < NUM_FACTS; i++)
        if (word_is(word, length, fact_name[i])) {
            r->g->facts |= 1u << i;
            return true;
        }
    return unknown(r, "fact", word, length);
}

// header = "graph" name ("(" fact (("," | ";") fact)* ")")? "{"
static bool read_header(Reader *r) {
    const char *word;
    size_t length;
    if (!read_word(r, "'graph'", &word, &length))
        return false;
    if (!word_is(word, length, "graph"))
        return fail(r, "expected 'graph'");
    if (!read_name(r, "a name", &r->g->name))
        return false;
    if (accept(r, '(')) {
        do
            if (!read_fact(r))
                return false;
        while (accept(r, ',') || accept(r, ';'));
        if (!expect(r, ')'))
            return false;
    }
    return expect(r, '{') && read_line_end(r);
}

// graph = header node* "}"
static bool read_graph(Reader *r) {
    skip_lines(r);
    if (!read_header(r))
        return false;
    for (skip_lines(r); next_is(r, '%'); skip_lines(r))
        if (!read_node(r))
            return false;
    if (!expect(r, '}'))
        return false;
    skip_lines(r);
    return r->at == r->end || fail(r, "expected the end of the text");
}

Graph *graph_read(Arena *a, const char *text, size_t length,
                  const char **error) {
    Reader r = {.arena = a, .at = text, .end = text + length, .line = 1};
    r.g = graph_new(a, "");
    bool good = read_graph(&r);
    *error = r.error;
    return good ? r.g : NULL;
}
