// Listing: prints a disassembler's output, kernel by kernel in the order of the
// launches, with the lines of its instructions.
//
// nvdisasm prints the sections of a file in their order.  The section of a
// kernel has assembler directives, labels, and instructions behind their
// addresses, as /*01a0*/.  Before an instruction of another location is
//
//   //## File "/cuda.h", line 40 inlined at "/home/me/lenet.cu", line 9
//
// and then the same for that location, up to one that is not inlined.
#include "tools/show/inspect.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PATH = 4095, CODE_LINE = 128 };

typedef struct {
    Arena *arena;
    const Source *const *source; // ends with NULL
    const char *file;            // of the next instructions; NULL: not known
    int line;
    bool chosen; // from the lines just above
    bool moved;  // since the last instruction
    size_t last; // the address of the last instruction
    Text code;   // of the kernel
    size_t kept; // of it, without padding of its last line
} Lister;

// ---- locations ----

// Whether a path ends with a name, which may have folders of its own.
static bool is_called(const char *path, const char *name) {
    size_t length = strlen(path), tail = strlen(name);
    return tail <= length && strcmp(path + length - tail, name) == 0 &&
           (tail == length || path[length - tail - 1] == '/');
}

// Selects the longest name with which the path ends.
static const char *location_file(const Source *const *source,
                                 const char *path) {
    const char *slash = strrchr(path, '/'), *best = slash ? slash + 1 : path;
    for (; *source != NULL; source++)
        if (is_called(path, (*source)->name) &&
            strlen((*source)->name) > strlen(best))
            best = (*source)->name;
    return best;
}

// Whether a file is a header, such as the prelude, and not a kernel's.
static bool file_is_header(const char *path) {
    size_t length = strlen(path);
    return length > 1 && strcmp(path + length - 2, ".h") == 0;
}

// Instructions belong to the innermost location that is not in a header.  Code
// that is inlined into a header alone belongs to the location before.
static void location_read(Lister *l, const char *text) {
    static const char form[] = " //## File \"%4095[^\"]\", line %d";
    char path[MAX_PATH + 1];
    int line;
    if (l->chosen || sscanf(text, form, path, &line) != 2 ||
        file_is_header(path))
        return;
    const char *name = location_file(l->source, path);
    l->chosen = true;
    if (l->file && strcmp(l->file, name) == 0 && l->line == line)
        return;
    l->file = arena_string(l->arena, name, strlen(name));
    l->line = line;
    l->moved = true;
}

static void location_add(Lister *l) {
    text_add(&l->code, "        // %s:%d", l->file, l->line);
    for (int i = 0; l->source[i] != NULL; i++) {
        const Source *s = l->source[i];
        if (strcmp(s->name, l->file) != 0 || l->line < 1 ||
            l->line > s->num_lines)
            continue;
        size_t length;
        const char *text = source_line(s, l->line, &length);
        size_t blanks = strspn(text, " ");
        if (blanks < length)
            text_add(&l->code, "  %.*s", (int)(length - blanks), text + blanks);
        break;
    }
    text_add(&l->code, "\n");
    l->moved = false;
}

// ---- a kernel ----

static void instruction_add(Lister *l, const char *line, const char *code) {
    if (l->moved)
        location_add(l);
    l->chosen = false;
    l->last = strtoul(line + strspn(line, " \t/*"), NULL, 16);
    text_add(&l->code, "%s\n", line);
    if (strncmp(code, "NOP", 3) != 0)
        l->kept = l->code.length;
}

static void line_add(Lister *l, const char *line) {
    const char *start = line + strspn(line, " \t");
    const char *behind = strstr(start, "*/");
    size_t length = strlen(line);
    if (strncmp(start, "/*", 2) == 0 && behind)
        instruction_add(l, line, behind + 2 + strspn(behind + 2, " \t"));
    else if (start == line && length > 0 && line[length - 1] == ':')
        text_add(&l->code, "%s\n", line);
    else
        location_read(l, line);
}

static const char *kernel_find(Arena *a, const char *said, const char *name) {
    const char *label = arena_format(a, "\n.text.%s:\n", name);
    const char *start = strstr(said, label);
    return start ? start + strlen(label) : NULL;
}

// Bytes of the kernel's section in the disassembled file.
static size_t section_bytes(const Code *code, const char *kernel) {
    const char text[] = ".text.";
    Elf64_Ehdr file;
    memcpy(&file, code->bytes, sizeof file);
    const char *table = code->bytes + file.e_shoff;
    Elf64_Shdr names, section;
    memcpy(&names, table + file.e_shstrndx * sizeof names, sizeof names);
    for (int i = 0; i < file.e_shnum; i++) {
        memcpy(&section, table + (size_t)i * sizeof section, sizeof section);
        const char *name = code->bytes + names.sh_offset + section.sh_name;
        if (strncmp(name, text, sizeof text - 1) == 0 &&
            strcmp(name + sizeof text - 1, kernel) == 0)
            return section.sh_size;
    }
    return 0;
}

// Adds the comment at the start of a text.
static void comment_add(Text *out, const char *text) {
    const char *end = text;
    while (strncmp(end, "//", 2) == 0)
        end += strcspn(end, "\n") + 1;
    text_bytes(out, text, (size_t)(end - text));
}

// Adds a kernel; false if more than padding of its last line is missing.
static bool kernel_add(Lister *l, Text *out, const char *said, const Code *code,
                       const CodeText *kernel) {
    const char *s = kernel_find(l->arena, said, kernel->name);
    l->file = NULL;
    l->chosen = l->moved = false;
    l->code.length = l->kept = l->last = 0;
    while (s && *s && strncmp(s, "//-", 3) != 0) {
        size_t length = strcspn(s, "\n");
        line_add(l, arena_string(l->arena, s, length));
        s += length + (s[length] == '\n');
    }
    text_add(out, "\n");
    comment_add(out, kernel->text);
    text_add(out, "%s:\n", kernel->name);
    text_bytes(out, text_string(&l->code), l->kept);
    return l->kept > 0 &&
           l->last + CODE_LINE >= section_bytes(code, kernel->name);
}

const char *listing_add(Arena *a, Text *out, const char *said, const Code *code,
                        const Source *const *source) {
    Lister l = {.arena = a, .code = text_new(a), .source = source};
    for (int i = 0; i < code->count; i++)
        if (code->text[i].name &&
            !kernel_add(&l, out, said, code, &code->text[i]))
            return code->text[i].name;
    return NULL;
}
