// Small networks as text.
#include "tests/passes/networks.h"

#define FORWARD                                                                \
    "  %0 = input {name = \"image\"} : u8[4,6,6,3]\n"                          \
    "  %1 = input {name = \"label\"} : i32[4]\n"                               \
    "  %2 = cast %0 : f32[4,6,6,3]\n"                                          \
    "  %3 = constant {values = [0.01]} : f32[]\n"                              \
    "  %4 = mul %2, %3 : f32[4,6,6,3]\n"                                       \
    "  %5 = param {name = \"conv_1.weight\"} : f32[8,3,3,3]  # n.net:1 "       \
    "conv_1\n"                                                                 \
    "  %6 = conv %4, %5 {pad = [1,1,1,1]} : f32[4,6,6,8]  # n.net:1 conv_1\n"  \
    "  %7 = param {name = \"bn.scale\"} : f32[8]  # n.net:2 bn\n"              \
    "  %8 = param {name = \"bn.bias\"} : f32[8]  # n.net:2 bn\n"               \
    "  %9 = batch_norm %6, %7, %8 : f32[4,6,6,8]  # n.net:2 bn\n"              \
    "  %10 = relu %9 : f32[4,6,6,8]  # n.net:3 relu\n"                         \
    "  %11 = param {name = \"conv_2.weight\"} : f32[8,3,3,8]  # n.net:4 "      \
    "conv_2\n"                                                                 \
    "  %12 = conv %10, %11 {pad = [1,1,1,1]} : f32[4,6,6,8]  # n.net:4 "       \
    "conv_2\n"                                                                 \
    "  %13 = add %10, %12 : f32[4,6,6,8]  # n.net:5\n"                         \
    "  %14 = max_pool %13 {stride = [3,3], window = [3,3]} : f32[4,2,2,8]\n"   \
    "  %15 = reshape %14 : f32[4,32]\n"                                        \
    "  %16 = param {name = \"fc.weight\"} : f32[10,32]  # n.net:7 fc\n"        \
    "  %17 = matmul %15, %16 {tb = 1} : f32[4,10]  # n.net:7 fc\n"             \
    "  %18 = cross_entropy %17, %1 {smoothing = 0.1} : f32[4,1]\n"             \
    "  %19 = sum %18 {axes = [0,1]} : f32[]\n"                                 \
    "  %20 = output %19 {name = \"loss\"} : f32[]\n"

const char residual_network[] =
    "graph train {\n" FORWARD "  %21 = constant {values = [0.1]} : f32[]\n"
    "  %22 = constant {values = [0.9]} : f32[]\n"
    "  %23 = constant {values = [0.0]} : f32[]\n"
    "  %24 = sgd %5, %21, %22, %23 {nesterov = 1} : f32[8,3,3,3]\n"
    "  %25 = sgd %7, %21, %23, %22 : f32[8]\n"
    "  %26 = sgd %8, %21, %23, %23 : f32[8]\n"
    "  %27 = sgd %16, %21, %23, %23 : f32[10,32]\n"
    "  %28 = state {init = 0.0, kind = \"run\", name = \"run.step\"} : i32[]\n"
    "  %29 = constant {values = [1.0]} : i32[]\n"
    "  %30 = add %28, %29 : i32[]\n"
    "  %31 = assign %28, %30 : i32[]\n"
    "}\n";

const char residual_evaluation[] = "graph eval {\n" FORWARD "}\n";
