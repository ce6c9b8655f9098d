// The front end: a model file becomes a Program.
#ifndef FRONTEND_FRONTEND_H
#define FRONTEND_FRONTEND_H

#include "base/diag.h"
#include "ir/program.h"

// KEY=VALUE of --set: a model parameter (width), a recipe key (batch, epochs,
// seed, precision) or an argument of one (optimizer.lr).
typedef struct {
    const char *key, *value;
} Setting;

// Parses, checks and expands the file at path.  Mistakes of the user are added
// to diags; NULL when there is an error among them.  Everything lives in a.
Program *frontend_load(Arena *a, const char *path, const Setting *setting,
                       int num_settings, Diagnostics *diags);

// As frontend_load for text that is already in memory; path is used in
// messages, its directory for imports.
Program *frontend_parse(Arena *a, const char *path, const char *text,
                        size_t length, const Setting *setting, int num_settings,
                        Diagnostics *diags);

// Adds the text in its one layout to *out.  False when it cannot be parsed,
// with the reasons in diags.
bool frontend_format(Arena *a, const char *path, const char *text,
                     size_t length, Text *out, Diagnostics *diags);

// Adds what the parser makes of the text, as a tree.  False when it cannot be
// parsed, with the reasons in diags.
bool frontend_tree(Arena *a, const Source *s, Text *out, Diagnostics *diags);

// The text of a module of the compiler such as "std/vision.net"; NULL for none.
const char *std_text(const char *path);

// The path of module i; NULL after the last.
const char *std_path(int i);

// The path of the module that defines a function; NULL for none.
const char *std_module_of(const char *function);

#endif
