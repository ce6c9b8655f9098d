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

int data_command(Arena *a, const Arguments *arguments) {
    const char *word = arguments->operand[0];
    if (strcmp(word, "tokenize") == 0)
        return tokenize(a, arguments);
    if (strcmp(word, "stats") == 0 || strcmp(word, "verify") == 0)
        return data_stats(a, arguments, *word == 'v');
    complain(arguments, "data has no '%s'; it has stats, verify and tokenize",
             word);
    return EXIT_USAGE;
}
