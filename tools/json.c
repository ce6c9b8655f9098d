// JSON: how strings are written in it.
#include "tools/tools.h"

void json_string(Text *t, const char *s) {
    text_add(t, "\"");
    for (; *s; s++) {
        if (*s == '"' || *s == '\\')
            text_add(t, "\\%c", *s);
        else if ((unsigned char)*s < 0x20)
            text_add(t, "\\u%04x", *s);
        else
            text_add(t, "%c", *s);
    }
    text_add(t, "\"");
}
