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
static const Setting many[] = {{"batch", "72"}};
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
    {"resnet9",          {RESNET, WITH(small),     F32,  1, FAST, false}},
    {"resnet9 planned",  {RESNET, WITH(small),     F32,  1, FAST, true}},
    {"resnet9 unfused",  {RESNET, WITH(small),     F32,  0, FAST, false}},
    {"resnet9 in f32",   {RESNET, WITH(plain),     F32,  1, FAST, false}},
    {"resnet9 in f16",   {RESNET, WITH(half),      F16,  1, FAST, false}},
    {"resnet9 in bf16",  {RESNET, WITH(brain),     BF16, 1, FAST, false}},
    {"resnet9 odd",      {RESNET, WITH(odd),       F32,  1, FAST, false}},
    {"lenet",            {LENET,  WITH(few),       F32,  1, FAST, false}},
    {"lenet planned",    {LENET,  WITH(few),       F32,  1, FAST, true}},
    {"lenet unfused",    {LENET,  WITH(few),       F32,  0, FAST, false}},
    {"one channel",      {NET("one-channel"), AS_IS, F32, 1, FAST, false}},
    {"one of everything", {NET("one-channel"), WITH(single_half), F16, 1, FAST, false}},
    {"one unfused",      {NET("one-channel"), WITH(single), F32, 0, FAST, false}},
    {"windows",          {NET("windows"), AS_IS,   F32,  1, FAST, false}},
    {"windows, batch 1", {NET("windows"), WITH(single), F32, 1, FAST, true}},
    {"windows in f16",   {NET("windows"), WITH(as_half), F16, 1, FAST, false}},
    {"windows in bf16",  {NET("windows"), WITH(as_brain), BF16, 1, FAST, false}},
    {"windows unfused",  {NET("windows"), AS_IS,   F32,  0, FAST, false}},
    {"pooled statistics", {NET("pooled-statistics"), AS_IS, F32, 1, FAST, false}},
    {"disjoint windows",         {NET("disjoint-windows"), AS_IS,  F32,  1, FAST, false}},
    {"disjoint windows in f16",  {NET("disjoint-windows"), WITH(as_half), F16, 1, FAST, false}},
    {"frozen",           {NET("frozen"), AS_IS,    F32,  1, FAST, false}},
    {"frozen in f16",    {NET("frozen"), WITH(as_half), F16, 1, FAST, false}},
    {"rows",             {NET("rows"), AS_IS,      F32,  1, FAST, false}},
    {"rows unfused",     {NET("rows"), AS_IS,      F32,  0, FAST, false}},
    {"ends of rows",     {IR("row-ends"),          F32,  1, FAST, false}},
    {"pairs of rows",    {IR("pairs"),             F32,  1, FAST, false}},
    {"scattered",        {IR("scattered"),         F32,  1, FAST, false}},
    {"squeeze",          {NET("squeeze"), AS_IS,   F32,  1, FAST, false}},
    {"squeeze in f16",   {NET("squeeze"), WITH(as_half), F16, 1, FAST, false}},
    {"augmented",        {NET("augmented"), AS_IS, F32,  1, FAST, false}},
    {"registers in f16", {NET("registers"), AS_IS, F16,  1, FAST, false}},
    {"registers of masks in f16", {IR("masks"),    F16,  1, FAST, false}},
    {"warped",           {NET("warped"), AS_IS,    F32,  1, FAST, false}},
    {"warped unfused",   {NET("warped"), AS_IS,    F32,  0, FAST, false}},
    {"mixed",            {NET("mixed"), AS_IS,     F32,  1, FAST, false}},
    {"mixed in f16",     {NET("mixed"), WITH(as_half), F16, 1, FAST, false}},
    {"mixed unfused",    {NET("mixed"), AS_IS,     F32,  0, FAST, false}},
    {"contrast",         {NET("contrast"), AS_IS,  F32,  1, FAST, false}},
    {"contrast in f16",  {NET("contrast"), WITH(as_half), F16, 1, FAST, false}},
    {"contrast unfused", {NET("contrast"), AS_IS,  F32,  0, FAST, true}},
    {"optimizers",       {NET("optimizers"), AS_IS, F32, 1, FAST, false}},
    {"optimizers planned", {NET("optimizers"), AS_IS, F32, 1, FAST, true}},
    {"optimizers in f16", {NET("optimizers"), WITH(as_half), F16, 1, FAST, false}},
    {"optimizers unfused", {NET("optimizers"), AS_IS, F32, 0, FAST, false}},
    {"adaptive optimizers", {NET("adaptive"), AS_IS, F32, 1, FAST, true}},
    {"adaptive optimizers in f16", {NET("adaptive"), WITH(as_half), F16, 1, FAST, false}},
    {"adaptive optimizers unfused", {NET("adaptive"), AS_IS, F32, 0, FAST, false}},
    {"shared gradient",  {NET("shared-gradient"), AS_IS, F32, 1, FAST, true}},
    {"shared gradient in f16", {NET("shared-gradient"), WITH(as_half), F16, 1, FAST, false}},
    {"tables",           {NET("tables"), AS_IS,    F32,  1, FAST, true}},
    {"steps",            {NET("steps"), AS_IS,     F32,  1, FAST, false}},
    {"steps planned",    {NET("steps"), AS_IS,     F32,  1, FAST, true}},
    {"steps in f16",     {NET("steps"), WITH(as_half), F16, 1, FAST, false}},
    {"attention",        {IR("attention"),         F32,  1, FAST, false}},
    {"attention in f16", {IR("attention"),         F16,  1, FAST, false}},
    {"attention planned", {IR("attention-odd"),    F32,  1, FAST, true}},
    {"attention unfused", {IR("attention-odd"),    F32,  0, FAST, false}},
    {"attention in bf16", {IR("attention-odd"),    BF16, 1, FAST, false}},
    {"attention of one", {IR("attention-of-one"),  F16,  1, FAST, false}},
    {"attention tiles",  {IR("attention-tiles"),   F32,  1, FAST, false}},
    {"attention tiles planned", {IR("attention-tiles"), F32, 1, FAST, true}},
    {"attention tiles unfused", {IR("attention-tiles"), F32, 0, FAST, false}},
    {"attention tiles in f16", {IR("attention-tiles"), F16, 1, FAST, false}},
    {"attention tiles in bf16", {IR("attention-tiles"), BF16, 1, FAST, false}},
    {"attention heads",  {IR("attention-heads"),   F32,  1, FAST, false}},
    {"attention in one pass", {IR("attention-one-pass"), F32, 1, FAST, false}},
    {"group norm",       {IR("group-norm"),        F32,  1, FAST, false}},
    {"group norm in f16", {IR("group-norm"),       F16,  1, FAST, false}},
    {"resize",           {IR("resize"),            F32,  1, FAST, false}},
    {"resize in f16",    {IR("resize"),            F16,  1, FAST, false}},
    {"resize unfused",   {IR("resize"),            F32,  0, FAST, false}},
    {"newton-schulz",    {IR("newton-schulz"),     F32,  1, FAST, true}},
    {"newton-schulz in bf16", {IR("newton-schulz"), BF16, 1, FAST, false}},
    {"soft labels",      {IR("soft-labels"),       F32,  1, FAST, false}},
    {"soft labels in f16", {IR("soft-labels"),     F16,  1, FAST, false}},
    {"factors",          {IR("factors"),           F16,  1, FAST, false}},
    {"variance",         {IR("variance"),          F32,  1, FAST, false}},
    {"least",            {IR("least"),             F32,  1, FAST, false}},
    {"draws",            {IR("draws"),             F32,  1, FAST, false}},
    {"draws in f16",     {IR("draws"),             F16,  1, FAST, false}},
    {"draws unfused",    {IR("draws"),             F32,  0, FAST, false}},
    {"bits",             {IR("bits"),              F32,  1, FAST, false}},
    {"bits in f16",      {IR("bits"),              F16,  1, FAST, false}},
    {"columns of rows",  {IR("columns-of-rows"),   F32,  1, FAST, false}},
    {"channels",         {IR("channels"),          F32,  1, FAST, false}},
    {"integers",         {IR("integers"),          F32,  1, FAST, false}},
    {"integers unfused", {IR("integers"),          F32,  0, FAST, false}},
    {"constant gradient", {IR("constant-gradient"), F32, 1, FAST, true}},
    {"margins",          {IR("margins"),           F32,  1, FAST, false}},
    {"empty",            {IR("empty"),             F32,  1, FAST, false}},
    {"empty unfused",    {IR("empty"),             F32,  0, FAST, false}},
    {"eight axes",       {IR("eight-axes"),        F16,  1, FAST, false}},
    {"parameters alone", {IR("parameters-alone"),  F32,  1, FAST, true}},
    {"stacked together", {IR("stacked-together"),  F32,  1, FAST, true}},
    {"functions",        {NET("functions"), AS_IS, F32,  1, FAST, false}},
    {"functions in f16", {NET("functions"), WITH(as_half), F16, 1, FAST, false}},
    {"functions unfused", {NET("functions"), AS_IS, F32, 0, FAST, false}},
    {"recurrence",       {NET("recurrence"), AS_IS,  F32,  1, FAST, true}},
    {"recurrence, batch 1", {NET("recurrence"), WITH(single), F32, 1, FAST, false}},
    {"recurrence, batch 1, in f16", {NET("recurrence"), WITH(single_half), F16, 1, FAST, false}},
    {"sequence",         {NET("sequence"), AS_IS,  F32,  1, FAST, true}},
    {"sequence in bf16", {NET("sequence"), WITH(as_brain), BF16, 1, FAST, false}},
    {"starts",           {NET("starts"), AS_IS,    F32,  1, FAST, false}},
    {"starts in f16",    {NET("starts"), WITH(as_half), F16, 1, FAST, false}},
    {"skipped",          {NET("skipped"), AS_IS,   F16,  1, FAST, false}},
    {"skipped unfused",  {NET("skipped"), AS_IS,   F16,  0, FAST, false}},
};

const Named tiled_cases[] = {
    {"tiles in f16",     {NET("tiles"), AS_IS,     F16,  1, TILED, false}},
    {"tiles in bf16",    {NET("tiles"), WITH(as_brain), BF16, 1, TILED, false}},
    {"windows, tiled",   {NET("windows"), WITH(as_half), F16, 1, TILED, false}},
    {"prologues, tiled", {NET("prologues"), AS_IS, F16,  1, TILED, false}},
    {"resnet9, tiled",   {RESNET, WITH(half),      F16,  1, TILED, false}},
    {"squeeze, tiled",   {NET("squeeze"), WITH(as_half), F16, 1, TILED, false}},
    {"sequence, tiled",  {NET("sequence"), WITH(as_brain), BF16, 1, TILED, false}},
    {"attention, tiled", {IR("attention-odd"),     F16,  1, TILED, false}},
    {"operands, tiled",  {IR("tile-operands"),     F16,  1, TILED, false}},
    {"rows, tiled",      {IR("tile-rows"),         F16,  1, TILED, false}},
    {"shapes, tiled in bf16", {IR("tile-shapes"),  BF16, 1, TILED, false}},
    {"attention heads, tiled", {IR("attention-heads"), F16, 1, TILED, false}},
    {"attention heads, tiled, in bf16", {IR("attention-heads"), BF16, 1, TILED, false}},
    {"attention masks, tiled", {IR("attention-masks"), F16, 1, TILED, false}},
    {"attention tiles, tiled", {IR("attention-tiles"), F16, 1, TILED, false}},
    {"attention tiles, tiled, in bf16", {IR("attention-tiles"), BF16, 1, TILED, false}},
};

const Named faithful_cases[] = {
    {"resnet9",          {RESNET, WITH(small),     F32,  1, FAITHFUL, false}},
    {"resnet9 in f16",   {RESNET, WITH(half),      F16,  1, FAITHFUL, false}},
    {"lenet",            {LENET,  WITH(few),       F32,  1, FAITHFUL, false}},
    {"one channel",      {NET("one-channel"), WITH(single), F32, 1, FAITHFUL, false}},
    {"windows",          {NET("windows"), AS_IS,   F32,  1, FAITHFUL, false}},
    {"windows in bf16",  {NET("windows"), WITH(as_brain), BF16, 1, FAITHFUL, false}},
    {"windows unfused",  {NET("windows"), AS_IS,   F32,  0, FAITHFUL, false}},
    {"pooled statistics", {NET("pooled-statistics"), AS_IS, F32, 1, FAITHFUL, false}},
    {"disjoint windows",         {NET("disjoint-windows"), AS_IS,  F32,  1, FAITHFUL, false}},
    {"frozen",           {NET("frozen"), AS_IS,    F32,  1, FAITHFUL, false}},
    {"rows",             {NET("rows"), AS_IS,      F32,  1, FAITHFUL, false}},
    {"rows for last blocks", {NET("rows"), WITH(many), F32,  1, FAITHFUL, false}},
    {"ends of rows",     {IR("row-ends"),          F32,  1, FAITHFUL, false}},
    {"pairs of rows",    {IR("pairs"),             F32,  1, FAITHFUL, false}},
    {"scattered",        {IR("scattered"),         F32,  1, FAITHFUL, false}},
    {"squeeze",          {NET("squeeze"), AS_IS,   F32,  1, FAITHFUL, false}},
    {"augmented",        {NET("augmented"), AS_IS, F32,  1, FAITHFUL, false}},
    {"warped",           {NET("warped"), AS_IS,    F32,  1, FAITHFUL, false}},
    {"mixed",            {NET("mixed"), AS_IS,     F32,  1, FAITHFUL, false}},
    {"contrast",         {NET("contrast"), AS_IS,  F32,  1, FAITHFUL, false}},
    {"contrast in f16",  {NET("contrast"), WITH(as_half), F16, 1, FAITHFUL, false}},
    {"optimizers",       {NET("optimizers"), AS_IS, F32, 1, FAITHFUL, false}},
    {"adaptive optimizers", {NET("adaptive"), AS_IS, F32, 1, FAITHFUL, false}},
    {"shared gradient",  {NET("shared-gradient"), AS_IS, F32, 1, FAITHFUL, false}},
    {"attention",        {IR("attention"),         F32,  1, FAITHFUL, false}},
    {"attention in f16", {IR("attention-odd"),     F16,  1, FAITHFUL, false}},
    {"attention tiles",  {IR("attention-tiles"),   F32,  1, FAITHFUL, false}},
    {"attention tiles in f16", {IR("attention-tiles"), F16, 1, FAITHFUL, false}},
    {"attention heads in f16", {IR("attention-heads"), F16, 1, FAITHFUL, false}},
    {"attention in one pass", {IR("attention-one-pass"), F16, 1, FAITHFUL, false}},
    {"group norm",       {IR("group-norm"),        F32,  1, FAITHFUL, false}},
    {"resize",           {IR("resize"),            F32,  1, FAITHFUL, false}},
    {"newton-schulz",    {IR("newton-schulz"),     F32,  1, FAITHFUL, false}},
    {"soft labels",      {IR("soft-labels"),       F32,  1, FAITHFUL, false}},
    {"variance",         {IR("variance"),          F32,  1, FAITHFUL, false}},
    {"least",            {IR("least"),             F32,  1, FAITHFUL, false}},
    {"draws",            {IR("draws"),             F32,  1, FAITHFUL, false}},
    {"bits",             {IR("bits"),              F32,  1, FAITHFUL, false}},
    {"bits in f16",      {IR("bits"),              F16,  1, FAITHFUL, false}},
    {"columns of rows",  {IR("columns-of-rows"),   F32,  1, FAITHFUL, false}},
    {"channels",         {IR("channels"),          F32,  1, FAITHFUL, false}},
    {"channels in f16",  {IR("channels"),          F16,  1, FAITHFUL, false}},
    {"integers",         {IR("integers"),          F32,  1, FAITHFUL, false}},
    {"margins",          {IR("margins"),           F32,  1, FAITHFUL, false}},
    {"empty",            {IR("empty"),             F32,  1, FAITHFUL, false}},
    {"eight axes",       {IR("eight-axes"),        F32,  1, FAITHFUL, false}},
    {"parameters alone", {IR("parameters-alone"),  F32,  1, FAITHFUL, false}},
    {"stacked together", {IR("stacked-together"),  F32,  1, FAITHFUL, false}},
    {"functions",        {NET("functions"), AS_IS, F32,  1, FAITHFUL, false}},
    {"sequence",         {NET("sequence"), AS_IS,  F32,  1, FAITHFUL, false}},
    {"starts",           {NET("starts"), AS_IS,    F32,  1, FAITHFUL, false}},
    {"skipped",          {NET("skipped"), AS_IS,   F16,  1, FAITHFUL, false}},
};
// clang-format on

const Named merged_cases[] = {
    {"mixed merged", {NET("mixed"), AS_IS, F16, 1, FAITHFUL, true}},
    {"squeeze merged", {NET("squeeze"), AS_IS, F16, 1, FAITHFUL, true}},
    {"attention merged", {IR("attention-odd"), F32, 1, FAITHFUL, true}},
};

const int tiled_num_cases = sizeof tiled_cases / sizeof *tiled_cases;
const int agree_num_cases = sizeof agree_cases / sizeof *agree_cases;
const int faithful_num_cases = sizeof faithful_cases / sizeof *faithful_cases;
const int merged_num_cases = sizeof merged_cases / sizeof *merged_cases;
