// Family: kernels that differ in sizes alone are one function on the host.
//
// Layers of one kind repeat with other rows and columns.  On a GPU each kernel
// has its own text, as sizes that are constants are worth having there.  On the
// host, where vectors are as wide for any 64 columns, the first such kernel is
// compiled for all of them and is given the sizes that differ.
//
// A size may differ where it is an offset, a stride, a bound or a factor.  It
// may not where the C compiler makes something of a constant: in a division, in
// brackets, as the length of a vector, or where it is small and so may be the
// length of a loop to unroll.

#include "codegen/emit.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum {
    LEAST_SIZE = 64, // smaller numbers in a text are no sizes
    WHOLE = 64,      // columns that are whole vectors, however wide
    MOST_NAMES = 8,  // in enumerations of a kernel
};

typedef struct {
    const char *s;
    size_t length;
} Word;

// A place in a text where a size is read.
typedef struct {
    Word at, value;
    enum { AS_INT, AS_FLOAT, AS_GROUPS } as; // columns / VW
} Slot;

// A kernel's text and where it has sizes.
typedef struct Sized {
    Kernel *kernel;
    struct Sized *next; // of the same family
    const char *text;
    Text key; // the text without its sizes
    Slot *slot;
    int count;
    Word name[MOST_NAMES], value[MOST_NAMES]; // ROWS, C and WIDTH
    int names;
    char before[2]; // the last characters that are no spaces, the nearer first
    int brackets;
} Sized;

static bool word_is(Word p, const char *word) {
    return p.length == strlen(word) && memcmp(p.s, word, p.length) == 0;
}

static bool same_word(Word x, Word y) {
    return x.length == y.length && memcmp(x.s, y.s, x.length) == 0;
}

static char next_char(const char *s) {
    return s[strspn(s, " \n")];
}

// A word or a number.
static Word word_at(const char *s) {
    bool number = isdigit((unsigned char)*s);
    size_t n = 0;
    while (is_word(s[n]) || (number && s[n] == '.') ||
           (number && (s[n] == '-' || s[n] == '+') && s[n - 1] == 'e'))
        n++;
    return (Word){s, n};
}

static bool word_is_int(Word p) {
    return strspn(p.s, "0123456789") == p.length &&
           strtoll(p.s, NULL, 10) <= INT32_MAX;
}

static bool word_is_float(Word p) {
    return isdigit((unsigned char)*p.s) && p.s[p.length - 1] == 'f' &&
           (memchr(p.s, '.', p.length) || memchr(p.s, 'e', p.length)) &&
           memchr(p.s, 'x', p.length) == NULL;
}

static const Word *value_of(const Sized *z, Word name) {
    for (int i = 0; i < z->names; i++)
        if (same_word(z->name[i], name))
            return &z->value[i];
    return NULL;
}

static bool columns_are_whole(Word columns) {
    return strtoll(columns.s, NULL, 10) % WHOLE == 0;
}

static void slot_add(Arena *a, Sized *z, Slot slot) {
    ARENA_APPEND(a, z->slot, z->count, slot);
    text_add(&z->key, "#%d", slot.as);
}

static void key_add(Sized *z, Word p) {
    text_bytes(&z->key, p.s, p.length);
}

// ---- enumerations ----

// What follows from the columns is the same where they are whole vectors, or
// with the one thread that a block has on the host.
static bool follows_on_host(const Sized *z, Word value) {
    const Word columns = {"C", 1}, *c = value_of(z, columns);
    if (c == NULL || !columns_are_whole(*c))
        return false;
    return word_is(value, "LANES(C)") || word_is(value, "C / VW") ||
           word_is(value, "TILE(CG, NT)");
}

// The key has the value of each name, but for the sizes.
static void value_add(Sized *z, Word value) {
    bool follows = follows_on_host(z, value);
    for (const char *s = value.s; s < value.s + value.length;) {
        Word p = is_word(*s) ? word_at(s) : (Word){s, 1};
        const Word *size = value_of(z, p);
        key_add(z, size && !follows ? *size : p);
        s += p.length;
    }
}

static void name_add(Sized *z, Word name, Word value) {
    bool is_size =
        word_is(name, "ROWS") || word_is(name, "WIDTH") || word_is(name, "C");
    key_add(z, name);
    if (is_size && word_is_int(value) && z->names < MOST_NAMES) {
        z->name[z->names] = name;
        z->value[z->names++] = value;
    } else {
        value_add(z, value);
    }
}

// Reads "enum { NAME = VALUE, ... };" and returns its end.
static const char *enum_scan(Sized *z, const char *s) {
    const char *end = s + strcspn(s, "}\n");
    s += strcspn(s, "{") + 1;
    while (s < end) {
        s += strspn(s, " ,");
        Word name = word_at(s);
        int depth = 0;
        if (name.length == 0)
            break;
        s += name.length + strspn(s + name.length, " =");
        const char *value = s;
        for (; s < end && (*s != ',' || depth > 0); s++)
            depth += (*s == '(') - (*s == ')');
        while (s[-1] == ' ')
            s--;
        name_add(z, name, (Word){value, (size_t)(s - value)});
    }
    return end;
}

// ---- the rest of a text ----

static bool is_divisor(const Sized *z) {
    return z->before[0] == '/' || z->before[0] == '%';
}

// Whether a whole number that stands there is an offset, a stride or a bound.
static bool int_is_size(const Sized *z, Word p) {
    char after = next_char(p.s + p.length);
    bool bound = z->before[0] == '<' && z->before[1] != '<';
    bool between = z->before[0] == ',' && after == ',';
    return z->brackets == 0 && word_is_int(p) &&
           strtoll(p.s, NULL, 10) >= LEAST_SIZE &&
           (z->before[0] == '*' || z->before[0] == '+' || bound || between);
}

// Whether the value of a name may differ where it stands.
static bool name_is_size(const Sized *z, Word p) {
    bool length = z->before[0] == ',' && next_char(p.s + p.length) == ')' &&
                  !word_is(p, "ROWS");
    return z->brackets == 0 && !is_divisor(z) && !length;
}

static void word_scan(Arena *a, Sized *z, Word p) {
    bool groups = word_is(p, "CG");
    const Word *value = value_of(z, groups ? (Word){"C", 1} : p);
    if (value != NULL && groups && !columns_are_whole(*value))
        key_add(z, p);
    else if (value != NULL && name_is_size(z, p))
        slot_add(a, z, (Slot){p, *value, groups ? AS_GROUPS : AS_INT});
    else if (value != NULL)
        key_add(z, *value);
    else if (int_is_size(z, p))
        slot_add(a, z, (Slot){p, p, AS_INT});
    else if (word_is_float(p))
        slot_add(a, z, (Slot){p, p, AS_FLOAT});
    else
        key_add(z, p);
}

static void char_pass(Sized *z, char c) {
    if (c == ' ' || c == '\n')
        return;
    z->brackets += (c == '[') - (c == ']');
    z->before[1] = z->before[0];
    z->before[0] = c;
}

// A kernel's text, or its key, from which only names and comments differ.
static Sized *text_scan(Arena *a, Kernel *k, const char *text) {
    Sized *z = ARENA_NEW(a, Sized);
    *z = (Sized){.kernel = k, .text = text, .key = text_new(a)};
    for (const char *s = text; *s != '\0';) {
        Word p = {s, 1};
        if (s[0] == '/' && s[1] == '/') {
            s += strcspn(s, "\n");
            continue;
        }
        if (strncmp(s, "enum {", 6) == 0) {
            s = enum_scan(z, s);
            continue;
        }
        if (is_word(*s)) {
            p = word_at(s);
            word_scan(a, z, p);
        } else {
            key_add(z, p);
        }
        char_pass(z, s[p.length - 1]);
        s += p.length;
    }
    return z;
}

// ---- which sizes differ ----

// Whether slots i and j of each member have the same value.
static bool slots_agree(const Sized *first, int i, int j) {
    for (const Sized *z = first; z != NULL; z = z->next)
        if (!same_word(z->slot[i].value, z->slot[j].value))
            return false;
    return true;
}

static bool slot_differs(const Sized *first, int i) {
    for (const Sized *z = first->next; z != NULL; z = z->next)
        if (!same_word(z->slot[i].value, first->slot[i].value))
            return true;
    return false;
}

// The number of each slot's size, or -1 where it is the same for all; the
// sizes' slots.
static int sizes_number(const Sized *first, int *number, int *slot) {
    int sizes = 0;
    for (int i = 0; i < first->count; i++) {
        number[i] = -1;
        if (!slot_differs(first, i))
            continue;
        for (int k = 0; k < sizes && number[i] < 0; k++)
            if (slots_agree(first, i, slot[k]))
                number[i] = k;
        if (number[i] < 0) {
            slot[sizes] = i;
            number[i] = sizes++;
        }
    }
    return sizes;
}

// ---- what is written ----

static const char *slot_name(Slot s) {
    return s.as == AS_FLOAT ? "scale" : "size";
}

static void sizes_declare(Text *t, const Sized *z, const int *slot, int sizes) {
    for (int k = 0; k < sizes; k++) {
        Slot s = z->slot[slot[k]];
        bool real = s.as == AS_FLOAT;
        text_add(t, "const %s %s%d = %s(%d, %.*s);\n    ",
                 real ? "float" : "int", slot_name(s), k,
                 real ? "SCALE" : "SIZE", k, (int)s.value.length, s.value.s);
    }
}

// The text of the first with names for the sizes that differ.
static const char *text_with_sizes(Arena *a, const Sized *z, const int *number,
                                   const int *slot, int sizes) {
    Text t = text_new(a);
    const char *s = strstr(z->text, "enum {");
    text_bytes(&t, z->text, (size_t)(s - z->text));
    sizes_declare(&t, z, slot, sizes);
    for (int i = 0; i < z->count; i++) {
        Slot at = z->slot[i];
        if (number[i] < 0)
            continue;
        text_bytes(&t, s, (size_t)(at.at.s - s));
        text_add(&t, at.as == AS_GROUPS ? "(%s%d / VW)" : "%s%d", slot_name(at),
                 number[i]);
        s = at.at.s + at.at.length;
    }
    text_add(&t, "%s", s);
    return text_string(&t);
}

static const char *sizes_text(Arena *a, const Sized *z, const int *slot,
                              int sizes) {
    Text t = text_new(a);
    for (int k = 0; k < sizes; k++) {
        Slot s = z->slot[slot[k]];
        text_add(&t, "%s{.%s = %.*s}", k ? ", " : "", slot_name(s),
                 (int)s.value.length, s.value.s);
    }
    return text_string(&t);
}

static void family_join(Arena *a, Arena *scratch, const Sized *first) {
    Kernel *head = first->kernel;
    int *number = ARENA_ARRAY(scratch, (size_t)first->count + 1, int);
    int *slot = ARENA_ARRAY(scratch, (size_t)first->count + 1, int);
    int sizes = sizes_number(first, number, slot);
    const Sized *own = text_scan(scratch, head, head->text);
    if (sizes == 0 || own->count != first->count)
        return;
    Kernel **last = &head->family;
    for (const Sized *z = first; z != NULL; z = z->next) {
        z->kernel->head = head;
        z->kernel->sizes = sizes_text(a, z, slot, sizes);
        if (z != first) {
            *last = z->kernel;
            last = &z->kernel->family;
        }
    }
    head->text = text_with_sizes(a, own, number, slot, sizes);
}

// ---- families ----

static bool may_have_family(const Kernel *k) {
    const char *begins = strstr(k->text, "    enum {");
    return begins != NULL && strstr(k->text, "TABLE") == NULL;
}

static size_t hash_of(const Sized *z) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < z->key.length; i++)
        hash = (hash ^ (unsigned char)z->key.data[i]) * 0x100000001b3u;
    return (size_t)(hash ^ hash >> 32);
}

static bool same_family(const Sized *x, const Sized *y) {
    return x->key.length == y->key.length &&
           memcmp(x->key.data, y->key.data, x->key.length) == 0;
}

void kernels_gather(Kernel *const *kernel, int count, Arena *a) {
    Arena *scratch = arena_new();
    size_t size = 16;
    while (size < 2 * (size_t)count)
        size *= 2;
    Sized **first = ARENA_ARRAY(scratch, size, Sized *);
    Sized **last = ARENA_ARRAY(scratch, size, Sized *);
    for (int k = 0; k < count; k++) {
        if (!may_have_family(kernel[k]))
            continue;
        Sized *z = text_scan(scratch, kernel[k], kernel[k]->key);
        size_t i = hash_of(z) & (size - 1);
        while (first[i] != NULL && !same_family(first[i], z))
            i = (i + 1) & (size - 1);
        if (first[i] == NULL)
            first[i] = z;
        else
            last[i]->next = z;
        last[i] = z;
    }
    for (size_t i = 0; i < size; i++)
        if (first[i] != NULL && first[i]->next != NULL)
            family_join(a, scratch, first[i]);
    arena_free(scratch);
}
