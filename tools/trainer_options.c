// Trainer options: the options of every trainer, which sinter train passes on.
#include "runtime/runtime.h"
#include "tools/tools.h"

#include <string.h>

bool trainer_option_is(const char *word, bool more, int *words) {
    RtOptionText o;
    size_t length = strcspn(word, "=");
    for (int i = 0; rt_option_text(i, &o); i++) {
        if (strncmp(word, "--", 2) != 0 || strlen(o.name) + 2 != length ||
            strncmp(word + 2, o.name, length - 2) != 0)
            continue;
        bool takes = o.value != NULL && o.value[0] != '[';
        *words = takes && word[length] != '=' && more ? 2 : 1;
        return true;
    }
    return false;
}

void trainer_options_offer(Nearest *near) {
    RtOptionText o;
    for (int i = 0; rt_option_text(i, &o); i++)
        nearest_offer(near, o.name);
}

void trainer_options_help(Text *t) {
    enum { COLUMN = 28 };
    RtOptionText o;
    text_add(t, "\nOptions of the trainer, also in one word as --data=DIR; all "
                "words after -- are its own:\n\n");
    for (int i = 0; rt_option_text(i, &o); i++) {
        size_t start = t->length;
        text_add(t, "  --%s%s%s", o.name,
                 o.value != NULL && o.value[0] != '[' ? "=" : "",
                 o.value != NULL ? o.value : "");
        int wide = (int)(t->length - start);
        text_add(t, "%*s%s\n", wide < COLUMN ? COLUMN - wide : 2, "", o.help);
    }
}
