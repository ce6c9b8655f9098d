// sinter data: prepares data sets and looks at them.
#include "tools/data/data.h"
#include "base/exits.h"

#include <stdlib.h>
#include <string.h>

bool share_parse(const char *text, double *percent) {
    char *end;
    *percent = strtod(text, &end);
    return end != text && strcmp(end, "%") == 0 && *percent >= 0 &&
           *percent < 100;
}

// The trainer of a model, which loads its data and does nothing else.
static int data_bench(Arena *a, const Arguments *arguments) {
    Arguments copy = *arguments;
    if (arguments->num_operands != 2) {
        complain(arguments, "data bench needs one model file");
        return EXIT_USAGE;
    }
    copy.operand = arguments->operand + 1;
    copy.num_operands = 1;
    copy.passed = ARENA_ARRAY(a, 2, char *);
    copy.num_passed = 0;
    copy.passed[copy.num_passed++] = arena_format(a, "--load-only");
    if (arguments->data)
        copy.passed[copy.num_passed++] =
            arena_format(a, "--data=%s", arguments->data);
    return train_command(a, &copy);
}

// Refuses options of the other parts.
static bool options_suit(const Arguments *arguments, bool tokenizes) {
    const struct {
        const char *given, *name;
        bool of_tokenize;
    } option[] = {{arguments->data, "data", false},
                  {arguments->tokenizer, "tokenizer", true},
                  {arguments->validation, "validation", true},
                  {arguments->out, "out", true}};
    for (size_t i = 0; i < sizeof option / sizeof *option; i++)
        if (option[i].given != NULL && option[i].of_tokenize != tokenizes) {
            complain(arguments, "data %s takes no --%s", arguments->operand[0],
                     option[i].name);
            return false;
        }
    return true;
}

int data_command(Arena *a, const Arguments *arguments) {
    const char *word = arguments->operand[0];
    bool tokenizes = strcmp(word, "tokenize") == 0;
    if (!options_suit(arguments, tokenizes))
        return EXIT_USAGE;
    if (tokenizes)
        return tokenize(a, arguments);
    if (strcmp(word, "stats") == 0 || strcmp(word, "verify") == 0)
        return data_stats(a, arguments, *word == 'v');
    if (strcmp(word, "bench") == 0)
        return data_bench(a, arguments);
    complain(arguments,
             "data has no '%s'; it has stats, verify, bench and tokenize",
             word);
    return EXIT_USAGE;
}
