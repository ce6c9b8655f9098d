// Every kernel of the models and of small networks made to be awkward, in fast
// and in faithful mode, fused and not, against the meaning of its graph.

#include "tests/codegen/agree.h"
#include "tests/codegen/suites.h"

#include "runtime/rt.h"

#include <stdlib.h>
#include <string.h>

#define RESNET "models/resnet9.net"
#define LENET "models/lenet.net"
#define NET(name) "tests/codegen/nets/" name ".net"

// Settings: width and batch, or those of a precision.
static const Setting small[] = {{"width", "8"}, {"batch", "2"}};
static const Setting half[] = {
    {"width", "8"}, {"batch", "2"}, {"precision", "mixed(f16)"}};
static const Setting brain[] = {
    {"width", "8"}, {"batch", "2"}, {"precision", "mixed(bf16)"}};
static const Setting plain[] = {
    {"width", "8"}, {"batch", "2"}, {"precision", "f32"}};
static const Setting odd[] = {{"width", "5"}, {"batch", "3"}};
static const Setting few[] = {{"batch", "4"}};
static const Setting single[] = {{"batch", "1"}};
static const Setting as_half[] = {{"precision", "mixed(f16)"}};
static const Setting as_brain[] = {{"precision", "mixed(bf16)"}};
static const Setting single_half[] = {{"batch", "1"},
                                      {"precision", "mixed(f16)"}};

#define WITH(setting) setting, (int)(sizeof(setting) / sizeof *(setting))
#define AS_IS NULL, 0

// A training graph before all passes.
#define IR(name) "tests/codegen/nets/" name ".ir", AS_IS

typedef struct {
    const char *name;
    Case test;
} Named;

// clang-format off
//                               model   settings  storage level simt reuse
static const Named fast[] = {
    {"resnet9",          {RESNET, WITH(small),     F32,  1, false, false, 0}},
    {"resnet9 planned",  {RESNET, WITH(small),     F32,  1, false, true, 0}},
    {"resnet9 unfused",  {RESNET, WITH(small),     F32,  0, false, false, 0}},
    {"resnet9 in f32",   {RESNET, WITH(plain),     F32,  1, false, false, 0}},
    {"resnet9 in f16",   {RESNET, WITH(half),      F16,  1, false, false, 0}},
    {"resnet9 in bf16",  {RESNET, WITH(brain),     BF16, 1, false, false, 0}},
    {"resnet9 odd",      {RESNET, WITH(odd),       F32,  1, false, false, 0}},
    {"lenet",            {LENET,  WITH(few),       F32,  1, false, false, 0}},
    {"lenet planned",    {LENET,  WITH(few),       F32,  1, false, true, 0}},
    {"lenet unfused",    {LENET,  WITH(few),       F32,  0, false, false, 0}},
    {"one channel",      {NET("one-channel"), AS_IS, F32, 1, false, false, 0}},
    {"one of everything", {NET("one-channel"), WITH(single_half), F16, 1, false, false, 0}},
    {"one unfused",      {NET("one-channel"), WITH(single), F32, 0, false, false, 0}},
    {"windows",          {NET("windows"), AS_IS,   F32,  1, false, false, 0}},
    {"windows, batch 1", {NET("windows"), WITH(single), F32, 1, false, true, 0}},
    {"windows in f16",   {NET("windows"), WITH(as_half), F16, 1, false, false, 0}},
    {"windows in bf16",  {NET("windows"), WITH(as_brain), BF16, 1, false, false, 0}},
    {"windows unfused",  {NET("windows"), AS_IS,   F32,  0, false, false, 0}},
    {"pooled statistics", {NET("pooled-statistics"), AS_IS, F32, 1, false, false, 0}},
    {"unfolded",         {NET("unfolded"), AS_IS,  F32,  1, false, false, 0}},
    {"unfolded in f16",  {NET("unfolded"), WITH(as_half), F16, 1, false, false, 0}},
    {"rows",             {NET("rows"), AS_IS,      F32,  1, false, false, 0}},
    {"rows unfused",     {NET("rows"), AS_IS,      F32,  0, false, false, 0}},
    {"squeeze",          {NET("squeeze"), AS_IS,   F32,  1, false, false, 0}},
    {"squeeze in f16",   {NET("squeeze"), WITH(as_half), F16, 1, false, false, 0}},
    {"augmented",        {NET("augmented"), AS_IS, F32,  1, false, false, 0}},
    {"mixed",            {NET("mixed"), AS_IS,     F32,  1, false, false, 0}},
    {"mixed in f16",     {NET("mixed"), WITH(as_half), F16, 1, false, false, 0}},
    {"mixed unfused",    {NET("mixed"), AS_IS,     F32,  0, false, false, 0}},
    {"optimizers",       {NET("optimizers"), AS_IS, F32, 1, false, false, 0}},
    {"optimizers planned", {NET("optimizers"), AS_IS, F32, 1, false, true, 0}},
    {"optimizers in f16", {NET("optimizers"), WITH(as_half), F16, 1, false, false, 0}},
    {"optimizers unfused", {NET("optimizers"), AS_IS, F32, 0, false, false, 0}},
    {"steps",            {NET("steps"), AS_IS,     F32,  1, false, false, 0}},
    {"steps planned",    {NET("steps"), AS_IS,     F32,  1, false, true, 0}},
    {"steps in f16",     {NET("steps"), WITH(as_half), F16, 1, false, false, 0}},
    {"attention",        {IR("attention"),         F32,  1, false, false, 0}},
    {"attention in f16", {IR("attention"),         F16,  1, false, false, 0}},
    {"attention planned", {IR("attention-odd"),    F32,  1, false, true, 0}},
    {"attention unfused", {IR("attention-odd"),    F32,  0, false, false, 0}},
    {"attention in bf16", {IR("attention-odd"),    BF16, 1, false, false, 0}},
    {"attention of one", {IR("attention-of-one"),  F16,  1, false, false, 0}},
    {"group norm",       {IR("group-norm"),        F32,  1, false, false, 0}},
    {"group norm in f16", {IR("group-norm"),       F16,  1, false, false, 0}},
    {"resize",           {IR("resize"),            F32,  1, false, false, 0}},
    {"resize in f16",    {IR("resize"),            F16,  1, false, false, 0}},
    {"resize unfused",   {IR("resize"),            F32,  0, false, false, 0}},
    {"newton-schulz",    {IR("newton-schulz"),     F32,  1, false, true, 0}},
    {"newton-schulz in bf16", {IR("newton-schulz"), BF16, 1, false, false, 0}},
    {"soft labels",      {IR("soft-labels"),       F32,  1, false, false, 0}},
    {"soft labels in f16", {IR("soft-labels"),     F16,  1, false, false, 0}},
    {"factors",          {IR("factors"),           F16,  1, false, false, 0}},
    {"variance",         {IR("variance"),          F32,  1, false, false, 0}},
    {"bits",             {IR("bits"),              F32,  1, false, false, 0}},
    {"bits in f16",      {IR("bits"),              F16,  1, false, false, 0}},
    {"columns of rows",  {IR("columns-of-rows"),   F32,  1, false, false, 0}},
    {"channels",         {IR("channels"),          F32,  1, false, false, 0}},
    {"integers",         {IR("integers"),          F32,  1, false, false, 0}},
    {"integers unfused", {IR("integers"),          F32,  0, false, false, 0}},
    {"constant gradient", {IR("constant-gradient"), F32, 1, false, true, 0}},
    {"empty",            {IR("empty"),             F32,  1, false, false, 0}},
    {"empty unfused",    {IR("empty"),             F32,  0, false, false, 0}},
    {"eight axes",       {IR("eight-axes"),        F16,  1, false, false, 0}},
    {"parameters alone", {IR("parameters-alone"),  F32,  1, false, true, 0}},
    {"stacked together", {IR("stacked-together"),  F32,  1, false, true, 0}},
    {"functions",        {NET("functions"), AS_IS, F32,  1, false, false, 0}},
    {"functions in f16", {NET("functions"), WITH(as_half), F16, 1, false, false, 0}},
    {"functions unfused", {NET("functions"), AS_IS, F32, 0, false, false, 0}},
    {"sequence",         {NET("sequence"), AS_IS,  F32,  1, false, true, 0}},
    {"sequence in bf16", {NET("sequence"), WITH(as_brain), BF16, 1, false, false, 0}},
    {"starts",           {NET("starts"), AS_IS,    F32,  1, false, false, 0}},
    {"starts in f16",    {NET("starts"), WITH(as_half), F16, 1, false, false, 0}},
};

static const Named faithful[] = {
    {"resnet9",          {RESNET, WITH(small),     F32,  1, true, false, 0}},
    {"resnet9 in f16",   {RESNET, WITH(half),      F16,  1, true, false, 0}},
    {"lenet",            {LENET,  WITH(few),       F32,  1, true, false, 0}},
    {"one channel",      {NET("one-channel"), WITH(single), F32, 1, true, false, 0}},
    {"windows",          {NET("windows"), AS_IS,   F32,  1, true, false, 0}},
    {"windows in bf16",  {NET("windows"), WITH(as_brain), BF16, 1, true, false, 0}},
    {"windows unfused",  {NET("windows"), AS_IS,   F32,  0, true, false, 0}},
    {"pooled statistics", {NET("pooled-statistics"), AS_IS, F32, 1, true, false, 0}},
    {"unfolded",         {NET("unfolded"), AS_IS,  F32,  1, true, false, 0}},
    {"rows",             {NET("rows"), AS_IS,      F32,  1, true, false, 0}},
    {"squeeze",          {NET("squeeze"), AS_IS,   F32,  1, true, false, 0}},
    {"augmented",        {NET("augmented"), AS_IS, F32,  1, true, false, 0}},
    {"mixed",            {NET("mixed"), AS_IS,     F32,  1, true, false, 0}},
    {"optimizers",       {NET("optimizers"), AS_IS, F32, 1, true, false, 0}},
    {"attention",        {IR("attention"),         F32,  1, true, false, 0}},
    {"attention in f16", {IR("attention-odd"),     F16,  1, true, false, 0}},
    {"group norm",       {IR("group-norm"),        F32,  1, true, false, 0}},
    {"resize",           {IR("resize"),            F32,  1, true, false, 0}},
    {"newton-schulz",    {IR("newton-schulz"),     F32,  1, true, false, 0}},
    {"soft labels",      {IR("soft-labels"),       F32,  1, true, false, 0}},
    {"variance",         {IR("variance"),          F32,  1, true, false, 0}},
    {"bits",             {IR("bits"),              F32,  1, true, false, 0}},
    {"bits in f16",      {IR("bits"),              F16,  1, true, false, 0}},
    {"columns of rows",  {IR("columns-of-rows"),   F32,  1, true, false, 0}},
    {"channels",         {IR("channels"),          F32,  1, true, false, 0}},
    {"channels in f16",  {IR("channels"),          F16,  1, true, false, 0}},
    {"integers",         {IR("integers"),          F32,  1, true, false, 0}},
    {"eight axes",       {IR("eight-axes"),        F32,  1, true, false, 0}},
    {"parameters alone", {IR("parameters-alone"),  F32,  1, true, false, 0}},
    {"stacked together", {IR("stacked-together"),  F32,  1, true, false, 0}},
    {"functions",        {NET("functions"), AS_IS, F32,  1, true, false, 0}},
    {"sequence",         {NET("sequence"), AS_IS,  F32,  1, true, false, 0}},
    {"starts",           {NET("starts"), AS_IS,    F32,  1, true, false, 0}},
};
// clang-format on

enum {
    NUM_FAST = sizeof fast / sizeof *fast,
    NUM_FAITHFUL = sizeof faithful / sizeof *faithful,
    NUM_RANDOM = 8,
    NUM_JOINED = 3,
};

static void check_agreement(const Named *c) {
    const char *only = getenv("AGREE_ONLY");
    if (only != NULL && strstr(c->name, only) == NULL)
        return;
    Arena *a = arena_new();
    const char *why = agree(a, &c->test);
    ck_assert_msg(why == NULL, "%s%s:\n%s", c->name,
                  c->test.simt ? ", faithful" : "", why);
    arena_free(a);
}

static Named random_case(int i, bool simt) {
    static const DType storage[] = {F32, F16, F32, BF16};
    return (Named){"random graph",
                   {.seed = (uint32_t)i,
                    .storage = storage[i % 4],
                    .level = i % 5 != 0,
                    .simt = simt}};
}

START_TEST(random_kernels_agree) {
    Named c = random_case(_i, false);
    check_agreement(&c);
}
END_TEST

START_TEST(faithful_random_kernels_agree) {
    Named c = random_case(_i, true);
    check_agreement(&c);
}
END_TEST

START_TEST(fast_kernels_agree) {
    check_agreement(&fast[_i]);
}
END_TEST

START_TEST(faithful_kernels_agree) {
    check_agreement(&faithful[_i]);
}
END_TEST

// Kernels that are joined leave the same bits as one by one.
static const Named joined[] = {
    {"mixed joined", {NET("mixed"), AS_IS, F16, 1, true, true, 0}},
    {"squeeze joined", {NET("squeeze"), AS_IS, F16, 1, true, true, 0}},
    {"attention joined", {IR("attention-odd"), F32, 1, true, true, 0}},
};

START_TEST(joined_kernels_agree) {
    const char *only = getenv("AGREE_ONLY");
    if (only != NULL && strstr(joined[_i].name, only) == NULL)
        return;
    Arena *a = arena_new();
    const char *why = agree_joined(a, &joined[_i].test);
    ck_assert_msg(why == NULL, "%s, joined:\n%s", joined[_i].name, why);
    arena_free(a);
}
END_TEST

// The emitted library finds the runtime in this program.
static void *const runtime[] __attribute__((used)) = {
    (void *)rt_main, (void *)rt_phase, (void *)rt_launch, (void *)rt_contract};

Suite *agree_suite(void) {
    Suite *s = suite_create("agree");
    TCase *t = tcase_create("fast");
    tcase_set_timeout(t, 300);
    tcase_add_loop_test(t, fast_kernels_agree, 0, NUM_FAST);
    tcase_add_loop_test(t, random_kernels_agree, 0, NUM_RANDOM);
    suite_add_tcase(s, t);
    t = tcase_create("faithful");
    tcase_set_timeout(t, 300);
#ifdef HAVE_SIMT
    tcase_add_loop_test(t, faithful_kernels_agree, 0, NUM_FAITHFUL);
    tcase_add_loop_test(t, faithful_random_kernels_agree, 0, NUM_RANDOM);
    tcase_add_loop_test(t, joined_kernels_agree, 0, NUM_JOINED);
#else
    (void)joined_kernels_agree;
    (void)faithful_kernels_agree;
    (void)faithful_random_kernels_agree;
#endif
    suite_add_tcase(s, t);
    return s;
}
