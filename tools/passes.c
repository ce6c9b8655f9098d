// sinter passes: prints the table of passes.
#include "base/exits.h"
#include "tools/tools.h"

int passes_command(Arena *a, const Arguments *arguments) {
    (void)a, (void)arguments;
    for (const Pass *p = standard_passes; p->name; p++)
        printf("%-17s%s\n", p->name, p->what);
    return EXIT_GOOD;
}
