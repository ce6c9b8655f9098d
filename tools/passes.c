// sinter passes: prints the table of passes, on graphs and on kernels.
#include "base/exits.h"
#include "codegen/codegen.h"
#include "tools/tools.h"

int passes_command(Arena *a, const Arguments *arguments) {
    (void)a, (void)arguments;
    for (const Pass *p = standard_passes; p->name; p++)
        printf("%-20s%s\n", p->name, p->summary);
    const char *what;
    for (int i = 0; codegen_pass(i, &what) != NULL; i++)
        printf("%-20s%s\n", codegen_pass(i, &what), what);
    return EXIT_GOOD;
}
