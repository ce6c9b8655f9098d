// Narrow models: see cases.h.
#include "tests/codegen/cases.h"

#define SMALL_IMAGES(side)                                                     \
    { "data", "synthetic(shape=[" #side ", " #side ", 3])" }

// clang-format off
const Narrow narrow_models[] = {
    {"airbench94",      {{"batch", "2"}}},
    {"airbench94_muon", {{"batch", "2"}, {"width", "8"}}},
    {"airbench96",      {{"batch", "2"}, {"width", "8"}}},
    {"denoise",         {{"batch", "2"}, {"width", "8"}}},
    {"gpt2",            {{"batch", "2"}, {"layers", "[1]"}, {"width", "24"}, {"context", "8"}, {"vocabulary", "65"}, {"data", "synthetic(vocabulary=65, shape=[8])"}}},
    {"gpt_nano",        {{"batch", "2"}, {"layers", "[1]"}, {"data", "synthetic(vocabulary=65, shape=[8])"}}},
    {"gru_text",        {{"batch", "2"}, {"width", "8"}, {"data", "synthetic(vocabulary=256, shape=[20])"}}},
    {"hlb",             {{"batch", "2"}, {"width", "8"}}},
    {"lenet",           {{"batch", "2"}}},
    {"llama_nano",      {{"batch", "2"}, {"layers", "[1]"}, {"data", "synthetic(vocabulary=65, shape=[8])"}}},
    {"mlp",             {{"batch", "3"}, {"width", "40"}}},
    {"mobilenetv2",     {{"batch", "2"}, {"width", "0.25"}, {"divisor", "2"}, {"classes", "10"}, {"input", "data.train"}, SMALL_IMAGES(32)}},
    {"multitask",       {{"batch", "2"}, {"width", "4"}}},
    {"preact_resnet18", {{"batch", "2"}, {"width", "4"}}},
    {"resnet18",        {{"batch", "2"}, {"width", "4"}}},
    {"resnet50",        {{"batch", "2"}, {"width", "4"}, {"classes", "10"}, {"input", "data.train"}, SMALL_IMAGES(32)}},
    {"resnet9",         {{"batch", "2"}, {"width", "8"}}},
    {"resnet9_tricks",  {{"batch", "16"}, {"width", "8"}}},
    {"unet_seg",        {{"batch", "2"}, {"width", "4"}, {"classes", "10"}, {"input", "data.train"}, {"data", "synthetic(shape=[16, 16, 3])"}}},
    {"vgg16_bn",        {{"batch", "2"}, {"width", "4"}}},
    {"vit_tiny",        {{"batch", "2"}, {"depth", "[1]"}, {"width", "24"}, {"input", "data.train"}, SMALL_IMAGES(32)}},
};
// clang-format on

const int num_narrow_models = sizeof narrow_models / sizeof *narrow_models;

Case narrow_case(Arena *a, const Narrow *model) {
    Case c = {.model = arena_format(a, "models/%s.net", model->name),
              .setting = model->setting,
              .storage = F32,
              .level = 1};
    while (c.num_settings < MAX_NARROW &&
           model->setting[c.num_settings].key != NULL)
        c.num_settings++;
    return c;
}
