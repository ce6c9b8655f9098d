// The train block: keys, and clauses with contextual keywords.

#include "frontend/text/parse.h"

// Whether a comma and a flag follow, not another key.
static bool at_flag(const Parser *p) {
    if (!token_is(p, TOKEN_COMMA) || token_peek(p)->kind != TOKEN_NAME)
        return false;
    const Token *after = &p->token[p->at + 2];
    return after->first || after->kind == TOKEN_COMMA ||
           after->kind == TOKEN_SEMICOLON || after->kind == TOKEN_CLOSE_BLOCK;
}

// Starts an entry with its first word.
static Entry entry_named(Parser *p) {
    const Token *word = token_consume(p);
    return (Entry){.name = word->text, .at = word->at};
}

// key = NAME "=" expression { "," NAME }
static Entry key(Parser *p) {
    Entry e = entry_named(p);
    token_consume(p);
    e.value = expression_parse(p);
    int num_places = 0;
    while (at_flag(p)) {
        token_consume(p);
        const Token *t = token_consume(p);
        ARENA_APPEND(p->arena, e.flag, e.num_flags, t->text);
        ARENA_APPEND(p->arena, e.flag_at, num_places, t->at);
    }
    return e;
}

static void keys(Parser *p, Entry *owner, Entry (*entry)(Parser *));

// setting = NAME "=" expression, in the block of a clause
static Entry setting(Parser *p) {
    if (token_is(p, TOKEN_NAME) && token_peek(p)->kind == TOKEN_ASSIGN)
        return key(p);
    token_expected(p, "a key and `=`");
    return (Entry){.at = token_current(p)->at, .value = p->bad};
}

// eval = "eval" ( "every" expression | "at" "end" ) [ "on" expression ]
//        [ "{" { setting } "}" ]
static Entry eval_clause(Parser *p) {
    Entry e = entry_named(p);
    if (word_accept(p, "every"))
        e.every = expression_parse(p);
    else if (!word_accept(p, "at") || !word_accept(p, "end"))
        token_expected(p, "`every` or `at end`");
    if (word_accept(p, "on"))
        e.on = expression_parse(p);
    if (token_is(p, TOKEN_OPEN_BLOCK))
        keys(p, &e, setting);
    return e;
}

// checkpoint = "checkpoint" ( "every" expression | "best" expression )
//              [ "keep" expression ]
static Entry checkpoint_clause(Parser *p) {
    Entry e = entry_named(p);
    if (word_accept(p, "every"))
        e.every = expression_parse(p);
    else if (word_accept(p, "best"))
        e.best = expression_parse(p);
    else
        token_expected(p, "`every` or `best`");
    if (word_accept(p, "keep"))
        e.keep = expression_parse(p);
    return e;
}

// Parses the pattern of parameters of a clause.
static void glob(Parser *p, Entry *e) {
    e->glob = token_current(p)->text;
    e->glob_at = token_current(p)->at;
    if (!token_accept(p, TOKEN_STRING))
        token_expected(p, "names of parameters in quotes, as \"*.bias\"");
}

// params = "params" STRING "{" { setting } "}"
static Entry params_clause(Parser *p) {
    Entry e = entry_named(p);
    glob(p, &e);
    keys(p, &e, setting);
    return e;
}

// freeze = "freeze" STRING [ "after" expression ]
static Entry freeze_clause(Parser *p) {
    Entry e = entry_named(p);
    glob(p, &e);
    if (word_accept(p, "after"))
        e.after = expression_parse(p);
    return e;
}

// stalled = "no" "improvement" "of" expression "for" expression
static void stalled(Parser *p, Entry *e) {
    token_consume(p);
    if (!word_accept(p, "improvement") || !word_accept(p, "of")) {
        token_expected(p, "`improvement of` and a metric");
        return;
    }
    e->when = expression_parse(p);
    if (token_accept(p, TOKEN_FOR))
        e->patience = expression_parse(p);
    else
        token_expected(p, "`for` and a time, as in `for 5 epoch`");
}

// stop = "stop" "when" ( expression | stalled )
static Entry stop_clause(Parser *p) {
    Entry e = entry_named(p);
    if (!word_accept(p, "when"))
        token_expected(p, "`when`, as in `stop when accuracy >= 94%`");
    else if (word_is(p, "no"))
        stalled(p, &e);
    else
        e.when = expression_parse(p);
    return e;
}

// entry = key | eval | checkpoint | params | freeze | stop
static Entry entry(Parser *p) {
    static const struct {
        const char *word;
        Entry (*parse)(Parser *);
    } clause[] = {
        {"eval", eval_clause},     {"checkpoint", checkpoint_clause},
        {"params", params_clause}, {"freeze", freeze_clause},
        {"stop", stop_clause},
    };
    if (token_is(p, TOKEN_NAME) && token_peek(p)->kind == TOKEN_ASSIGN)
        return key(p);
    for (size_t i = 0; i < sizeof clause / sizeof clause[0]; i++)
        if (word_is(p, clause[i].word))
            return clause[i].parse(p);
    token_expected(p,
                   "a key such as `batch = 128`, or eval, checkpoint, params, "
                   "freeze or stop");
    return (Entry){.at = token_current(p)->at, .value = p->bad};
}

// Parses a block of entries into owner.
static void keys(Parser *p, Entry *owner, Entry (*parse_entry)(Parser *)) {
    Span open = token_current(p)->at;
    if (!token_expect(p, TOKEN_OPEN_BLOCK))
        return;
    while (block_continues(p)) {
        Entry e = parse_entry(p);
        ARENA_APPEND(p->arena, owner->key, owner->num_keys, e);
        statement_next(p);
    }
    block_close(p, open);
}

// train = "train" NAME "{" { entry } "}"
Train train_parse(Parser *p) {
    Train t = {.at = token_consume(p)->at};
    name_parse(p, &t.model, &t.model_at);
    Entry all = {0};
    keys(p, &all, entry);
    t.entry = all.key;
    t.num_entries = all.num_keys;
    return t;
}

// Parses NAME.ARGUMENT and the value of a setting.
static Entry argument_setting(Parser *p) {
    Entry e = entry_named(p);
    token_consume(p);
    bool good = name_parse(p, &e.argument, &e.argument_at) &&
                token_expect(p, TOKEN_ASSIGN);
    e.value = good ? expression_parse(p) : p->bad;
    return e;
}

Entry setting_parse(Parser *p) {
    bool dotted = token_is(p, TOKEN_NAME) && token_peek(p)->kind == TOKEN_DOT;
    return dotted ? argument_setting(p) : setting(p);
}
