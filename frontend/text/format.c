// Formatting: a model file in its one layout.
//
// The author decides about line breaks and empty lines; the tokens decide
// everything else.  Blocks are indented by two spaces.  Continuation lines are
// aligned below the statement's first `|>`, or indented by two more spaces;
// inside brackets they begin after the bracket, or two spaces further in if
// the bracket ends its line.  The `=` of keys and of neighbouring constants,
// the `as` of a chain and neighbouring trailing comments are aligned.
//
// The formatter adds and removes no token, except a `;` at the end of a line,
// so the tree stays the same.

#include "frontend/text/format.h"
#include "frontend/frontend.h"
#include "frontend/text/ast.h"

#include <string.h>

enum { INDENT = 2, WIDEST_ALIGNED = 100 };

// A line of the result; a line without tokens is a comment.
typedef struct {
    int from, to; // its tokens
    const char *comment;
    size_t comment_length;
    bool blank; // an empty line before
} Line;

typedef struct {
    Arena *arena;
    const Source *source;
    Token *token; // the last is TOKEN_END
    int count;
    bool *space;
    int *pad; // spaces before a token that align it
    Line *line;
    int num_lines;
} Layout;

// ---- tokens ----

static bool is_close(TokenKind k) {
    return k == TOKEN_CLOSE || k == TOKEN_CLOSE_LIST || k == TOKEN_CLOSE_BLOCK;
}

static bool is_open(TokenKind k) {
    return k == TOKEN_OPEN || k == TOKEN_OPEN_LIST || k == TOKEN_OPEN_BLOCK;
}

// The braces of an import hold a list.
static bool is_list(const Token *t, int i) {
    return t[i].kind == TOKEN_OPEN || t[i].kind == TOKEN_OPEN_LIST ||
           (t[i].kind == TOKEN_OPEN_BLOCK && i > 1 &&
            t[i - 2].kind == TOKEN_IMPORT);
}

// The text between token i and the one before.
static const char *gap_before(const Layout *l, int i, size_t *length) {
    size_t start = i > 0 ? l->token[i - 1].at.end : 0;
    *length = l->token[i].at.start - start;
    return l->source->text + start;
}

static bool has_comment(const Layout *l, int i) {
    size_t length;
    const char *gap = gap_before(l, i, &length);
    return memchr(gap, '#', length) != NULL;
}

// Copies the tokens without redundant `;` at ends of lines.
static void copy_tokens(Layout *l, const Token *t, int count) {
    l->token = ARENA_ARRAY(l->arena, (size_t)count, Token);
    bool first = false;
    for (int i = 0; i < count; i++) {
        bool ends = t[i].kind == TOKEN_SEMICOLON &&
                    (t[i].first || t[i + 1].first ||
                     t[i + 1].kind == TOKEN_CLOSE_BLOCK);
        if (ends) {
            first = t[i].first;
            continue;
        }
        l->token[l->count] = t[i];
        l->token[l->count++].first |= first;
        first = false;
    }
}

// Moves a block's bracket and `else` to the line before.
static void join_lines(Layout *l) {
    for (int i = 1; i < l->count; i++) {
        Token *t = &l->token[i];
        bool joins = t->kind == TOKEN_OPEN_BLOCK || t->kind == TOKEN_ELSE;
        if (joins && t->first && !has_comment(l, i))
            t->first = false;
    }
    for (int i = 1; i < l->count; i++)
        if (l->token[i].kind == TOKEN_CLOSE_BLOCK &&
            l->token[i - 1].kind == TOKEN_OPEN_BLOCK && !has_comment(l, i))
            l->token[i].first = false;
}

// Puts the brackets of a block of several lines on lines without statements.
static void break_blocks(Layout *l) {
    int *open = ARENA_ARRAY(l->arena, (size_t)l->count, int), depth = 0;
    int *before = ARENA_ARRAY(l->arena, (size_t)l->count, int), breaks = 0;
    for (int i = 0; i < l->count; i++) {
        Token *t = &l->token[i];
        breaks += t->first;
        if (is_open(t->kind)) {
            before[depth] = breaks;
            open[depth++] = i;
        } else if (is_close(t->kind) && depth > 0) {
            int from = open[--depth];
            if (t->kind == TOKEN_CLOSE_BLOCK && !is_list(l->token, from) &&
                breaks > before[depth])
                l->token[from + 1].first = t->first = true;
        }
    }
}

// Whether a line that begins with token i, outside brackets, continues the
// statement of the line before.
static bool continues(const Token *t, int i) {
    if (i == 0)
        return false;
    switch (t[i].kind) {
    case TOKEN_MINUS:
    case TOKEN_NOT:
    case TOKEN_OPEN:
    case TOKEN_OPEN_LIST:
    case TOKEN_NAME:
    case TOKEN_NUMBER:
    case TOKEN_STRING:
    case TOKEN_TRUE:
    case TOKEN_FALSE:
    case TOKEN_IMPORT:
    case TOKEN_LET:
    case TOKEN_FN:
    case TOKEN_MODEL:
    case TOKEN_TRAIN:
    case TOKEN_FOR:
    case TOKEN_IF:
    case TOKEN_WITH:
    case TOKEN_END:
        return !ends_operand(t, i - 1) && t[i - 1].kind != TOKEN_OPEN_BLOCK &&
               t[i - 1].kind != TOKEN_SEMICOLON;
    default:
        return t[i].kind != TOKEN_CLOSE_BLOCK;
    }
}

// ---- lines ----

static Line *add_line(Layout *l, bool blank) {
    ARENA_APPEND(l->arena, l->line, l->num_lines,
                 (Line){.blank = blank && l->num_lines > 0});
    return &l->line[l->num_lines - 1];
}

static bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\r';
}

// Adds the comments before token i; one on the line of the token before trails
// that line.  Returns whether an empty line follows them.
static bool add_comments(Layout *l, int i) {
    size_t length;
    const char *s = gap_before(l, i, &length), *end = s + length;
    int newlines = i == 0;
    for (; s < end; s++) {
        newlines += *s == '\n';
        if (*s != '#')
            continue;
        Line *line =
            newlines ? add_line(l, newlines > 1) : &l->line[l->num_lines - 1];
        line->comment = s;
        while (s < end && *s != '\n')
            s++;
        line->comment_length = (size_t)(s - line->comment);
        while (is_blank(line->comment[line->comment_length - 1]))
            line->comment_length--;
        newlines = s < end;
    }
    return newlines > 1;
}

static void collect_lines(Layout *l) {
    for (int i = 0; i < l->count; i++) {
        bool blank = add_comments(l, i);
        const Token *t = &l->token[i];
        if (t->kind == TOKEN_END)
            return;
        if (i == 0 || t->first)
            add_line(l, blank)->from = i;
        l->line[l->num_lines - 1].to = i + 1;
    }
}

// Removes empty lines at both ends of a block.
static void drop_blanks(Layout *l) {
    for (int i = 1; i < l->num_lines; i++) {
        const Line *before = &l->line[i - 1];
        Line *line = &l->line[i];
        bool opened =
            before->to > before->from && is_open(l->token[before->to - 1].kind);
        bool closes =
            line->to > line->from && is_close(l->token[line->from].kind);
        line->blank &= !opened && !closes;
    }
}

// ---- keys ----

// The `=` to align in one block.
typedef struct {
    bool train; // its statements are keys
    bool list;
    int last;   // the last `=`, 0: none
    int widest; // of the names before them
} Keys;

static int name_width(const Layout *l, int equals) {
    const Token *name = &l->token[equals - 1];
    return (int)(name->at.end - name->at.start);
}

// Aligns the collected `=`; link[] leads from each to the one before.
static void keys_flush(Layout *l, Keys *k, const int *link) {
    for (int i = k->last; i > 0; i = link[i])
        l->pad[i] = k->widest - name_width(l, i);
    k->last = k->widest = 0;
}

// The `=` of the statement that begins at i if it is aligned, else 0.
static int aligned_equals(const Layout *l, int i, const Keys *k, bool top) {
    const Token *t = l->token;
    int name = top && t[i].kind == TOKEN_LET ? i + 1 : i;
    bool candidate = k->train || name > i;
    return candidate && t[name].kind == TOKEN_NAME &&
                   t[name + 1].kind == TOKEN_ASSIGN
               ? name + 1
               : 0;
}

static void begin_statement(Layout *l, int i, bool blank, Keys *k, bool top,
                            int *link) {
    int equals = aligned_equals(l, i, k, top);
    if (blank || (equals == 0 && !k->train))
        keys_flush(l, k, link);
    if (equals == 0)
        return;
    link[equals] = k->last;
    k->last = equals;
    if (name_width(l, equals) > k->widest)
        k->widest = name_width(l, equals);
}

static void align_keys(Layout *l) {
    Keys *stack = ARENA_ARRAY(l->arena, (size_t)l->count + 1, Keys), *k = stack;
    int *link = ARENA_ARRAY(l->arena, (size_t)l->count, int);
    bool train = false, blank = false;
    for (int n = 0; n < l->num_lines; n++) {
        const Line *line = &l->line[n];
        blank |= line->blank;
        for (int i = line->from; i < line->to; i++) {
            TokenKind kind = l->token[i].kind;
            bool begins = i == line->from && !k->list && !is_close(kind) &&
                          !continues(l->token, i);
            if (begins)
                begin_statement(l, i, blank, k, k == stack, link);
            blank &= !begins;
            if (begins && k == stack)
                train = kind == TOKEN_TRAIN;
            if (is_open(kind)) {
                *++k = (Keys){.train = train, .list = is_list(l->token, i)};
            } else if (is_close(kind)) {
                keys_flush(l, k, link);
                k -= k > stack;
            }
        }
    }
    keys_flush(l, stack, link);
}

// ---- columns ----

// The brackets around a token, and the statement inside them.
typedef struct {
    bool list;
    int content; // where lines inside begin
    int close;   // where the line of its closing bracket begins
    int statement;
    int pipe; // of the statement's first line: where its first |> is, or -1
    bool first_line;
} Level;

// A formatted line before alignment with its neighbours.
typedef struct {
    const char *text; // without a trailing comment; NULL: only a comment
    size_t length;    // up to `as NAME`
    int as;           // its column, or 0
    int indent, width;
    bool begins; // a statement
} Row;

static int width_of(const char *s, size_t length) {
    int width = 0;
    for (size_t i = 0; i < length; i += utf8_length(s + i, length - i))
        width++;
    return width;
}

// The indentation of the line that begins with token i.
static int line_indent(const Layout *l, int i, Level *level, bool *begins) {
    const Token *t = l->token;
    *begins = false;
    if (is_close(t[i].kind))
        return level->close;
    if (level->list) {
        TokenKind before = t[i - 1].kind;
        bool whole = before == TOKEN_COMMA || is_open(before);
        return level->content + (whole ? 0 : INDENT);
    }
    if (continues(t, i)) {
        level->first_line = false;
        bool chain = t[i].kind == TOKEN_PIPE && level->pipe >= 0;
        return chain ? level->pipe : level->statement + INDENT;
    }
    *begins = true;
    level->statement = level->content;
    level->pipe = -1;
    level->first_line = true;
    return level->content;
}

static Level open_level(const Layout *l, int i, const Level *around, int indent,
                        int column) {
    bool list = is_list(l->token, i), hangs = l->token[i + 1].first;
    bool braces = l->token[i].kind == TOKEN_OPEN_BLOCK;
    Level new = {.list = list, .pipe = -1, .first_line = true};
    new.close = list ? indent : around->statement;
    new.content = new.close + INDENT;
    if (list && !hangs && column <= WIDEST_ALIGNED)
        new.content = new.close = column + (braces ? 1 : 0);
    new.statement = new.content;
    return new;
}

// The column of `as NAME` if it ends the line, else 0.
static bool ends_with_name(const Layout *l, const Line *line, int i) {
    return l->token[i].kind == TOKEN_AS && i + 2 == line->to && i > line->from;
}

// Writes a line's tokens to `t`; returns the level after it.
static Level *write_line(const Layout *l, const Line *line, Level *level,
                         Text *t, Row *row) {
    t->length = 0;
    row->indent = line_indent(l, line->from, level, &row->begins);
    int column = row->indent;
    for (int i = line->from; i < line->to; i++) {
        const Token *token = &l->token[i];
        int spaces = i > line->from ? l->space[i] + l->pad[i] : 0;
        if (ends_with_name(l, line, i) && !level->list) {
            row->as = column + spaces;
            row->length = t->length;
        }
        text_add(t, "%*s", spaces, "");
        column += spaces;
        if (is_close(token->kind))
            level--;
        if (token->kind == TOKEN_PIPE && level->pipe < 0 && level->first_line &&
            column <= WIDEST_ALIGNED)
            level->pipe = column;
        size_t length = token->at.end - token->at.start;
        const char *s = l->source->text + token->at.start;
        text_bytes(t, s, length);
        column += width_of(s, length);
        if (is_open(token->kind)) {
            level[1] = open_level(l, i, level, row->indent, column);
            level++;
        }
    }
    row->text = arena_string(l->arena, text_string(t), t->length);
    if (!row->as)
        row->length = t->length;
    row->width = column;
    return level;
}

// Indents a comment like the line after it; before a closing bracket like the
// lines inside.
static void indent_comments(const Layout *l, Row *row, int end, int indent) {
    for (int i = end - 1; i >= 0 && l->line[i].to == 0; i--)
        row[i].indent = indent;
}

static Row *write_lines(Layout *l) {
    Row *row = ARENA_ARRAY(l->arena, (size_t)l->num_lines + 1, Row);
    Level *level = ARENA_ARRAY(l->arena, (size_t)l->count + 2, Level);
    *level = (Level){.pipe = -1};
    Text t = text_new(l->arena);
    for (int i = 0; i < l->num_lines; i++) {
        const Line *line = &l->line[i];
        if (line->to == 0)
            continue;
        int inside = level->content;
        level = write_line(l, line, level, &t, &row[i]);
        bool closes = is_close(l->token[line->from].kind);
        indent_comments(l, row, i, closes ? inside : row[i].indent);
    }
    return row;
}

// Aligns the `as NAME` of rows from .. to-1, which are one statement.
static void align_names(Arena *a, Row *row, int from, int to) {
    int widest = 0;
    for (int i = from; i < to; i++)
        if (row[i].as > widest)
            widest = row[i].as;
    for (int i = from; i < to && widest <= WIDEST_ALIGNED; i++) {
        int more = widest - row[i].as;
        if (row[i].as == 0 || more == 0)
            continue;
        row[i].text =
            arena_format(a, "%.*s%*s%s", (int)row[i].length, row[i].text, more,
                         "", row[i].text + row[i].length);
        row[i].width += more;
    }
}

static void align_all_names(const Layout *l, Row *row) {
    int from = 0;
    for (int i = 1; i <= l->num_lines; i++)
        if (i == l->num_lines || row[i].begins) {
            align_names(l->arena, row, from, i);
            from = i;
        }
}

// The column of the trailing comment of line i and its neighbours.
static int comment_column(const Layout *l, const Row *row, int i, int *end) {
    int widest = 0;
    for (*end = i; *end < l->num_lines; ++*end) {
        const Line *line = &l->line[*end];
        bool one = line->to > 0 && line->comment != NULL;
        if (!one || (line->blank && *end > i) ||
            row[*end].width > WIDEST_ALIGNED)
            break;
        if (row[*end].width > widest)
            widest = row[*end].width;
    }
    return widest + INDENT;
}

static void print_lines(const Layout *l, const Row *row, Text *out) {
    int end = 0, column = 0;
    for (int i = 0; i < l->num_lines; i++) {
        const Line *line = &l->line[i];
        bool trails = line->comment != NULL && line->to > 0;
        if (trails && i >= end)
            column = comment_column(l, row, i, &end);
        text_add(out, "%s%*s%s", line->blank ? "\n" : "", row[i].indent, "",
                 line->to > 0 ? row[i].text : "");
        int spaces = i < end ? column - row[i].width : INDENT;
        if (line->comment != NULL) {
            text_add(out, "%*s", trails ? spaces : 0, "");
            text_bytes(out, line->comment, line->comment_length);
        }
        text_add(out, "\n");
    }
}

static void layout(Arena *a, const Source *s, const Token *t, int count,
                   Text *out) {
    Layout l = {.arena = a, .source = s};
    copy_tokens(&l, t, count);
    join_lines(&l);
    break_blocks(&l);
    l.space = spaces_find(a, l.token, l.count);
    l.pad = ARENA_ARRAY(a, (size_t)l.count, int);
    collect_lines(&l);
    drop_blanks(&l);
    align_keys(&l);
    Row *row = write_lines(&l);
    align_all_names(&l, row);
    print_lines(&l, row, out);
}

bool frontend_format(Arena *a, const char *path, const char *text,
                     size_t length, Text *out, Diagnostics *diags) {
    if (length > MAX_FILE) {
        report(diags, D_file, (Span){0},
               "cannot read %s: it is longer than %d bytes", path, MAX_FILE);
        return false;
    }
    const Source *s = source_new(a, path, text, length);
    Atoms *atoms = atoms_new(a);
    int errors = diags->errors, count;
    parse(a, atoms, s, diags);
    if (diags->errors > errors)
        return false;
    const Token *token = lex(a, atoms, s, diags, &count);
    layout(a, s, token, count, out);
    return true;
}
