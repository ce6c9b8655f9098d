// Narrow models: see cases.h.
#include "tests/codegen/cases.h"

#define SMALL_IMAGES(side)                                                     \
    { "data", "synthetic(shape=[" #side ", " #side ", 3])" }

// clang-format off
const Narrow narrow_models[] = {
    {"airbench94",      {{"batch", "2"}}, false},
    {"airbench94_muon", {{"batch", "2"}, {"width", "8"}}, false},
    {"airbench96",      {{"batch", "2"}, {"width", "8"}}, false},
    {"gpt_nano",        {{"batch", "2"}, {"layers", "[1]"}, {"data", "synthetic(vocabulary=65, shape=[8])"}}, true},
    {"hlb",             {{"batch", "2"}, {"width", "8"}}, false},
    {"lenet",           {{"batch", "2"}}, true},
    {"mlp",             {{"batch", "3"}, {"width", "40"}}, true},
    {"mobilenetv2",     {{"batch", "2"}, {"width", "2"}, {"classes", "10"}, {"input", "data.train"}, SMALL_IMAGES(32)}, false},
    {"preact_resnet18", {{"batch", "2"}, {"width", "4"}}, false},
    {"resnet18",        {{"batch", "2"}, {"width", "4"}}, false},
    {"resnet50",        {{"batch", "2"}, {"width", "4"}, {"classes", "10"}, {"input", "data.train"}, SMALL_IMAGES(32)}, false},
    {"resnet9",         {{"batch", "2"}, {"width", "8"}}, true},
    {"resnet9_tricks",  {{"batch", "16"}, {"width", "8"}}, false},
    {"unet_small",      {{"batch", "2"}, {"width", "4"}, {"classes", "10"}, {"input", "data.train"}, {"data", "synthetic(shape=[16, 16, 3])"}}, false},
    {"vgg16_bn",        {{"batch", "2"}, {"width", "4"}}, false},
    {"vit_tiny",        {{"batch", "2"}, {"depth", "[1]"}, {"width", "24"}, {"input", "data.train"}, SMALL_IMAGES(32)}, false},
};
// clang-format on

const int num_narrow_models = sizeof narrow_models / sizeof *narrow_models;

Case narrow_case(Arena *a, const Narrow *model) {
    Case c = {.model = arena_format(a, "models/%s.net", model->name),
              .setting = model->setting,
              .storage = F32,
              .level = 1};
    while (c.num_settings < MOST_NARROW &&
           model->setting[c.num_settings].key != NULL)
        c.num_settings++;
    return c;
}
