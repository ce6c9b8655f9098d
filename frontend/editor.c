// Names for editors: those of a file, built-in functions and keys.

#include "frontend/frontend.h"
#include "frontend/functions/functions.h"
#include "frontend/train/train.h"

#include <string.h>

// "block(x, heads=3, drop)", with defaults as they are written.
static const char *function_form(Arena *a, const Function *f) {
    Text t = text_new(a);
    text_add(&t, "%s(", f->name);
    for (int i = 0; i < f->num_params; i++) {
        const Param *p = &f->param[i];
        text_add(&t, "%s%s", i > 0 ? ", " : "", p->name);
        if (p->type != NULL)
            text_add(&t, ": %.*s", (int)(p->type->at.end - p->type->at.start),
                     p->type->at.source->text + p->type->at.start);
        if (p->otherwise != NULL)
            text_add(&t, "=%.*s",
                     (int)(p->otherwise->at.end - p->otherwise->at.start),
                     p->otherwise->at.source->text + p->otherwise->at.start);
    }
    text_add(&t, ")");
    return text_string(&t);
}

static DefinedName item_name(Arena *a, const Item *i) {
    switch (i->kind) {
    case ITEM_TRAIN:
        return (DefinedName){.kind = NAME_TRAIN,
                             .name = i->train.model,
                             .at = i->train.model_at,
                             .item = i->train.at};
    default:
        return (DefinedName){
            .kind = i->kind == ITEM_MODEL ? NAME_MODEL : NAME_FUNCTION,
            .name = i->function->name,
            .at = i->function->name_at,
            .item = span_join(i->function->name_at, i->function->body.at),
            .form = function_form(a, i->function)};
    }
}

// The names of an item, in its order.
static int item_names(Arena *a, const Item *i, DefinedName *list) {
    int count = 0;
    for (; count < i->import.num_names; count++)
        list[count] = (DefinedName){.kind = NAME_IMPORT,
                                    .name = i->import.name[count].name,
                                    .at = i->import.name[count].at,
                                    .item = i->import.name[count].at,
                                    .path = i->import.path};
    for (; count < i->let.to.count; count++)
        list[count] = (DefinedName){.kind = NAME_LET,
                                    .name = i->let.to.name[count].name,
                                    .at = i->let.to.name[count].at,
                                    .item = i->let.at};
    if (i->kind != ITEM_IMPORT && i->kind != ITEM_LET)
        list[count++] = item_name(a, i);
    return count;
}

const DefinedName *frontend_names(Arena *a, const Source *s, int *count) {
    Diagnostics diags = diag_new(a);
    const File *f = parse(a, atoms_new(a), s, &diags);
    size_t room = 1;
    *count = 0;
    if (diags.errors > 0)
        return NULL;
    for (int i = 0; i < f->count; i++)
        room += 1 + (size_t)f->item[i].import.num_names +
                (size_t)f->item[i].let.to.count;
    DefinedName *list = ARENA_ARRAY(a, room, DefinedName);
    for (int i = 0; i < f->count; i++)
        *count += item_names(a, &f->item[i], &list[*count]);
    return list;
}

const char *frontend_builtin(Arena *a, int i, const char **form) {
    if (i >= NUM_BUILTINS)
        return NULL;
    const Builtin *b = &builtin_info[i];
    const ParamInfo *p = &param_info[b->first];
    Text t = text_new(a);
    text_add(&t, "%s(", b->name);
    for (int k = 0; k < builtin_num_params(b); k++) {
        const char *value = p[k].otherwise;
        text_add(&t, "%s%s", k > 0 ? ", " : "", p[k].name);
        if (value != NULL)
            text_add(&t, "=%s", *value != '\0' ? value : "...");
    }
    text_add(&t, ")");
    *form = text_string(&t);
    return b->name;
}

const char *frontend_key(int i) {
    return key_name(i);
}
