// Cases: see cases.h.
#include "tests/codegen/cases.h"

#include <stddef.h>

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

// clang-format off
//                               model   settings  storage level how reuse
const Named agree_cases[] = {
    {"resnet9",          {RESNET, WITH(small),     F32,  1, FAST, false, 0}},
    {"resnet9 planned",  {RESNET, WITH(small),     F32,  1, FAST, true, 0}},
    {"resnet9 unfused",  {RESNET, WITH(small),     F32,  0, FAST, false, 0}},
    {"resnet9 in f32",   {RESNET, WITH(plain),     F32,  1, FAST, false, 0}},
    {"resnet9 in f16",   {RESNET, WITH(half),      F16,  1, FAST, false, 0}},
    {"resnet9 in bf16",  {RESNET, WITH(brain),     BF16, 1, FAST, false, 0}},
    {"resnet9 odd",      {RESNET, WITH(odd),       F32,  1, FAST, false, 0}},
    {"lenet",            {LENET,  WITH(few),       F32,  1, FAST, false, 0}},
    {"lenet planned",    {LENET,  WITH(few),       F32,  1, FAST, true, 0}},
    {"lenet unfused",    {LENET,  WITH(few),       F32,  0, FAST, false, 0}},
    {"one channel",      {NET("one-channel"), AS_IS, F32, 1, FAST, false, 0}},
    {"one of everything", {NET("one-channel"), WITH(single_half), F16, 1, FAST, false, 0}},
    {"one unfused",      {NET("one-channel"), WITH(single), F32, 0, FAST, false, 0}},
    {"windows",          {NET("windows"), AS_IS,   F32,  1, FAST, false, 0}},
    {"windows, batch 1", {NET("windows"), WITH(single), F32, 1, FAST, true, 0}},
    {"windows in f16",   {NET("windows"), WITH(as_half), F16, 1, FAST, false, 0}},
    {"windows in bf16",  {NET("windows"), WITH(as_brain), BF16, 1, FAST, false, 0}},
    {"windows unfused",  {NET("windows"), AS_IS,   F32,  0, FAST, false, 0}},
    {"pooled statistics", {NET("pooled-statistics"), AS_IS, F32, 1, FAST, false, 0}},
    {"unfolded",         {NET("unfolded"), AS_IS,  F32,  1, FAST, false, 0}},
    {"unfolded in f16",  {NET("unfolded"), WITH(as_half), F16, 1, FAST, false, 0}},
    {"frozen",           {NET("frozen"), AS_IS,    F32,  1, FAST, false, 0}},
    {"frozen in f16",    {NET("frozen"), WITH(as_half), F16, 1, FAST, false, 0}},
    {"rows",             {NET("rows"), AS_IS,      F32,  1, FAST, false, 0}},
    {"rows unfused",     {NET("rows"), AS_IS,      F32,  0, FAST, false, 0}},
    {"ends of rows",     {IR("row-ends"),          F32,  1, FAST, false, 0}},
    {"pairs of rows",    {IR("pairs"),             F32,  1, FAST, false, 0}},
    {"scattered",        {IR("scattered"),         F32,  1, FAST, false, 0}},
    {"squeeze",          {NET("squeeze"), AS_IS,   F32,  1, FAST, false, 0}},
    {"squeeze in f16",   {NET("squeeze"), WITH(as_half), F16, 1, FAST, false, 0}},
    {"augmented",        {NET("augmented"), AS_IS, F32,  1, FAST, false, 0}},
    {"warped",           {NET("warped"), AS_IS,    F32,  1, FAST, false, 0}},
    {"warped unfused",   {NET("warped"), AS_IS,    F32,  0, FAST, false, 0}},
    {"mixed",            {NET("mixed"), AS_IS,     F32,  1, FAST, false, 0}},
    {"mixed in f16",     {NET("mixed"), WITH(as_half), F16, 1, FAST, false, 0}},
    {"mixed unfused",    {NET("mixed"), AS_IS,     F32,  0, FAST, false, 0}},
    {"contrast",         {NET("contrast"), AS_IS,  F32,  1, FAST, false, 0}},
    {"contrast in f16",  {NET("contrast"), WITH(as_half), F16, 1, FAST, false, 0}},
    {"contrast unfused", {NET("contrast"), AS_IS,  F32,  0, FAST, true, 0}},
    {"optimizers",       {NET("optimizers"), AS_IS, F32, 1, FAST, false, 0}},
    {"optimizers planned", {NET("optimizers"), AS_IS, F32, 1, FAST, true, 0}},
    {"optimizers in f16", {NET("optimizers"), WITH(as_half), F16, 1, FAST, false, 0}},
    {"optimizers unfused", {NET("optimizers"), AS_IS, F32, 0, FAST, false, 0}},
    {"adaptive optimizers", {NET("adaptive"), AS_IS, F32, 1, FAST, true, 0}},
    {"adaptive optimizers in f16", {NET("adaptive"), WITH(as_half), F16, 1, FAST, false, 0}},
    {"adaptive optimizers unfused", {NET("adaptive"), AS_IS, F32, 0, FAST, false, 0}},
    {"shared gradient",  {NET("shared-gradient"), AS_IS, F32, 1, FAST, true, 0}},
    {"shared gradient in f16", {NET("shared-gradient"), WITH(as_half), F16, 1, FAST, false, 0}},
    {"tables",           {NET("tables"), AS_IS,    F32,  1, FAST, true, 0}},
    {"steps",            {NET("steps"), AS_IS,     F32,  1, FAST, false, 0}},
    {"steps planned",    {NET("steps"), AS_IS,     F32,  1, FAST, true, 0}},
    {"steps in f16",     {NET("steps"), WITH(as_half), F16, 1, FAST, false, 0}},
    {"attention",        {IR("attention"),         F32,  1, FAST, false, 0}},
    {"attention in f16", {IR("attention"),         F16,  1, FAST, false, 0}},
    {"attention planned", {IR("attention-odd"),    F32,  1, FAST, true, 0}},
    {"attention unfused", {IR("attention-odd"),    F32,  0, FAST, false, 0}},
    {"attention in bf16", {IR("attention-odd"),    BF16, 1, FAST, false, 0}},
    {"attention of one", {IR("attention-of-one"),  F16,  1, FAST, false, 0}},
    {"attention tiles",  {IR("attention-tiles"),   F32,  1, FAST, false, 0}},
    {"attention tiles planned", {IR("attention-tiles"), F32, 1, FAST, true, 0}},
    {"attention tiles unfused", {IR("attention-tiles"), F32, 0, FAST, false, 0}},
    {"attention tiles in f16", {IR("attention-tiles"), F16, 1, FAST, false, 0}},
    {"attention tiles in bf16", {IR("attention-tiles"), BF16, 1, FAST, false, 0}},
    {"group norm",       {IR("group-norm"),        F32,  1, FAST, false, 0}},
    {"group norm in f16", {IR("group-norm"),       F16,  1, FAST, false, 0}},
    {"resize",           {IR("resize"),            F32,  1, FAST, false, 0}},
    {"resize in f16",    {IR("resize"),            F16,  1, FAST, false, 0}},
    {"resize unfused",   {IR("resize"),            F32,  0, FAST, false, 0}},
    {"newton-schulz",    {IR("newton-schulz"),     F32,  1, FAST, true, 0}},
    {"newton-schulz in bf16", {IR("newton-schulz"), BF16, 1, FAST, false, 0}},
    {"soft labels",      {IR("soft-labels"),       F32,  1, FAST, false, 0}},
    {"soft labels in f16", {IR("soft-labels"),     F16,  1, FAST, false, 0}},
    {"factors",          {IR("factors"),           F16,  1, FAST, false, 0}},
    {"variance",         {IR("variance"),          F32,  1, FAST, false, 0}},
    {"least",            {IR("least"),             F32,  1, FAST, false, 0}},
    {"draws",            {IR("draws"),             F32,  1, FAST, false, 0}},
    {"draws in f16",     {IR("draws"),             F16,  1, FAST, false, 0}},
    {"draws unfused",    {IR("draws"),             F32,  0, FAST, false, 0}},
    {"bits",             {IR("bits"),              F32,  1, FAST, false, 0}},
    {"bits in f16",      {IR("bits"),              F16,  1, FAST, false, 0}},
    {"columns of rows",  {IR("columns-of-rows"),   F32,  1, FAST, false, 0}},
    {"channels",         {IR("channels"),          F32,  1, FAST, false, 0}},
    {"integers",         {IR("integers"),          F32,  1, FAST, false, 0}},
    {"integers unfused", {IR("integers"),          F32,  0, FAST, false, 0}},
    {"constant gradient", {IR("constant-gradient"), F32, 1, FAST, true, 0}},
    {"margins",          {IR("margins"),           F32,  1, FAST, false, 0}},
    {"empty",            {IR("empty"),             F32,  1, FAST, false, 0}},
    {"empty unfused",    {IR("empty"),             F32,  0, FAST, false, 0}},
    {"eight axes",       {IR("eight-axes"),        F16,  1, FAST, false, 0}},
    {"parameters alone", {IR("parameters-alone"),  F32,  1, FAST, true, 0}},
    {"stacked together", {IR("stacked-together"),  F32,  1, FAST, true, 0}},
    {"functions",        {NET("functions"), AS_IS, F32,  1, FAST, false, 0}},
    {"functions in f16", {NET("functions"), WITH(as_half), F16, 1, FAST, false, 0}},
    {"functions unfused", {NET("functions"), AS_IS, F32, 0, FAST, false, 0}},
    {"recurrence",       {NET("recurrence"), AS_IS,  F32,  1, FAST, true, 0}},
    {"recurrence, batch 1", {NET("recurrence"), WITH(single), F32, 1, FAST, false, 0}},
    {"recurrence, batch 1, in f16", {NET("recurrence"), WITH(single_half), F16, 1, FAST, false, 0}},
    {"sequence",         {NET("sequence"), AS_IS,  F32,  1, FAST, true, 0}},
    {"sequence in bf16", {NET("sequence"), WITH(as_brain), BF16, 1, FAST, false, 0}},
    {"starts",           {NET("starts"), AS_IS,    F32,  1, FAST, false, 0}},
    {"starts in f16",    {NET("starts"), WITH(as_half), F16, 1, FAST, false, 0}},
    {"skipped",          {NET("skipped"), AS_IS,   F16,  1, FAST, false, 0}},
    {"skipped unfused",  {NET("skipped"), AS_IS,   F16,  0, FAST, false, 0}},
};

const Named tiled_cases[] = {
    {"tiles in f16",     {NET("tiles"), AS_IS,     F16,  1, TILED, false, 0}},
    {"tiles in bf16",    {NET("tiles"), WITH(as_brain), BF16, 1, TILED, false, 0}},
    {"windows, tiled",   {NET("windows"), WITH(as_half), F16, 1, TILED, false, 0}},
    {"resnet9, tiled",   {RESNET, WITH(half),      F16,  1, TILED, false, 0}},
    {"squeeze, tiled",   {NET("squeeze"), WITH(as_half), F16, 1, TILED, false, 0}},
    {"sequence, tiled",  {NET("sequence"), WITH(as_brain), BF16, 1, TILED, false, 0}},
    {"attention, tiled", {IR("attention-odd"),     F16,  1, TILED, false, 0}},
};

const Named faithful_cases[] = {
    {"resnet9",          {RESNET, WITH(small),     F32,  1, FAITHFUL, false, 0}},
    {"resnet9 in f16",   {RESNET, WITH(half),      F16,  1, FAITHFUL, false, 0}},
    {"lenet",            {LENET,  WITH(few),       F32,  1, FAITHFUL, false, 0}},
    {"one channel",      {NET("one-channel"), WITH(single), F32, 1, FAITHFUL, false, 0}},
    {"windows",          {NET("windows"), AS_IS,   F32,  1, FAITHFUL, false, 0}},
    {"windows in bf16",  {NET("windows"), WITH(as_brain), BF16, 1, FAITHFUL, false, 0}},
    {"windows unfused",  {NET("windows"), AS_IS,   F32,  0, FAITHFUL, false, 0}},
    {"pooled statistics", {NET("pooled-statistics"), AS_IS, F32, 1, FAITHFUL, false, 0}},
    {"unfolded",         {NET("unfolded"), AS_IS,  F32,  1, FAITHFUL, false, 0}},
    {"frozen",           {NET("frozen"), AS_IS,    F32,  1, FAITHFUL, false, 0}},
    {"rows",             {NET("rows"), AS_IS,      F32,  1, FAITHFUL, false, 0}},
    {"ends of rows",     {IR("row-ends"),          F32,  1, FAITHFUL, false, 0}},
    {"pairs of rows",    {IR("pairs"),             F32,  1, FAITHFUL, false, 0}},
    {"scattered",        {IR("scattered"),         F32,  1, FAITHFUL, false, 0}},
    {"squeeze",          {NET("squeeze"), AS_IS,   F32,  1, FAITHFUL, false, 0}},
    {"augmented",        {NET("augmented"), AS_IS, F32,  1, FAITHFUL, false, 0}},
    {"warped",           {NET("warped"), AS_IS,    F32,  1, FAITHFUL, false, 0}},
    {"mixed",            {NET("mixed"), AS_IS,     F32,  1, FAITHFUL, false, 0}},
    {"contrast",         {NET("contrast"), AS_IS,  F32,  1, FAITHFUL, false, 0}},
    {"contrast in f16",  {NET("contrast"), WITH(as_half), F16, 1, FAITHFUL, false, 0}},
    {"optimizers",       {NET("optimizers"), AS_IS, F32, 1, FAITHFUL, false, 0}},
    {"adaptive optimizers", {NET("adaptive"), AS_IS, F32, 1, FAITHFUL, false, 0}},
    {"shared gradient",  {NET("shared-gradient"), AS_IS, F32, 1, FAITHFUL, false, 0}},
    {"attention",        {IR("attention"),         F32,  1, FAITHFUL, false, 0}},
    {"attention in f16", {IR("attention-odd"),     F16,  1, FAITHFUL, false, 0}},
    {"attention tiles",  {IR("attention-tiles"),   F32,  1, FAITHFUL, false, 0}},
    {"attention tiles in f16", {IR("attention-tiles"), F16, 1, FAITHFUL, false, 0}},
    {"group norm",       {IR("group-norm"),        F32,  1, FAITHFUL, false, 0}},
    {"resize",           {IR("resize"),            F32,  1, FAITHFUL, false, 0}},
    {"newton-schulz",    {IR("newton-schulz"),     F32,  1, FAITHFUL, false, 0}},
    {"soft labels",      {IR("soft-labels"),       F32,  1, FAITHFUL, false, 0}},
    {"variance",         {IR("variance"),          F32,  1, FAITHFUL, false, 0}},
    {"least",            {IR("least"),             F32,  1, FAITHFUL, false, 0}},
    {"draws",            {IR("draws"),             F32,  1, FAITHFUL, false, 0}},
    {"bits",             {IR("bits"),              F32,  1, FAITHFUL, false, 0}},
    {"bits in f16",      {IR("bits"),              F16,  1, FAITHFUL, false, 0}},
    {"columns of rows",  {IR("columns-of-rows"),   F32,  1, FAITHFUL, false, 0}},
    {"channels",         {IR("channels"),          F32,  1, FAITHFUL, false, 0}},
    {"channels in f16",  {IR("channels"),          F16,  1, FAITHFUL, false, 0}},
    {"integers",         {IR("integers"),          F32,  1, FAITHFUL, false, 0}},
    {"margins",          {IR("margins"),           F32,  1, FAITHFUL, false, 0}},
    {"empty",            {IR("empty"),             F32,  1, FAITHFUL, false, 0}},
    {"eight axes",       {IR("eight-axes"),        F32,  1, FAITHFUL, false, 0}},
    {"parameters alone", {IR("parameters-alone"),  F32,  1, FAITHFUL, false, 0}},
    {"stacked together", {IR("stacked-together"),  F32,  1, FAITHFUL, false, 0}},
    {"functions",        {NET("functions"), AS_IS, F32,  1, FAITHFUL, false, 0}},
    {"sequence",         {NET("sequence"), AS_IS,  F32,  1, FAITHFUL, false, 0}},
    {"starts",           {NET("starts"), AS_IS,    F32,  1, FAITHFUL, false, 0}},
    {"skipped",          {NET("skipped"), AS_IS,   F16,  1, FAITHFUL, false, 0}},
};
// clang-format on

const Named merged_cases[] = {
    {"mixed merged", {NET("mixed"), AS_IS, F16, 1, FAITHFUL, true, 0}},
    {"squeeze merged", {NET("squeeze"), AS_IS, F16, 1, FAITHFUL, true, 0}},
    {"attention merged", {IR("attention-odd"), F32, 1, FAITHFUL, true, 0}},
};

const int tiled_num_cases = sizeof tiled_cases / sizeof *tiled_cases;
const int agree_num_cases = sizeof agree_cases / sizeof *agree_cases;
const int faithful_num_cases = sizeof faithful_cases / sizeof *faithful_cases;
const int merged_num_cases = sizeof merged_cases / sizeof *merged_cases;

Named random_case(int i, How how) {
    static const DType storage[] = {F32, F16, F32, BF16};
    return (Named){"random graph",
                   {.seed = (uint32_t)i,
                    .storage = storage[i % 4],
                    .level = i % 5 != 0,
                    .how = how}};
}
