// Line information: adds #line directives to kernels, so that profilers,
// debuggers and sanitizers show lines of the model.
//
// A statement has the line of the first of its values that its kernel computes,
// or that of the statement before: v12 is %12 of the graph.  No directive is
// within parentheses, as a macro's arguments may contain none, nor between the
// lines of another directive.
#include "tools/lineinfo.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    Arena *arena;
    Text *out;
    int written; // lines
    const char *own;
    const Plan *plan;
    const Graph *g;     // of the section
    NodeId first, last; // of the kernel's operations
    const char *file;   // of the previous statement; NULL: not in a kernel
    int line;
    int depth;      // of parentheses
    bool continued; // the previous line ends in a backslash
} Mapper;

static void line_add(Mapper *m, const char *line, size_t length) {
    text_bytes(m->out, line, length);
    text_add(m->out, "\n");
    m->written++;
    m->continued = length > 0 && line[length - 1] == '\\';
}

static void directive_add(Mapper *m, const char *file, int line) {
    text_add(m->out, "#line %d \"%s\"\n", line, file);
    m->written++;
}

// ---- comments ----

// "// ---- train ----" begins the kernels of a graph.
static bool section_read(Mapper *m, const char *line, size_t length) {
    static const char start[] = "// ---- ";
    if (strncmp(line, start, sizeof start - 1) != 0)
        return false;
    const char *name = line + sizeof start - 1;
    size_t wide = strcspn(name, " ");
    m->file = NULL;
    if (wide < length)
        m->g = plan_graph(m->plan, arena_string(m->arena, name, wide));
    return true;
}

// The end of the first file's name in "lenet.net:8, 9 head.net:4"; NULL if
// there is none.
static const char *name_end(const char *locations) {
    for (const char *s = strchr(locations, ':'); s; s = strchr(s + 1, ':')) {
        size_t digits = strspn(s + 1, "0123456789");
        if (digits > 0 && strchr(", ", s[1 + digits]))
            return s;
    }
    return NULL;
}

// "// k01_normalize: lenet.net:8, 9" and "// %58..%60: ..." begin a kernel.
static void comment_read(Mapper *m, const char *line, size_t length) {
    const char *text = arena_string(m->arena, line, length);
    if (section_read(m, text, length))
        return;
    if (text[3] == '%') {
        const char *dots = strstr(text, "..%");
        m->first = (NodeId)strtoul(text + 4, NULL, 10);
        m->last = dots ? (NodeId)strtoul(dots + 3, NULL, 10) : m->first;
        return;
    }
    const char *colon = strstr(text, ": ");
    const char *number = colon ? name_end(colon + 2) : NULL;
    if (!number)
        return;
    m->file = arena_string(m->arena, colon + 2, (size_t)(number - colon - 2));
    m->line = atoi(number + 1);
    m->depth = 0;
}

// ---- statements ----

static bool is_word(char c) {
    return isalnum((unsigned char)c) || c == '_';
}

// The operation of the kernel that a word such as v12 or out12_1 names.
static NodeId word_node(const Mapper *m, const char *word, size_t length) {
    static const char *const letters[] = {"v",     "out", "s", "q", "near",
                                          "pivot", "d",   "p", "x", "at"};
    size_t wide = 0;
    while (wide < length && islower((unsigned char)word[wide]))
        wide++;
    if (wide == length || !isdigit((unsigned char)word[wide]))
        return NO_NODE;
    NodeId n = (NodeId)strtoul(word + wide, NULL, 10);
    for (size_t i = 0; i < sizeof letters / sizeof letters[0]; i++)
        if (strlen(letters[i]) == wide && strncmp(word, letters[i], wide) == 0)
            return n >= m->first && n <= m->last && n < m->g->count ? n
                                                                    : NO_NODE;
    return NO_NODE;
}

// Sets the line to that of the first value in a statement.
static void statement_read(Mapper *m, const char *line, size_t length) {
    for (size_t i = 0, wide; i < length; i += wide) {
        wide = 0;
        while (i + wide < length && is_word(line[i + wide]))
            wide++;
        NodeId n = wide ? word_node(m, line + i, wide) : NO_NODE;
        wide = wide ? wide : 1;
        if (n == NO_NODE || !m->g->node[n].from.file)
            continue;
        m->file = m->g->node[n].from.file;
        m->line = m->g->node[n].from.line;
        return;
    }
}

static void code_add(Mapper *m, const char *line, size_t length) {
    if (m->file && m->g && m->depth == 0 && !m->continued) {
        statement_read(m, line, length);
        directive_add(m, m->file, m->line);
    }
    for (size_t i = 0; i < length; i++)
        m->depth += (line[i] == '(') - (line[i] == ')');
    line_add(m, line, length);
}

Text lineinfo_add(Arena *a, const Plan *plan, const char *name,
                  const Text *kernels) {
    Text out = text_new(a);
    Mapper m = {.arena = a, .out = &out, .own = name, .plan = plan};
    for (const char *s = text_string(kernels); *s;) {
        size_t length = strcspn(s, "\n");
        bool inside = m.file != NULL;
        if (strncmp(s, "// ", 3) == 0)
            comment_read(&m, s, length);
        // Text between kernels has its own lines again.
        if (inside && length == 0 && m.depth == 0) {
            m.file = NULL;
            directive_add(&m, name, m.written + 2);
        }
        if (length == 0 || *s == '#' || *s == '/')
            line_add(&m, s, length);
        else
            code_add(&m, s, length);
        s += length + (s[length] == '\n');
    }
    return out;
}
