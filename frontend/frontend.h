// The front end: a model file becomes a Program.
#ifndef FRONTEND_FRONTEND_H
#define FRONTEND_FRONTEND_H

#include "base/diag.h"
#include "ir/program.h"

// KEY=VALUE of --set: a model parameter (width), a key (batch, epochs, seed,
// precision) or an argument of one (optimizer.lr).
typedef struct {
    const char *key, *value;
} Setting;

// Compiles the file at path.  Adds diagnostics to diags; NULL if one is an
// error.  Everything is allocated in a.
Program *frontend_load(Arena *a, const char *path, const Setting *setting,
                       int num_settings, Diagnostics *diags);

// As frontend_load for text in memory; path is for messages and imports.
Program *frontend_parse(Arena *a, const char *path, const char *text,
                        size_t length, const Setting *setting, int num_settings,
                        Diagnostics *diags);

// Formats the text into *out.  False if it has syntax errors, which are added
// to diags.
bool frontend_format(Arena *a, const char *path, const char *text,
                     size_t length, Text *out, Diagnostics *diags);

// Prints the syntax tree.  False if the text has syntax errors, which are added
// to diags.
bool frontend_tree(Arena *a, const Source *s, Text *out, Diagnostics *diags);

// The text of a module such as "std/vision.net"; NULL for none.
const char *std_text(const char *path);
// The names of its functions: "random_crop, flip_lr".
const char *std_functions(Arena *a, const char *path);

// The path of module i; NULL after the last.
const char *std_path(int i);

// The path of the module that defines a function; NULL for none.
const char *std_module_of(const char *function);

// The name of normalization or activation function i; NULL after the last.
const char *norm_or_activation(int i);

// ---- editor.c, uses.c: what an editor offers ----

// A name that a file defines or imports.
typedef struct {
    enum { NAME_FUNCTION, NAME_MODEL, NAME_TRAIN, NAME_LET, NAME_IMPORT } kind;
    const char *name;
    Span at;          // the name
    Span item;        // to the end of its definition
    const char *form; // "block(x, heads, drop)"; NULL: none
    const char *path; // of an import: the imported file
} DefinedName;

// The names of a text without syntax errors, in its order; NULL: it has some.
const DefinedName *frontend_names(Arena *a, const Source *s, int *count);

// The places where a file's name means the same, in order.
typedef struct {
    Span *at;
    int count;           // 0: no name of the file, or it has syntax errors
    uint32_t definition; // the offset of the definition, which is one of them
    bool imported;       // it is defined in another file
} NameUses;

// The uses of the name at an offset.
NameUses frontend_uses(Arena *a, const Source *s, uint32_t offset);
// Whether `name` is a name, of nothing in the language and in the file.
bool frontend_name_is_free(Arena *a, const Source *s, const char *name);

// Built-in function i and its form, "conv(x, channels, size, stride=1)"; NULL
// after the last.
const char *frontend_builtin(Arena *a, int i, const char **form);

// Key i of a train block; NULL after the last.
const char *frontend_key(int i);

#endif
