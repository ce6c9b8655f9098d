// The emitted text: the same for the same model, and free of the user's text.
#define _GNU_SOURCE
#include "tests/codegen/suites.h"

#include "codegen/codegen.h"
#include "frontend/frontend.h"
#include "passes/passes.h"
#include "tests/codegen/load.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *c, *cu;
} Output;

static Output emit(Arena *a, const Program *p, const char *base) {
    CodegenOptions o = {.version = "1.2.3", .base = base, .fingerprint = 42};
    Text c = text_new(a), cu = text_new(a);
    const Plan *plan[NUM_PLANS];
    load_plans(p, 1, plan);
    TileTexts tiles = {.arena = a};
    codegen_program(p, plan, &o, &c, &cu, &tiles);
    return (Output){text_string(&c), text_string(&cu)};
}

static Program *parse(Arena *a, const char *path, const char *text) {
    Diagnostics diags = diag_new(a);
    Program *p = frontend_parse(a, path, text, strlen(text), NULL, 0, &diags);
    Text t = text_new(a);
    diag_print(&t, &diags);
    ck_assert_msg(p != NULL, "%s", text_string(&t));
    return p;
}

static Program *model(Arena *a, const char *file) {
    const char *root = getenv("SINTER_SOURCE");
    Diagnostics diags = diag_new(a);
    Program *p = frontend_load(
        a, arena_format(a, "%s/models/%s", root ? root : ".", file), NULL, 0,
        &diags);
    ck_assert_ptr_nonnull(p);
    return p;
}

static const char *const models[] = {"lenet.net", "resnet9.net"};

START_TEST(equal_models_have_equal_bytes) {
    Arena *a = arena_new(), *b = arena_new();
    Output x = emit(a, model(a, models[_i]), "m");
    char *shift = malloc(12345); // other addresses must not show
    Output y = emit(b, model(b, models[_i]), "m");
    ck_assert_str_eq(x.c, y.c);
    ck_assert_str_eq(x.cu, y.cu);
    free(shift);
    arena_free(a);
    arena_free(b);
}
END_TEST

START_TEST(same_program_twice_has_equal_bytes) {
    Arena *a = arena_new();
    Program *p = model(a, models[_i]);
    Output x = emit(a, p, "m"), y = emit(a, p, "m");
    ck_assert_str_eq(x.c, y.c);
    ck_assert_str_eq(x.cu, y.cu);
    arena_free(a);
}
END_TEST

START_TEST(lines_fit_a_screen) {
    Arena *a = arena_new();
    Output x = emit(a, model(a, models[_i]), "m");
    for (const char *line = x.cu; *line;) {
        size_t length = strcspn(line, "\n");
        ck_assert_msg(length < 160, "%.*s", (int)length, line);
        ck_assert(length == 0 || line[length - 1] != ' ');
        line += length + (line[length] == '\n');
    }
    arena_free(a);
}
END_TEST

// ---- hostile names ----

#define LONG                                                                   \
    "a234567890123456789012345678901234567890123456789012345678901234567890"

static const char hostile[] =
    "model Evil(image: u8[N, 4, 4, 1]) -> f32[N, 2] {\n"
    "  image\n"
    "    |> conv(2, 3) |> batch_norm |> relu as KERNEL\n"
    "    |> conv(2, 3) |> relu               as while\n"
    "    |> conv(2, 3) |> relu               as " LONG "\n"
    "    |> flatten |> linear(2)             as __attribute__\n"
    "}\n"
    "train Evil {\n"
    "  data      = idx(\"data??"
    "/x\")\n"
    "  batch     = 2, drop_last\n"
    "  epochs    = 2\n"
    "  loss      = mean(cross_entropy(output, label))\n"
    "  optimizer = sgd(lr=0.1, momentum=0.9)\n"
    "}\n";

static const char path[] = "dir/x\n#error \"y\\ ?"
                           "?'\xc3\xa9; }*.net";

// Whether a directive is one that every kernel file has.
static bool is_own(const char *line) {
    static const char *const own[] = {
        "#include \"runtime/prelude/prelude.h\"\n",
        "#ifndef SINTER_ACT\n",
        "#define SINTER_ACT 32 // ",
        "#ifdef SINTER_MERGED\n",
        "#endif\n",
        "#if IS_NEEDED("};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (strncmp(line, own[i], strlen(own[i])) == 0)
            return true;
    return false;
}

START_TEST(file_names_stay_in_comments) {
    Arena *a = arena_new();
    Output x = emit(a, parse(a, path, hostile), "m");
    const char *safe = "x__error__y_______";
    ck_assert_ptr_nonnull(strstr(x.cu, safe));
    for (const char *s = x.cu; *s; s++)
        ck_assert_msg(*s == '\n' || (*s >= ' ' && *s <= '~'),
                      "byte %d in the kernels", *s);
    for (const char *line = x.cu; *line;) {
        size_t length = strcspn(line, "\n");
        const char *found = strstr(line, safe);
        if (found && found < line + length)
            ck_assert_msg(strncmp(line, "//", 2) == 0, "%.*s", (int)length,
                          line);
        ck_assert_msg(*line != '#' || is_own(line), "%.*s", (int)length, line);
        line += length + (line[length] == '\n');
    }
    arena_free(a);
}
END_TEST

// A name is a letter, a number, and small letters, digits and underscores.
static void check_name(const char *name) {
    size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_");
    ck_assert_msg(name[length] == '\0', "kernel %s", name);
    ck_assert_msg((*name == 'k' || *name == 'c') &&
                      isdigit((unsigned char)name[1]),
                  "kernel %s", name);
}

START_TEST(kernel_names_are_plain) {
    Arena *a = arena_new();
    Program *p = parse(a, path, hostile);
    PassOptions o = pass_options(&p->recipe, "cuda");
    const Plan *plan = program_plan(p, &o);
    const GraphPlan *train = plan_step(plan, "train")->plan;
    int number = 0, count = train->num_groups;
    Kernel *k = codegen_kernels(train, train, a, &number);
    ck_assert_int_eq(number, count);
    ck_assert_int_gt(count, 10);
    for (int i = 0; i < count; i++) {
        check_name(k[i].name);
        for (int j = 0; j < i; j++)
            ck_assert_str_ne(k[i].name, k[j].name);
    }
    arena_free(a);
}
END_TEST

static const char staged[] =
    "model Staged(image: u8[N, 8, 8, 1]) -> f32[N, 2] {\n"
    "  image |> conv(4, 3) as first |> relu |> flatten |> linear(2)\n"
    "}\n"
    "train Staged {\n"
    "  data      = synthetic()\n"
    "  batch     = 2, drop_last\n"
    "  epochs    = 2\n"
    "  loss      = mean(cross_entropy(output, label))\n"
    "  optimizer = sgd(lr=0.1, momentum=0.9)\n"
    "  freeze \"first.*\" after 1 epoch\n"
    "}\n";

static int count_of(const char *text, const char *what) {
    int count = 0;
    for (; (text = strstr(text, what)) != NULL; text++)
        count++;
    return count;
}

// What stages have in common is written once, and all that is run is written.
START_TEST(stages_share_kernels) {
    Arena *a = arena_new();
    Output x = emit(a, parse(a, "staged.net", staged), "m");
    int runs = 0;
    for (const char *s = x.c; (s = strstr(s, "    RUN(k")) != NULL; runs++) {
        s += strlen("    RUN(");
        const char *name =
            arena_format(a, ") %.*s(\n", (int)strcspn(s, ","), s);
        ck_assert_msg(count_of(x.cu, name) == 1, "%s", name);
    }
    ck_assert_int_gt(runs, count_of(x.cu, "\nKERNEL(256") + 3);
    // The second stage does not compute the gradient of what is frozen.
    const char *second = strstr(x.c, "static void train_2_step");
    ck_assert_ptr_nonnull(second);
    const char *end = strstr(second, "\n}\n");
    ck_assert_ptr_null(memmem(second, (size_t)(end - second), "first, backward",
                              strlen("first, backward")));
    ck_assert_ptr_nonnull(strstr(x.c, "// first, backward"));
    arena_free(a);
}
END_TEST

// Every merged launch waits for all of its blocks before it goes on, and calls
// functions that are there, once for all merges.
START_TEST(merged_launches_wait_between_kernels) {
    Arena *a = arena_new();
    Output x = emit(a, model(a, "resnet9.net"), "m");
    int merges = 0, restricted = 0;
    for (const char *s = x.cu; (s = strstr(s, "\nMERGED(256) ")) != NULL;) {
        const char *end = strstr(++s, "\n}\n");
        const char *text = arena_string(a, s, (size_t)(end - s));
        int kernels = count_of(text, "_body(");
        ck_assert_int_ge(kernels, 2);
        ck_assert_int_eq(count_of(text, "    PHASE("), kernels);
        ck_assert_int_eq(count_of(text, "GRID_BARRIER(barrier);\n    PHASE("),
                         kernels - 1);
        restricted += count_of(text, "RESTRICT");
        for (const char *call = text; (call = strstr(call, "\n        k"));) {
            call += strlen("\n        ");
            const char *body = arena_format(a, "\nBODY %.*s(\n",
                                            (int)strcspn(call, "("), call);
            ck_assert_msg(count_of(x.cu, body) == 1, "%s", body);
            const char *list = strstr(x.cu, body);
            const char *restricts = strstr(list, "RESTRICT");
            ck_assert_msg(!restricts || restricts > strstr(list, "\n{\n"), "%s",
                          body);
        }
        merges++;
    }
    ck_assert_int_gt(merges, 10);
    ck_assert_int_gt(restricted, merges);
    arena_free(a);
}
END_TEST

// Bytes that two arguments of a merged launch share, by the tensors' offsets.
static bool share_bytes(const Graph *g, const Parameter *a,
                        const Parameter *b) {
    int64_t first = g->node[a->node].offset, second = g->node[b->node].offset;
    const Parameter *lower = first < second ? a : b;
    int64_t apart = first < second ? second - first : first - second;
    return apart < graph_bytes(g, g->node[lower->node].type);
}

// An argument of a merged launch has RESTRICT if all launches with its text
// read it, and none of them writes its memory.
START_TEST(merged_launches_read_what_none_of_them_writes) {
    static const char *const nets[] = {"resnet9.net", "gpt_nano.net"};
    Arena *a = arena_new();
    const Plan *plan[NUM_PLANS];
    load_plans(model(a, nets[_i]), 1, plan);
    const Launches *l = codegen_launches(plan[HOST_PLAN], plan[GPU_PLAN], a);
    int restricted = 0, reused = 0;
    for (int s = 0; s < plan[HOST_PLAN]->num_steps; s++)
        for (int i = 0; i < l[s].plan->merged.count; i++) {
            const MergedKernel *m = &l[s].merged[i];
            const Kernel *last = m->kernel[m->launch.count - 1].first;
            const MergedKernel *text = last->merged;
            while (strcmp(text->name, m->name) != 0)
                text = text->next;
            const Parameter *all[MAX_MERGED_POINTERS];
            int count = 0;
            for (int k = 0; k < m->launch.count; k++)
                for (int p = 0; p < m->kernel[k].num_args; p++)
                    all[count++] = &m->kernel[k].arg[p];
            for (int p = 0; p < count; p++) {
                bool reads = strncmp(all[p]->type, "const ", 6) == 0;
                bool written = !reads;
                for (int q = 0; q < count; q++)
                    written |= strncmp(all[q]->type, "const ", 6) != 0 &&
                               share_bytes(l[s].plan->graph, all[p], all[q]);
                ck_assert_msg(!written || !text->read_only[p], "%s: %d",
                              m->name, p);
                restricted += text->read_only[p];
                reused += reads && written;
            }
        }
    ck_assert_int_gt(restricted, 20);
    ck_assert_int_gt(reused, 10);
    arena_free(a);
}
END_TEST

// The part of a text that is kernel `number` itself.
static const char *own_part(Arena *a, const char *cu, int number) {
    const char *only = arena_format(a, "\n#if IS_NEEDED(%d)\n", number);
    const char *begin = strstr(cu, only);
    if (begin == NULL)
        return NULL;
    if (strstr(begin + 1, only) != NULL)
        begin = strstr(begin + 1, only);
    const char *end = strstr(begin + 1, "\n#if IS_NEEDED(");
    return end ? arena_string(a, begin, (size_t)(end - begin)) : begin;
}

// Whether a function is there for a kernel, by the directive before it.
static bool is_there(Arena *a, const char *directive, const char *body,
                     int number) {
    return memmem(directive, (size_t)(body - directive),
                  arena_format(a, "IS_NEEDED(%d)", number),
                  strlen(arena_format(a, "IS_NEEDED(%d)", number))) != NULL;
}

// A kernel that is compiled for itself has what it calls, and nothing else.
START_TEST(functions_are_there_for_who_calls_them) {
    Arena *a = arena_new();
    enum { MAX_KERNELS = 1000 };
    Output x = emit(a, model(a, "mobilenetv2.net"), "m");
    int kernels = 0, bodies = 0, wrapped = 0;
    const char *own[MAX_KERNELS], *directive = x.cu;
    while ((own[kernels] = own_part(a, x.cu, kernels)) != NULL)
        ck_assert_int_lt(++kernels, MAX_KERNELS);
    for (const char *s = x.cu; (s = strstr(s, "\nBODY ")) != NULL; bodies++) {
        for (const char *next = directive; next && next < s;
             next = strstr(next + 1, "\n#if "))
            directive = next;
        s += strlen("\nBODY ");
        const char *call = arena_format(a, " %.*s(", (int)strcspn(s, "("), s);
        for (int k = 0; k < kernels; k++)
            ck_assert_msg((strstr(own[k], call) != NULL) ==
                              is_there(a, directive, s, k),
                          "kernel %d and%s", k, call);
        wrapped +=
            memmem(directive, (size_t)(s - directive), "\\\n", 2) != NULL;
    }
    ck_assert_int_gt(bodies, 50);
    ck_assert_int_gt(wrapped, 1);
    arena_free(a);
}
END_TEST

// ---- loops over positions ----

static const char *const cells[] = {"gru(16)", "lstm(16)", "rnn(16)",
                                    "linear(16) |> decayed"};

static Output recurrent(Arena *a, const char *cell, int positions, int batch) {
    const char *text = arena_format(
        a,
        "import \"std/recurrent.net\" { gru, lstm, rnn }\n"
        "fn decayed(x: f32[N, T, C]) {\n"
        "  a = sigmoid(parameter([C]))\n"
        "  h = full([1, C], 0)\n"
        "  all = []\n"
        "  for t in range(T) {\n"
        "    now = slice(x, positions, t, t + 1) |> reshape([-1, C])\n"
        "    h = a * h + now\n"
        "    all = all + [h]\n"
        "  }\n"
        "  stack(all)\n"
        "}\n"
        "model Text(text: i32[N, T]) -> f32[N, T, 8] {\n"
        "  text |> embedding(8, 16) |> %s |> linear(8)\n"
        "}\n"
        "train Text {\n"
        "  data = synthetic(vocabulary=8, shape=[%d])\n"
        "  batch = %d\n  epochs = 1\n"
        "  loss = mean(cross_entropy(output, label))\n"
        "  optimizer = adamw(lr=1e-3)\n"
        "}\n",
        cell, positions, batch);
    return emit(a, parse(a, "text.net", text), "m");
}

static int count(const char *text, const char *word) {
    int found = 0;
    while ((text = strstr(text, word)) != NULL) {
        text += strlen(word);
        found++;
    }
    return found;
}

// With a batch of 1 too, where a bias's gradient at a position is no sum.
START_TEST(positions_add_no_kernel) {
    Arena *a = arena_new();
    const char *cell = cells[_i / 2];
    int batch = _i % 2 ? 1 : 4;
    Output x = recurrent(a, cell, 24, batch), y = recurrent(a, cell, 96, batch);
    ck_assert_int_eq(count(x.cu, "\nKERNEL("), count(y.cu, "\nKERNEL("));
    ck_assert_int_eq(count(x.c, " RUN("), count(y.c, " RUN("));
    ck_assert_int_eq(count(x.c, " rt_contract("), count(y.c, " rt_contract("));
    arena_free(a);
}
END_TEST

// Repeated launches and tables of addresses take no time to compile, so each
// piece has kernels, but for one that begins within a long kernel.
START_TEST(pieces_share_the_kernels) {
    enum { PIECES = 8 };
    Arena *a = arena_new();
    Output x = recurrent(a, cells[_i], 48, 4);
    int with = 0;
    for (int p = 0; p < PIECES; p++) {
        const char *piece =
            strstr(x.c, arena_format(a, "\n#if IN_UNIT(%d)\nHOST_", p));
        with += piece != NULL;
    }
    ck_assert_int_ge(with, PIECES - 1);
    arena_free(a);
}
END_TEST

// In C source a quoted string may not be what it looks like.
START_TEST(strings_are_quoted) {
    Arena *a = arena_new();
    Output x = emit(a, parse(a, path, hostile), "m");
    ck_assert_ptr_nonnull(strstr(x.c, ".data_path = \"data\\?\\?/x\""));
    ck_assert_ptr_nonnull(
        strstr(x.c, ".file = \"x\\012#error \\\"y\\\\ \\?\\?'\\303\\251; }*"));
    arena_free(a);
}
END_TEST

Suite *program_suite(void) {
    Suite *s = suite_create("program");
    TCase *t = tcase_create("text");
    tcase_set_timeout(t, 60); // on a busy machine
    tcase_add_loop_test(t, equal_models_have_equal_bytes, 0, 2);
    tcase_add_loop_test(t, same_program_twice_has_equal_bytes, 0, 2);
    tcase_add_loop_test(t, lines_fit_a_screen, 0, 2);
    tcase_add_test(t, file_names_stay_in_comments);
    tcase_add_test(t, kernel_names_are_plain);
    tcase_add_test(t, stages_share_kernels);
    tcase_add_loop_test(t, merged_launches_read_what_none_of_them_writes, 0, 2);
    tcase_add_test(t, merged_launches_wait_between_kernels);
    tcase_add_test(t, functions_are_there_for_who_calls_them);
    tcase_add_loop_test(t, positions_add_no_kernel, 0,
                        2 * sizeof cells / sizeof *cells);
    tcase_add_loop_test(t, pieces_share_the_kernels, 0,
                        sizeof cells / sizeof *cells);
    tcase_add_test(t, strings_are_quoted);
    suite_add_tcase(s, t);
    return s;
}
