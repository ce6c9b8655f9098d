// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tokenizer: see tokenizer.h.  Pre-tokenizers divide a text by regular
// expressions, for which PCRE2 is opened.
#define _POSIX_C_SOURCE 200809L

#include "runtime/tokenizer.h"
#include "runtime/library.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

// ---- PCRE2 ----

// clang-format off
#define FUNCTIONS(F) \
    F(pcre2_code *, compile, "pcre2_compile_8", (PCRE2_SPTR, PCRE2_SIZE, uint32_t, int *, PCRE2_SIZE *, pcre2_compile_context *)) \
    F(int, jit, "pcre2_jit_compile_8", (pcre2_code *, uint32_t)) \
    F(int, match, "pcre2_match_8", (const pcre2_code *, PCRE2_SPTR, PCRE2_SIZE, PCRE2_SIZE, uint32_t, pcre2_match_data *, pcre2_match_context *)) \
    F(pcre2_match_data *, match_new, "pcre2_match_data_create_8", (uint32_t, pcre2_general_context *)) \
    F(PCRE2_SIZE *, ends, "pcre2_get_ovector_pointer_8", (pcre2_match_data *)) \
    F(void, match_free, "pcre2_match_data_free_8", (pcre2_match_data *)) \
    F(void, code_free, "pcre2_code_free_8", (pcre2_code *))
// clang-format on

typedef struct {
    void *library;
    FUNCTIONS(RT_FUNCTION)
} Pcre;

static const RtSymbol symbols[] = {
#define F(type, member, name, arguments) {name, offsetof(Pcre, member)},
    FUNCTIONS(F)
#undef F
};

static bool pcre_open(Pcre *p, RtError *e) {
    static const char *const files[] = {"libpcre2-8.so.0", NULL};
    const RtLibrary library = {.needed = "the tokenizer's expressions need",
                               .files = files,
                               .remedy = "install libpcre2-8-0",
                               .status = EXIT_DATA,
                               .symbol = symbols,
                               .num_symbols = sizeof symbols / sizeof *symbols};
    p->library = rt_library_open(&library, p, e);
    return p->library != NULL;
}

// ---- the tokenizer ----

typedef struct {
    char *bytes; // NULL: no token has this number
    size_t length;
    bool added; // found in the text before it is divided
} Token;

// Two tokens side by side that become another; those of lowest rank first.
typedef struct {
    int32_t left, right, whole;
    int rank; // from 1; 0: an empty slot of the table
} Merge;

enum { MAX_SPLITS = 8 };

struct RtTokenizer {
    Token *token;
    int size, room;
    int32_t *slot;    // of a token in a table by its bytes: number + 1
    size_t slots;     // a power of two
    Merge *merge;     // a table by left and right
    size_t merges;    // a power of two
    bool by_bytes;    // tokens are made of bytes, else of characters
    bool whole_first; // a piece that is a token is not merged
    bool prefix_space, any_added;
    int32_t unknown, end; // -1: none
    Pcre pcre;
    pcre2_code *split[MAX_SPLITS]; // each divides the pieces of the one before
    pcre2_match_data *found;
    int num_splits;
};

static bool no_memory(RtError *e) {
    return rt_fail(e, EXIT_MEMORY, "out of memory");
}

// ---- tables ----

static size_t power_above(size_t n) {
    size_t power = 16;
    while (power < 2 * n)
        power *= 2;
    return power;
}

// The slot of a token with these bytes, or of none.
static int32_t *slot_of(const RtTokenizer *t, const char *bytes,
                        size_t length) {
    size_t i = XXH3_64bits(bytes, length) & (t->slots - 1);
    while (t->slot[i] != 0) {
        const Token *own = &t->token[t->slot[i] - 1];
        if (own->length == length && memcmp(own->bytes, bytes, length) == 0)
            break;
        i = (i + 1) & (t->slots - 1);
    }
    return &t->slot[i];
}

static int32_t token_find(const RtTokenizer *t, const char *bytes,
                          size_t length) {
    return *slot_of(t, bytes, length) - 1;
}

static Merge *merge_of(const RtTokenizer *t, int32_t left, int32_t right) {
    int32_t key[] = {left, right};
    size_t i = XXH3_64bits(key, sizeof key) & (t->merges - 1);
    while (t->merge[i].rank != 0 &&
           (t->merge[i].left != left || t->merge[i].right != right))
        i = (i + 1) & (t->merges - 1);
    return &t->merge[i];
}

static bool token_add(RtTokenizer *t, uint64_t number, const char *bytes,
                      size_t length, bool added, RtError *e) {
    enum { MOST = 1 << 22 };
    if (number >= MOST)
        return rt_fail(e, EXIT_DATA, "it has a token above %d", MOST);
    if ((int)number >= t->room) {
        int room = t->room > 0 ? t->room : 256;
        while (room <= (int)number)
            room *= 2;
        Token *more = realloc(t->token, (size_t)room * sizeof *more);
        if (more == NULL)
            return no_memory(e);
        memset(more + t->room, 0, (size_t)(room - t->room) * sizeof *more);
        t->token = more;
        t->room = room;
    }
    Token *own = &t->token[number];
    char *copy = malloc(length + 1);
    if (copy == NULL)
        return no_memory(e);
    memcpy(copy, bytes, length);
    free(own->bytes);
    *own = (Token){copy, length, added};
    t->any_added |= added;
    t->size = (int)number < t->size ? t->size : (int)number + 1;
    return true;
}

static bool index_tokens(RtTokenizer *t, RtError *e) {
    free(t->slot);
    t->slots = power_above((size_t)t->size);
    t->slot = calloc(t->slots, sizeof *t->slot);
    if (t->slot == NULL)
        return no_memory(e);
    for (int i = 0; i < t->size; i++)
        if (t->token[i].bytes != NULL)
            *slot_of(t, t->token[i].bytes, t->token[i].length) = i + 1;
    return true;
}

// ---- characters ----

// Byte-level tokens are written with a printable character for each byte: its
// own for 33 to 126, 161 to 172 and 174 to 255, and those from 256 on for the
// others in turn (Radford et al., GPT-2, encoder.py).
static int byte_of(unsigned code) {
    if (code < 256)
        return (code >= 33 && code <= 126) || (code >= 161 && code != 173)
                   ? (int)code
                   : -1;
    int other = (int)code - 256;
    return other < 33    ? other
           : other < 67  ? 127 + other - 33
           : other == 67 ? 173
                         : -1;
}

// Replaces such characters by their bytes; false if there are others.
static bool bytes_decode(char *s, size_t *length) {
    size_t to = 0;
    for (size_t at = 0, some; at < *length; at += some) {
        unsigned code;
        some = rt_utf8(s + at, *length - at, &code);
        int byte = some > 0 ? byte_of(code) : -1;
        if (byte < 0)
            return false;
        s[to++] = (char)byte;
    }
    *length = to;
    return true;
}

// ---- the file ----

enum { STRING_BYTES = 1 << 16 };

typedef struct {
    RtJson json;
    char key[64], string[STRING_BYTES];
    RtTokenizer *t;
    RtError *e;
    const char *merges; // where they begin; NULL: none were read
} Reader;

static bool refuse(Reader *r, const char *what, const char *which) {
    return rt_fail(r->e, EXIT_DATA, "its %s %s is not supported", what, which);
}

static bool text(Reader *r, size_t *length) {
    if (!rt_json_string(&r->json, r->string, sizeof r->string))
        return false;
    *length = strlen(r->string);
    return true;
}

typedef bool Member(Reader *r, void *context);

// Reads an object's members, or null.
static bool object(Reader *r, Member *member, void *context) {
    if (rt_json_word(&r->json, "null"))
        return true;
    if (!rt_json_take(&r->json, '{'))
        return false;
    for (bool more = !rt_json_accept(&r->json, '}'); more;) {
        if (!rt_json_string(&r->json, r->key, sizeof r->key) ||
            !rt_json_take(&r->json, ':') || !member(r, context))
            return false;
        more = rt_json_accept(&r->json, ',');
        if (!more && !rt_json_take(&r->json, '}'))
            return false;
    }
    return true;
}

static bool list(Reader *r, Member *element, void *context) {
    if (rt_json_word(&r->json, "null"))
        return true;
    if (!rt_json_take(&r->json, '['))
        return false;
    for (bool more = !rt_json_accept(&r->json, ']'); more;) {
        if (!element(r, context))
            return false;
        more = rt_json_accept(&r->json, ',');
        if (!more && !rt_json_take(&r->json, ']'))
            return false;
    }
    return true;
}

static bool key_is(const Reader *r, const char *key) {
    return strcmp(r->key, key) == 0;
}

static bool flag(Reader *r, bool *value) {
    *value = rt_json_word(&r->json, "true");
    return *value || rt_json_word(&r->json, "false") ||
           rt_json_word(&r->json, "null");
}

static bool vocabulary(Reader *r) {
    if (!rt_json_take(&r->json, '{'))
        return false;
    for (bool more = !rt_json_accept(&r->json, '}'); more;) {
        size_t length;
        uint64_t number;
        if (!text(r, &length) || !rt_json_take(&r->json, ':') ||
            !rt_json_count(&r->json, &number) ||
            !token_add(r->t, number, r->string, length, false, r->e))
            return false;
        more = rt_json_accept(&r->json, ',');
        if (!more && !rt_json_take(&r->json, '}'))
            return false;
    }
    return true;
}

static bool model_member(Reader *r, void *context) {
    size_t length;
    bool is;
    (void)context;
    if (key_is(r, "vocab"))
        return vocabulary(r);
    if (key_is(r, "merges")) {
        r->merges = r->json.at;
        return rt_json_skip(&r->json);
    }
    if (key_is(r, "ignore_merges"))
        return flag(r, &r->t->whole_first);
    if (key_is(r, "byte_fallback") || key_is(r, "fuse_unk"))
        return flag(r, &is) && (!is || refuse(r, "model with", r->key));
    if (key_is(r, "dropout"))
        return rt_json_word(&r->json, "null") ||
               refuse(r, "model with", r->key);
    bool is_text = key_is(r, "type") || key_is(r, "unk_token") ||
                   key_is(r, "continuing_subword_prefix") ||
                   key_is(r, "end_of_word_suffix");
    if (!is_text)
        return rt_json_skip(&r->json);
    if (rt_json_word(&r->json, "null"))
        return true;
    if (!text(r, &length))
        return false;
    if (key_is(r, "type"))
        return strcmp(r->string, "BPE") == 0 || refuse(r, "model", r->string);
    if (key_is(r, "unk_token")) {
        // Numbers are known once all members are read.
        r->t->unknown = -2;
        return true;
    }
    return length == 0 || refuse(r, "model with", r->key);
}

static bool split_add(Reader *r, const char *pattern) {
    RtTokenizer *t = r->t;
    int code;
    PCRE2_SIZE at;
    if (t->pcre.library == NULL && !pcre_open(&t->pcre, r->e))
        return false;
    if (t->num_splits == MAX_SPLITS)
        return rt_fail(r->e, EXIT_DATA, "it has more than %d expressions",
                       MAX_SPLITS);
    pcre2_code *own =
        t->pcre.compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED,
                        PCRE2_UTF | PCRE2_UCP, &code, &at, NULL);
    if (own == NULL)
        return rt_fail(r->e, EXIT_DATA, "PCRE2 refuses its expression %s",
                       pattern);
    t->pcre.jit(own, PCRE2_JIT_COMPLETE); // without it, it is interpreted
    t->split[t->num_splits++] = own;
    if (t->found == NULL)
        t->found = t->pcre.match_new(1, NULL);
    return t->found != NULL || no_memory(r->e);
}

// A pre-tokenizer's members, in any order.
typedef struct {
    char type[32], pattern[4096];
    bool use_regex, prefix_space, inverts;
} PreTokenizer;

static bool pre_tokenizer(Reader *r, void *context);

static bool pattern_member(Reader *r, void *context) {
    PreTokenizer *p = context;
    size_t length;
    if (!key_is(r, "Regex"))
        return refuse(r, "pattern", r->key);
    if (!text(r, &length) || length >= sizeof p->pattern)
        return false;
    memcpy(p->pattern, r->string, length + 1);
    return true;
}

static bool pre_tokenizer_member(Reader *r, void *context) {
    PreTokenizer *p = context;
    size_t length;
    if (key_is(r, "pretokenizers"))
        return list(r, pre_tokenizer, NULL);
    if (key_is(r, "pattern"))
        return object(r, pattern_member, p);
    if (key_is(r, "use_regex"))
        return flag(r, &p->use_regex);
    if (key_is(r, "add_prefix_space"))
        return flag(r, &p->prefix_space);
    if (key_is(r, "invert"))
        return flag(r, &p->inverts);
    if (key_is(r, "behavior"))
        return text(r, &length) && (strcmp(r->string, "Isolated") == 0 ||
                                    refuse(r, "behavior", r->string));
    if (!key_is(r, "type"))
        return rt_json_skip(&r->json);
    if (!text(r, &length) || length >= sizeof p->type)
        return false;
    memcpy(p->type, r->string, length + 1);
    return true;
}

static bool pre_tokenizer(Reader *r, void *context) {
    static const char words[] =
        "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+"
        "|\\s+(?!\\S)|\\s+";
    PreTokenizer p = {.use_regex = true};
    (void)context;
    if (!object(r, pre_tokenizer_member, &p))
        return false;
    if (strcmp(p.type, "ByteLevel") == 0) {
        r->t->by_bytes = true;
        r->t->prefix_space = p.prefix_space;
        return !p.use_regex || split_add(r, words);
    }
    if (strcmp(p.type, "Split") == 0)
        return p.inverts ? refuse(r, "pre_tokenizer with", "invert")
                         : split_add(r, p.pattern);
    return strcmp(p.type, "Sequence") == 0 || p.type[0] == '\0' ||
           refuse(r, "pre_tokenizer", p.type);
}

typedef struct {
    uint64_t number;
    bool strips;
    char content[1024];
} Added;

static bool added_member(Reader *r, void *context) {
    Added *a = context;
    size_t length;
    bool is;
    if (key_is(r, "id"))
        return rt_json_count(&r->json, &a->number);
    if (key_is(r, "lstrip") || key_is(r, "rstrip") ||
        key_is(r, "single_word")) {
        if (!flag(r, &is))
            return false;
        a->strips |= is;
        return true;
    }
    if (!key_is(r, "content"))
        return rt_json_skip(&r->json);
    if (!text(r, &length) || length >= sizeof a->content)
        return false;
    memcpy(a->content, r->string, length + 1);
    return true;
}

// Texts of added tokens are as in the text, not by bytes.
static bool added(Reader *r, void *context) {
    static const char *const ends[] = {"<|endoftext|>", "</s>", "<eos>",
                                       "<|end_of_text|>"};
    Added a = {0};
    (void)context;
    if (!object(r, added_member, &a))
        return false;
    if (a.strips)
        return refuse(r, "added token with lstrip, rstrip or single_word,",
                      a.content);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (strcmp(a.content, ends[i]) == 0)
            r->t->end = (int32_t)a.number;
    return a.content[0] == '\0' ||
           token_add(r->t, a.number, a.content, strlen(a.content), true, r->e);
}

static bool normalizer_member(Reader *r, void *context) {
    size_t length;
    (void)context;
    return key_is(r, "type")
               ? text(r, &length) && refuse(r, "normalizer", r->string)
               : rt_json_skip(&r->json);
}

// The model's tokens come first, and then added ones, which may be among them.
typedef struct {
    const char *added;
} Top;

static bool top_member(Reader *r, void *context) {
    Top *top = context;
    if (key_is(r, "model"))
        return object(r, model_member, NULL);
    if (key_is(r, "pre_tokenizer"))
        return pre_tokenizer(r, NULL);
    if (key_is(r, "normalizer"))
        return object(r, normalizer_member, NULL);
    if (key_is(r, "added_tokens"))
        top->added = r->json.at;
    return rt_json_skip(&r->json);
}

// ---- merges ----

// "a b", or ["a", "b"] as two strings.
static bool merge_read(Reader *r, char *left, size_t *of_left, char *right,
                       size_t *of_right) {
    if (rt_json_accept(&r->json, '[')) {
        bool good = rt_json_string(&r->json, left, STRING_BYTES) &&
                    rt_json_take(&r->json, ',') &&
                    rt_json_string(&r->json, right, STRING_BYTES) &&
                    rt_json_take(&r->json, ']');
        *of_left = good ? strlen(left) : 0;
        *of_right = good ? strlen(right) : 0;
        return good;
    }
    if (!rt_json_string(&r->json, left, STRING_BYTES))
        return false;
    char *space = strchr(left, ' ');
    if (space == NULL)
        return rt_fail(r->e, EXIT_DATA, "it has a merge without a space");
    *space = '\0';
    *of_left = (size_t)(space - left);
    *of_right = strlen(space + 1);
    memcpy(right, space + 1, *of_right + 1);
    return true;
}

typedef struct {
    int count;
    char *left, *right, *whole;
} Merging;

static bool merge_count(Reader *r, void *context) {
    int *count = context;
    ++*count;
    return rt_json_skip(&r->json);
}

static bool merge_add(Reader *r, void *context) {
    Merging *m = context;
    RtTokenizer *t = r->t;
    size_t of_left, of_right;
    if (!merge_read(r, m->left, &of_left, m->right, &of_right))
        return false;
    if (t->by_bytes && (!bytes_decode(m->left, &of_left) ||
                        !bytes_decode(m->right, &of_right)))
        return rt_fail(r->e, EXIT_DATA, "merge %d has other than bytes",
                       m->count);
    memcpy(m->whole, m->left, of_left);
    memcpy(m->whole + of_left, m->right, of_right);
    Merge own = {.left = token_find(t, m->left, of_left),
                 .right = token_find(t, m->right, of_right),
                 .whole = token_find(t, m->whole, of_left + of_right),
                 .rank = ++m->count};
    if (own.left < 0 || own.right < 0 || own.whole < 0)
        return rt_fail(r->e, EXIT_DATA, "merge %d is of unknown tokens",
                       m->count);
    Merge *entry = merge_of(t, own.left, own.right);
    if (entry->rank == 0)
        *entry = own;
    return true;
}

static bool merges_read(Reader *r) {
    RtTokenizer *t = r->t;
    RtJson whole_file = r->json;
    int count = 0;
    if (r->merges != NULL) {
        r->json.at = r->merges;
        list(r, merge_count, &count);
    }
    t->merges = power_above((size_t)count);
    t->merge = calloc(t->merges, sizeof *t->merge);
    char *room = malloc(4 * (size_t)STRING_BYTES);
    Merging m = {0, room, room + STRING_BYTES, room + 2 * (size_t)STRING_BYTES};
    bool good = (t->merge != NULL && room != NULL) || no_memory(r->e);
    r->json.at = r->merges;
    if (good && r->merges != NULL)
        good = list(r, merge_add, &m);
    free(room);
    r->json = whole_file;
    return good;
}

// ---- open ----

// Tokens of the model are by bytes where its pre-tokenizer says so.
static bool tokens_by_bytes(RtTokenizer *t, RtError *e) {
    for (int i = 0; i < t->size && t->by_bytes; i++) {
        Token *own = &t->token[i];
        if (own->bytes == NULL || own->added)
            continue;
        if (!bytes_decode(own->bytes, &own->length))
            return rt_fail(e, EXIT_DATA, "token %d has other than bytes", i);
    }
    return index_tokens(t, e);
}

static bool unknown_member(Reader *r, void *context) {
    RtTokenizer *t = r->t;
    size_t length;
    (void)context;
    if (!key_is(r, "unk_token"))
        return rt_json_skip(&r->json);
    if (!text(r, &length))
        return false;
    t->unknown = token_find(t, r->string, length);
    return true;
}

static bool unknown_top(Reader *r, void *context) {
    return key_is(r, "model") ? object(r, unknown_member, context)
                              : rt_json_skip(&r->json);
}

static bool file_read(Reader *r, const char *all, size_t bytes) {
    Top top = {NULL};
    *r->e = (RtError){.status = 0};
    r->json = (RtJson){.at = all, .end = all + bytes};
    bool good = object(r, top_member, &top) && rt_json_end(&r->json);
    if (good && r->t->size == 0)
        return rt_fail(r->e, EXIT_DATA, "it has no tokens");
    if (good && top.added != NULL) {
        r->json.at = top.added;
        good = list(r, added, NULL);
    }
    good = good && tokens_by_bytes(r->t, r->e) && merges_read(r);
    if (good && r->t->unknown == -2) {
        r->t->unknown = -1;
        r->json.at = all;
        good = object(r, unknown_top, NULL);
    }
    return good || (r->e->status == 0 &&
                    rt_fail(r->e, EXIT_DATA, "it is not a tokenizer.json"));
}

static bool json_open(RtTokenizer *t, const char *path, RtError *e) {
    enum { MOST = 256 << 20 };
    size_t bytes;
    int fd = rt_open_sized(&rt_system_files, path, &bytes, e);
    if (fd < 0)
        return false;
    Reader *r = calloc(1, sizeof *r);
    char *all = bytes <= MOST ? malloc(bytes + 1) : NULL;
    bool good = (r != NULL && all != NULL) || no_memory(e);
    if (good && !rt_read(&rt_system_files, fd, all, bytes))
        good = rt_fail_read(e, path);
    rt_system_files.close(fd);
    if (good) {
        r->t = t;
        r->e = e;
        good = file_read(r, all, bytes);
        if (!good) {
            RtError why = *e;
            rt_fail(e, why.status, "%s: %s", path, why.text);
        }
    }
    free(r);
    free(all);
    return good;
}

static bool bytes_open(RtTokenizer *t, RtError *e) {
    t->by_bytes = true;
    for (int i = 0; i < 256; i++)
        if (!token_add(t, (uint64_t)i, (char[]){(char)i}, 1, false, e))
            return false;
    t->merges = power_above(0);
    t->merge = calloc(t->merges, sizeof *t->merge);
    return t->merge != NULL ? index_tokens(t, e) : no_memory(e);
}

char *rt_tokenizer_near(const char *path) {
    struct stat is;
    bool is_folder = stat(path, &is) == 0 && S_ISDIR(is.st_mode);
    const char *slash = is_folder ? path + strlen(path) : strrchr(path, '/');
    char *file = slash == NULL ? rt_path("tokenizer.json")
                               : rt_path("%.*s/tokenizer.json",
                                         (int)(slash - path), path);
    if (file == NULL || access(file, R_OK) == 0)
        return file;
    free(file);
    return NULL;
}

RtTokenizer *rt_tokenizer_open(const char *path, RtError *e) {
    RtTokenizer *t = calloc(1, sizeof *t);
    if (t == NULL) {
        no_memory(e);
        return NULL;
    }
    t->unknown = t->end = -1;
    if (path != NULL ? json_open(t, path, e) : bytes_open(t, e))
        return t;
    rt_tokenizer_free(t);
    return NULL;
}

void rt_tokenizer_free(RtTokenizer *t) {
    if (t == NULL)
        return;
    for (int i = 0; i < t->size; i++)
        free(t->token[i].bytes);
    for (int i = 0; i < t->num_splits; i++)
        t->pcre.code_free(t->split[i]);
    if (t->found != NULL)
        t->pcre.match_free(t->found);
    if (t->pcre.library != NULL)
        rt_library_close(t->pcre.library);
    free(t->token);
    free(t->slot);
    free(t->merge);
    free(t);
}

int rt_tokenizer_size(const RtTokenizer *t) {
    return t->size;
}

int32_t rt_tokenizer_end(const RtTokenizer *t) {
    return t->end;
}

const char *rt_tokenizer_bytes(const RtTokenizer *t, int32_t token,
                               size_t *length) {
    if (token < 0 || token >= t->size || t->token[token].bytes == NULL)
        return NULL;
    *length = t->token[token].length;
    return t->token[token].bytes;
}

// ---- encode ----

static bool tokens_reserve(RtTokens *to, size_t more, RtError *e) {
    if (to->room - to->count >= more)
        return true;
    size_t room = 2 * (to->count + more);
    int32_t *all = realloc(to->token, room * sizeof *all);
    if (all == NULL)
        return no_memory(e);
    to->token = all;
    to->room = room;
    return true;
}

bool rt_tokens_add(RtTokens *to, int32_t token, RtError *e) {
    return tokens_reserve(to, 1, e) && (to->token[to->count++] = token, true);
}

// A symbol of a piece, in a list; a merge removes its right one.
typedef struct {
    int32_t token; // -1: removed
    size_t before, after;
} Symbol;

// A merge that may be made at a symbol.
typedef struct {
    int rank;
    size_t at;
    int32_t left, right;
} Candidate;

typedef struct {
    Symbol *symbol;
    Candidate *heap; // the first merge on top
    size_t count, waiting;
} Piece;

static bool is_before(const Candidate *a, const Candidate *b) {
    return a->rank != b->rank ? a->rank < b->rank : a->at < b->at;
}

static void heap_push(Piece *p, Candidate own) {
    size_t i = p->waiting++;
    for (; i > 0 && is_before(&own, &p->heap[(i - 1) / 2]); i = (i - 1) / 2)
        p->heap[i] = p->heap[(i - 1) / 2];
    p->heap[i] = own;
}

static Candidate heap_pop(Piece *p) {
    Candidate top = p->heap[0], last = p->heap[--p->waiting];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < p->waiting; i = child) {
        if (child + 1 < p->waiting &&
            is_before(&p->heap[child + 1], &p->heap[child]))
            child++;
        if (!is_before(&p->heap[child], &last))
            break;
        p->heap[i] = p->heap[child];
    }
    p->heap[i] = last;
    return top;
}

// Each symbol and its next one enter once, and once more for each merge.
static void candidate_add(const RtTokenizer *t, Piece *p, size_t left) {
    size_t right = left < p->count ? p->symbol[left].after : p->count;
    if (right >= p->count)
        return;
    const Merge *m = merge_of(t, p->symbol[left].token, p->symbol[right].token);
    if (m->rank != 0)
        heap_push(p, (Candidate){m->rank, left, m->left, m->right});
}

static void merge_all(const RtTokenizer *t, Piece *p) {
    Symbol *s = p->symbol;
    for (size_t i = 0; i + 1 < p->count; i++)
        candidate_add(t, p, i);
    while (p->waiting > 0) {
        Candidate c = heap_pop(p);
        size_t right = s[c.at].token == c.left ? s[c.at].after : p->count;
        if (right >= p->count || s[right].token != c.right)
            continue;
        s[c.at].token = merge_of(t, c.left, c.right)->whole;
        s[c.at].after = s[right].after;
        s[right].token = -1;
        if (s[right].after < p->count)
            s[s[right].after].before = c.at;
        candidate_add(t, p, c.at);
        if (c.at > 0)
            candidate_add(t, p, s[c.at].before);
    }
}

static bool symbol_first(const RtTokenizer *t, const char *text, size_t length,
                         size_t *some, int32_t *token, RtError *e) {
    unsigned code;
    *some = t->by_bytes ? 1 : rt_utf8(text, length, &code);
    if (*some == 0)
        return rt_fail(e, EXIT_DATA, "the text is not UTF-8");
    *token = token_find(t, text, *some);
    *token = *token < 0 ? t->unknown : *token;
    return *token >= 0 ||
           rt_fail(e, EXIT_DATA, "the tokenizer has no token for '%.*s'",
                   (int)*some, text);
}

static bool piece_encode(RtTokenizer *t, const char *text, size_t length,
                         RtTokens *to, RtError *e) {
    int32_t whole = t->whole_first ? token_find(t, text, length) : -1;
    if (length == 0 || !tokens_reserve(to, length, e))
        return length == 0;
    if (whole >= 0) {
        to->token[to->count++] = whole;
        return true;
    }
    Piece p = {.symbol = malloc(length * sizeof *p.symbol),
               .heap = malloc(3 * length * sizeof *p.heap)};
    bool good = (p.symbol != NULL && p.heap != NULL) || no_memory(e);
    for (size_t at = 0, some; good && at < length; at += some) {
        Symbol *own = &p.symbol[p.count];
        own->before = p.count - (p.count > 0);
        own->after = ++p.count;
        good = symbol_first(t, text + at, length - at, &some, &own->token, e);
    }
    if (good)
        merge_all(t, &p);
    for (size_t i = 0; good && i < p.count; i = p.symbol[i].after)
        to->token[to->count++] = p.symbol[i].token;
    free(p.symbol);
    free(p.heap);
    return good;
}

// Encodes the pieces into which expressions from `split` on divide a text.
static bool pieces_encode(RtTokenizer *t, int split, const char *text,
                          size_t length, RtTokens *to, RtError *e) {
    if (split == t->num_splits)
        return piece_encode(t, text, length, to, e);
    size_t at = 0;
    while (at < length) {
        int found =
            t->pcre.match(t->split[split], (PCRE2_SPTR)text, length, at,
                          at > 0 ? PCRE2_NO_UTF_CHECK : 0, t->found, NULL);
        if (found < 0 && found != PCRE2_ERROR_NOMATCH)
            return rt_fail(e, EXIT_DATA,
                           found <= PCRE2_ERROR_UTF8_ERR1 &&
                                   found >= PCRE2_ERROR_UTF8_ERR21
                               ? "the text is not UTF-8"
                               : "PCRE2 cannot divide the text");
        const PCRE2_SIZE *ends = t->pcre.ends(t->found);
        size_t from = found < 0 ? length : ends[0];
        size_t behind = found < 0 ? length : ends[1];
        if (behind == from && from < length) // an empty match divides nothing
            return rt_fail(e, EXIT_DATA,
                           "the tokenizer's expression matches nothing");
        // match_data is used again by the next split.
        if ((from > at &&
             !pieces_encode(t, split + 1, text + at, from - at, to, e)) ||
            (behind > from &&
             !pieces_encode(t, split + 1, text + from, behind - from, to, e)))
            return false;
        at = behind;
    }
    return true;
}

static bool part_encode(RtTokenizer *t, const char *text, size_t length,
                        RtTokens *to, RtError *e) {
    if (!t->prefix_space || length == 0 || *text == ' ')
        return pieces_encode(t, 0, text, length, to, e);
    char *copy = malloc(length + 1);
    if (copy == NULL)
        return no_memory(e);
    *copy = ' ';
    memcpy(copy + 1, text, length);
    bool good = pieces_encode(t, 0, copy, length + 1, to, e);
    free(copy);
    return good;
}

// The longest added token at the front of a text, or -1.
static int32_t added_at(const RtTokenizer *t, const char *text, size_t length) {
    int32_t best = -1;
    for (int i = 0; i < t->size; i++) {
        const Token *own = &t->token[i];
        if (own->added && own->length <= length && own->length > 0 &&
            memcmp(own->bytes, text, own->length) == 0 &&
            (best < 0 || own->length > t->token[best].length))
            best = i;
    }
    return best;
}

bool rt_tokenizer_encode(RtTokenizer *t, const char *text, size_t length,
                         RtTokens *to, RtError *e) {
    size_t from = 0;
    bool starts[256] = {false};
    for (int i = 0; i < t->size && t->any_added; i++)
        if (t->token[i].added && t->token[i].length > 0)
            starts[(unsigned char)t->token[i].bytes[0]] = true;
    for (size_t at = 0; at < length;) {
        int32_t own = starts[(unsigned char)text[at]]
                          ? added_at(t, text + at, length - at)
                          : -1;
        if (own < 0) {
            at++;
            continue;
        }
        if (!part_encode(t, text + from, at - from, to, e) ||
            !rt_tokens_add(to, own, e))
            return false;
        from = at += t->token[own].length;
    }
    return part_encode(t, text + from, length - from, to, e);
}
