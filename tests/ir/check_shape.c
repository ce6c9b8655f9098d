// Shape rules: a type for every operation, and a reason where there is none.

#include "tests/ir/suites.h"

#include <string.h>

// Graphs that verify: the type written on the last line is the one that its
// operation gives.  Every operation ends one of them.
static const char *const good[] = {
    // clang-format off
    INPUT(0, "u8[2,4,4,3]"),
    "%0 = param {name = \"p\"} : f32[3]\n",
    "%0 = state {init = 0.0, kind = \"run\", name = \"s\"} : i32[]\n",
    "%0 = constant {values = [1.0,2.0,3.0]} : f32[3]\n",
    "%0 = constant {values = [1.0]} : f32[3,5]\n",
    "%0 = iota {axis = 1} : i32[2,3]\n",
    "%0 = loss_scale : f32[]\n",
    "%0 = workspace : u8[1024]\n",

    INPUT(0, "act[2,3]") "%1 = neg %0 : act[2,3]\n",
    INPUT(0, "i32[2,3]") "%1 = abs %0 : i32[2,3]\n",
    INPUT(0, "f32[2]") "%1 = exp %0 : f32[2]\n",
    INPUT(0, "f32[2]") "%1 = log %0 : f32[2]\n",
    INPUT(0, "f32[2]") "%1 = sqrt %0 : f32[2]\n",
    INPUT(0, "f32[2]") "%1 = rsqrt %0 : f32[2]\n",
    INPUT(0, "f32[2]") "%1 = cos %0 : f32[2]\n",
    INPUT(0, "f32[2]") "%1 = sin %0 : f32[2]\n",
    INPUT(0, "f32[2]") "%1 = tanh %0 : f32[2]\n",
    INPUT(0, "f32[2]") "%1 = cdf %0 : f32[2]\n",
    INPUT(0, "f32[2]") "%1 = pdf %0 : f32[2]\n",
    INPUT(0, "f32[2]") "%1 = sigmoid %0 : f32[2]\n",
    INPUT(0, "f32[2]") "%1 = floor %0 : f32[2]\n",
    INPUT(0, "act[2]") "%1 = relu %0 : act[2]\n",
    INPUT(0, "bool[2]") "%1 = not %0 : bool[2]\n",
    INPUT(0, "act[2]") "%1 = finite %0 : bool[2]\n",
    INPUT(0, "u8[2,3]") "%1 = cast %0 : act[2,3]\n",
    INPUT(0, "f32[3,1]") "%1 = broadcast %0 : f32[2,3,4]\n",

    INPUT(0, "act[2,3]") INPUT(1, "act[3]") "%2 = add %0, %1 : act[2,3]\n",
    INPUT(0, "act[2,3]") INPUT(1, "f32[3]") "%2 = sub %0, %1 : f32[2,3]\n",
    INPUT(0, "f32[]") INPUT(1, "act[3]") "%2 = mul %0, %1 : f32[3]\n",
    INPUT(0, "i32[2,1]") INPUT(1, "i32[3]") "%2 = div %0, %1 : i32[2,3]\n",
    INPUT(0, "i32[2,1]") INPUT(1, "i32[3]") "%2 = mod %0, %1 : i32[2,3]\n",
    INPUT(0, "u8[2]") INPUT(1, "u8[2]") "%2 = maximum %0, %1 : u8[2]\n",
    INPUT(0, "f32[2]") INPUT(1, "f32[2]") "%2 = minimum %0, %1 : f32[2]\n",
    INPUT(0, "act[2]") INPUT(1, "f32[]") "%2 = lt %0, %1 : bool[2]\n",
    INPUT(0, "f32[2]") INPUT(1, "f32[]") "%2 = le %0, %1 : bool[2]\n",
    INPUT(0, "i32[2]") INPUT(1, "i32[]") "%2 = eq %0, %1 : bool[2]\n",
    INPUT(0, "bool[2]") INPUT(1, "bool[]") "%2 = and %0, %1 : bool[2]\n",
    INPUT(0, "bool[2]") INPUT(1, "bool[]") "%2 = or %0, %1 : bool[2]\n",
    INPUT(0, "bool[2,1]") INPUT(1, "act[3]") INPUT(2, "f32[]")
    "%3 = select %0, %1, %2 : f32[2,3]\n",
    INPUT(0, "f32[3]") INPUT(1, "f32[3]") INPUT(2, "f32[]")
    "%3 = var_finalize %0, %1, %2 {number = 1} : f32[3]\n",
    INPUT(0, "i32[]") INPUT(1, "i32[]") INPUT(2, "i32[5]")
    "%3 = uniform %0, %1, %2 {stream = 7} : f32[5]\n",

    INPUT(0, "act[2,3,4]") "%1 = sum %0 {axes = [0,1]} : f32[4]\n",
    INPUT(0, "i32[2,3,4]") "%1 = sum %0 {axes = [1]} : i32[2,1,4]\n",
    INPUT(0, "f32[2,3]") "%1 = sum %0 {axes = [0,1]} : f32[]\n",
    INPUT(0, "f32[2,3]") "%1 = sum %0 {axes = []} : f32[2,3]\n",
    INPUT(0, "f32[2,3,4]") "%1 = max %0 {axes = [0,2]} : f32[3,1]\n",
    INPUT(0, "act[2,3]") "%1 = var %0 {axes = [0]} : f32[3]\n",
    INPUT(0, "act[2,3]") "%1 = argmax %0 {axis = 1} : i32[2,1]\n",
    INPUT(0, "act[2,3]") INPUT(1, "f32[7]") "%2 = all_finite %0, %1 : f32[]\n",
    INPUT(0, "act[2,3]") INPUT(1, "f32[7]") "%2 = total %0, %1 : f32[]\n",

    INPUT(0, "u8[2,6]") "%1 = reshape %0 : u8[3,4]\n",
    INPUT(0, "f32[2,3,2]") INPUT(1, "f32[4]") "%2 = stack %0, %1 : f32[2,4,7]\n",
    INPUT(0, "f32[2,3]") "%1 = pad %0 {high = [0,2], low = [1,0]} : f32[3,5]\n",
    INPUT(0, "f32[2,3]") "%1 = slice %0 {high = [0,2], low = [1,0]} : f32[1,1]\n",
    INPUT(0, "u8[2,4,4,3]") INPUT(1, "i32[2]") INPUT(2, "i32[2]")
    "%3 = shift %0, %1, %2 {mode = \"reflect\"} : u8[2,4,4,3]\n",
    INPUT(0, "u8[2,4,4,3]") INPUT(1, "bool[2]")
    "%2 = flip %0, %1 : u8[2,4,4,3]\n",
    INPUT(0, "act[2,3,4]")
    "%1 = transpose %0 {order = [2,0,1]} : act[4,2,3]\n",
    INPUT(0, "f32[]") "%1 = transpose %0 {order = []} : f32[]\n",
    INPUT(0, "f32[7,3]") INPUT(1, "i32[2,5]")
    "%2 = gather %0, %1 : f32[2,5,3]\n",
    INPUT(0, "u8[7]") INPUT(1, "i32[]") "%2 = gather %0, %1 : u8[]\n",
    INPUT(0, "act[2,5,3]") INPUT(1, "i32[2,5]")
    "%2 = gather_grad %0, %1 : f32[7,3]\n",
    INPUT(0, "u8[2,4,5,3]") INPUT(1, "i32[2,6]") INPUT(2, "i32[2,1]")
    "%3 = take %0, %1, %2 : u8[2,6,1,3]\n",
    INPUT(0, "u8[2,4,5,3]") INPUT(1, "i32[2,6,7]") INPUT(2, "i32[2,6,7]")
    "%3 = take %0, %1, %2 : u8[2,6,7,3]\n",

    INPUT(0, "act[2,5,12]") "%1 = attention %0 {heads = 2} : act[2,5,4]\n",
    INPUT(0, "f32[2,5,16]")
    "%1 = attention %0 {causal = 1, heads = 4, kv_heads = 2} : f32[2,5,8]\n",
    INPUT(0, "f32[2,5,12]") INPUT(1, "i32[]") INPUT(2, "i32[]")
    "%3 = attention %0, %1, %2 {dropout = 0.5, heads = 1} : f32[2,5,4]\n",
    INPUT(0, "act[2,5,12]") "%1 = attention_lse %0 {heads = 2} : f32[2,2,5]\n",
    INPUT(0, "act[2,5,12]") INPUT(1, "act[2,5,4]") INPUT(2, "f32[2,2,5]")
    "%3 = attention_grad %0, %1, %1, %2 {heads = 2} : act[2,5,12]\n",

    INPUT(0, "act[2,3,3,8]") INPUT(1, "act[8,1,1,4]") INPUT(2, "act[2,3,3,4]")
    "%3 = conv_grad_input %0, %1, %2 {accumulate = 1} : act[2,3,3,4]\n",

    INPUT(0, "u8[2,12]") "%1 = pack %0 {bits = 2} : u8[2,3]\n",
    INPUT(0, "bool[8]") "%1 = pack %0 {bits = 1} : u8[1]\n",
    INPUT(0, "u8[0,6]") "%1 = pack %0 {bits = 4} : u8[0,3]\n",
    INPUT(0, "u8[2,3]") "%1 = unpack %0 {bits = 2} : u8[2,12]\n",
    INPUT(0, "u8[2,3]") "%1 = unpack %0 {bits = 1} : bool[2,24]\n",

    INPUT(0, "act[2,5,7,3]")
    "%1 = max_pool %0 {pad = [1,0,0,0], stride = [2,3], window = [2,3]}"
    " : act[2,3,2,3]\n",
    INPUT(0, "act[2,16,16,3]")
    "%1 = max_pool_index %0 {window = [16,16]} : u8[2,1,1,3]\n",
    INPUT(0, "act[2,16,17,3]")
    "%1 = max_pool_index %0 {window = [16,17]} : i32[2,1,1,3]\n",
    INPUT(0, "u8[2,2,2,3]") INPUT(1, "act[2,2,2,3]")
    "%2 = max_pool_grad %0, %1 {stride = [2,2], window = [2,2]}"
    " : act[2,5,4,3]\n",
    INPUT(0, "f32[2,4,4,3]") "%1 = avg_pool %0 {window = [4,4]} : f32[2,1,1,3]\n",
    INPUT(0, "f32[2,1,1,3]")
    "%1 = avg_pool_grad %0 {window = [4,4]} : f32[2,4,4,3]\n",
    INPUT(0, "act[2,4,6,3]")
    "%1 = resize %0 {mode = \"bilinear\", size = [7,3]} : act[2,7,3,3]\n",
    INPUT(0, "act[2,7,3,3]")
    "%1 = resize_grad %0 {mode = \"nearest\", size = [7,3]} : act[2,4,6,3]\n",

    INPUT(0, "act[2,9,8,6]") INPUT(1, "act[4,3,2,3]")
    "%2 = conv %0, %1 {dilation = [2,1], groups = 2, pad = [1,0,0,1],"
    " stride = [2,3]} : act[2,3,3,4]\n",
    INPUT(0, "f32[2,3,3,4]") INPUT(1, "f32[4,3,2,3]")
    "%2 = conv_grad_input %0, %1 {dilation = [2,1], groups = 2,"
    " pad = [1,0,0,1], stride = [2,3]} : f32[2,9,8,6]\n",
    INPUT(0, "f32[2,3,3,4]") INPUT(1, "f32[2,9,8,6]")
    "%2 = conv_grad_weight %0, %1 {dilation = [2,1], groups = 2,"
    " pad = [1,0,0,1], stride = [2,3]} : f32[4,3,2,3]\n",
    INPUT(0, "f32[2,3]") INPUT(1, "f32[3,4]") "%2 = matmul %0, %1 : f32[2,4]\n",
    INPUT(0, "act[3,2]") INPUT(1, "act[4,3]")
    "%2 = matmul %0, %1 {ta = 1, tb = 1} : act[2,4]\n",
    INPUT(0, "act[6,5,3,2]") INPUT(1, "act[6,5,4,3]")
    "%2 = matmul %0, %1 {ta = 1, tb = 1} : act[6,5,2,4]\n",
    INPUT(0, "f32[3,3]") "%1 = eigh %0 : f32[4,3]\n",
    INPUT(0, "f32[5,3]") "%1 = orthogonal %0 : f32[5,3]\n",
    INPUT(0, "f32[3]") "%1 = sum_over_shards %0 : f32[3]\n",

    INPUT(0, "act[2,4,4,3]") INPUT(1, "f32[3]") INPUT(2, "f32[3]")
    "%3 = batch_norm %0, %1, %2 {eps = 1e-05} : act[2,4,4,3]\n",
    INPUT(0, "act[2,5]") INPUT(1, "i32[2]")
    "%2 = cross_entropy %0, %1 {smoothing = 0.1} : f32[2,1]\n",
    INPUT(0, "act[2,5]") INPUT(1, "f32[2,5]")
    "%2 = cross_entropy %0, %1 : f32[2,1]\n",
    INPUT(0, "act[2,5]") "%1 = softmax %0 : act[2,5]\n",
    INPUT(0, "act[2,3,5]") "%1 = log_softmax %0 {axis = 2} : act[2,3,5]\n",
    INPUT(0, "act[2,5]") "%1 = stop_gradient %0 : act[2,5]\n",

    "%0 = param {name = \"p\"} : f32[3]\n" INPUT(1, "act[3]")
    "%2 = gradient %0, %1 : act[3]\n",
    "%0 = param {name = \"p\"} : f32[3]\n" INPUT(1, "f32[]")
    "%2 = sgd %0, %1, %1, %1 : f32[3]\n",
    "%0 = param {name = \"p\"} : f32[3,2]\n" INPUT(1, "f32[]")
    "%2 = muon %0, %1, %1, %1 {coefficients = [1.0,2.0,3.0]} : f32[3,2]\n",
    INPUT(0, "f32[]") "%1 = clip %0 {mode = \"norm\"} : f32[]\n",
    "%0 = param {name = \"w\"} : f32[2]\n%1 = accumulate %0 : f32[2]\n",
    INPUT(0, "f32[]") "%1 = accumulated %0 : f32[]\n",
    "%0 = param {name = \"p\"} : f32[3]\n" INPUT(1, "f32[]") INPUT(2, "i32[]")
    "%3 = adam %0, %1, %1, %1, %1, %2 : f32[3]\n",
    "%0 = param {name = \"p\"} : f32[3]\n" INPUT(1, "f32[]") INPUT(2, "i32[]")
    "%3 = adamw %0, %1, %1, %1, %1, %2 : f32[3]\n",
    "%0 = param {name = \"p\"} : f32[3]\n" INPUT(1, "f32[]") INPUT(2, "i32[]")
    "%3 = lamb %0, %1, %1, %1, %1, %2 : f32[3]\n",
    "%0 = param {name = \"p\"} : f32[3]\n" INPUT(1, "f32[]")
    "%2 = lars %0, %1, %1, %1 : f32[3]\n",
    "%0 = param {name = \"p\"} : f32[3]\n" INPUT(1, "f32[]") INPUT(2, "i32[]")
    "%3 = adagrad %0, %1, %1, %2 : f32[3]\n",
    "%0 = param {name = \"p\"} : f32[3]\n" INPUT(1, "f32[]") INPUT(2, "i32[]")
    "%3 = nadam %0, %1, %1, %1, %2 : f32[3]\n",
    "%0 = param {name = \"p\"} : f32[3]\n" INPUT(1, "f32[]") INPUT(2, "i32[]")
    "%3 = radam %0, %1, %1, %1, %1, %2 : f32[3]\n",
    "%0 = param {name = \"p\"} : f32[3]\n" INPUT(1, "f32[]") INPUT(2, "i32[]")
    "%3 = adan %0, %1, %1, %1, %1, %1, %2 : f32[3]\n",
    "%0 = param {name = \"p\"} : f32[3]\n" INPUT(1, "f32[]")
    "%2 = rmsprop %0, %1, %1, %1, %1 : f32[3]\n",
    "%0 = param {name = \"p\"} : f32[3]\n" INPUT(1, "f32[]")
    "%2 = lion %0, %1, %1, %1, %1 : f32[3]\n",
    "%0 = param {name = \"p\"} : f32[3]\n" INPUT(1, "f32[3]")
    "%2 = assign %0, %1 : f32[3]\n",
    INPUT(0, "f32[3]") "%1 = output %0 {name = \"y\"} : f32[3]\n",
    // clang-format on
};

// Graphs whose last node has no type, and the start of the reason.
static const struct {
    const char *body, *why;
} bad[] = {
    // clang-format off
    {"%0 = constant : f32[]\n", "it has no values"},
    {"%0 = constant {values = [1.0,2.0]} : f32[3]\n",
     "2 values cannot fill f32[3]"},
    {"%0 = input {name = \"x\"} : f32[2147483647,2147483647]\n",
     "the declared type is too large"},
    {INPUT(0, "i32[2]") "%1 = exp %0 : i32[2]\n",
     "it needs a float operand, not i32[2]"},
    {INPUT(0, "f32[2]") "%1 = not %0 : bool[2]\n", "it needs bool operands"},
    {INPUT(0, "f32[2]") "%1 = broadcast %0 : f32[3]\n",
     "the first does not broadcast to the second: f32[2] and f32[3]"},
    {INPUT(0, "f32[2,3]") "%1 = broadcast %0 : f32[3]\n",
     "the first does not broadcast"},
    {INPUT(0, "f32[2]") "%1 = neg %0, %0 : f32[2]\n",
     "it takes 1 operands, not 2"},
    {"%0 = neg %7 : f32[2]\n", "there is no %7 yet"},
    {INPUT(0, "f32[2]") INPUT(1, "f32[3]") "%2 = add %0, %1 : f32[2]\n",
     "the shapes do not broadcast: f32[2] and f32[3]"},
    {INPUT(0, "f32[2]") INPUT(1, "i32[2]") "%2 = add %0, %1 : f32[2]\n",
     "the element types do not mix: f32[2] and i32[2]"},
    {INPUT(0, "act[2]") INPUT(1, "f16[2]") "%2 = add %0, %1 : act[2]\n",
     "the element types do not mix"},
    {INPUT(0, "u8[2]") INPUT(1, "i32[2]") "%2 = lt %0, %1 : bool[2]\n",
     "the element types do not mix"},
    {INPUT(0, "bool[2]") "%1 = add %0, %0 : bool[2]\n", "it needs numbers"},
    {INPUT(0, "f32[2147483647,1]") INPUT(1, "f32[2147483647]")
     "%2 = add %0, %1 : f32[1]\n", "the result is too large"},
    {INPUT(0, "u8[2]") "%1 = mod %0, %0 : u8[2]\n", "it needs i32 operands"},
    {INPUT(0, "f32[2]") "%1 = select %0, %0, %0 : f32[2]\n",
     "its condition must be bool"},
    {INPUT(0, "i32[1]") INPUT(1, "i32[]")
     "%2 = uniform %0, %1, %1 : f32[]\n", "operand 1 must be i32[], not i32[1]"},
    {INPUT(0, "i32[]") INPUT(1, "f32[3]")
     "%2 = uniform %0, %0, %1 : f32[3]\n", "its index must be i32"},
    {INPUT(0, "i32[]") INPUT(1, "i32[3]")
     "%2 = uniform %0, %0, %1 {words = 2} : f32[3]\n", "words must be 1 or 4"},
    {INPUT(0, "f32[2]") "%1 = sum %0 : f32[]\n", "it has no axes"},
    {INPUT(0, "f32[2]") "%1 = sum %0 {axes = [1]} : f32[]\n",
     "f32[2] has no axis 1"},
    {INPUT(0, "f32[2,2]") "%1 = sum %0 {axes = [1,0]} : f32[]\n",
     "its axes are not ascending"},
    {INPUT(0, "bool[2]") "%1 = sum %0 {axes = [0]} : i32[]\n",
     "it needs numbers"},
    {INPUT(0, "i32[2]") "%1 = var %0 {axes = [0]} : f32[]\n",
     "it needs numbers"},
    {INPUT(0, "f32[0]") "%1 = max %0 {axes = [0]} : f32[]\n",
     "the maximum of no elements"},
    {INPUT(0, "f32[2,0]") "%1 = argmax %0 : i32[2,1]\n",
     "the maximum of no elements is undefined, not f32[2,0]"},
    {INPUT(0, "f32[2,0]") "%1 = softmax %0 : f32[2,0]\n",
     "the maximum of no elements is undefined, not f32[2,0]"},
    {INPUT(0, "f32[2,0]") "%1 = log_softmax %0 : f32[2,0]\n",
     "the maximum of no elements is undefined, not f32[2,0]"},
    {INPUT(0, "f32[2,0]") INPUT(1, "i32[2]")
     "%2 = cross_entropy %0, %1 : f32[2,1]\n",
     "its logits need a class, not f32[2,0]"},
    {INPUT(0, "f32[0,3]") INPUT(1, "f32[3]")
     "%2 = batch_norm %0, %1, %1 : f32[0,3]\n",
     "the mean of no elements is undefined, not f32[0,3]"},
    {INPUT(0, "f32[2,3]") "%1 = argmax %0 {axis = 0} : i32[3]\n",
     "it searches the last axis only"},
    {INPUT(0, "f32[2]") "%1 = accumulated %0 : f32[]\n",
     "operand 1 must be f32[], not f32[2]"},
    {"%0 = param {name = \"p\"} : f32[3]\n" INPUT(1, "f32[]")
     "%2 = muon %0, %1, %1, %1 {coefficients = [1.0,2.0,3.0]} : f32[3]\n",
     "it needs a matrix or filters"},
    {"%0 = param {name = \"p\"} : f32[3,2]\n" INPUT(1, "f32[]")
     "%2 = muon %0, %1, %1, %1 {coefficients = [1.0,2.0]} : f32[3,2]\n",
     "it needs three coefficients"},
    {INPUT(0, "f32[]") "%1 = clip %0 {mode = \"l2\"} : f32[]\n",
     "its mode must be norm or value"},
    {INPUT(0, "f32[2]") "%1 = clip %0 {mode = \"norm\"} : f32[]\n",
     "operand 1 must be f32[], not f32[2]"},
    {INPUT(0, "i32[2]") "%1 = all_finite %0 : f32[]\n",
     "it needs float operands"},
    {INPUT(0, "f32[2,3]") "%1 = stack %0 : f32[2,2,3]\n",
     "it needs an axis for its operands, rows and columns"},
    {INPUT(0, "f32[2,3]") "%1 = stack %0 : f32[1,2,2]\n",
     "an operand is too large: f32[2,3] and f32[1,2,2]"},
    {INPUT(0, "f32[]") "%1 = stack %0 : f32[1,2,2]\n",
     "its operands must be matrices of one type"},
    {INPUT(0, "f32[2,3]") "%1 = reshape %0 : f32[5]\n",
     "the numbers of elements differ: f32[2,3] and f32[5]"},
    {INPUT(0, "f32[2,3]") "%1 = pad %0 {high = [0], low = [0]} : f32[2,3]\n",
     "low and high must have a number for each axis"},
    {INPUT(0, "f32[2]") "%1 = pad %0 {high = [0], low = [-1]} : f32[1]\n",
     "low and high must be in 0"},
    {INPUT(0, "f32[2]") "%1 = slice %0 {high = [2], low = [1]} : f32[0]\n",
     "it drops more than there is"},
    {INPUT(0, "f32[2,4,4,3]") INPUT(1, "i32[3]")
     "%2 = shift %0, %1, %1 {mode = \"zero\"} : f32[2,4,4,3]\n",
     "operand 2 must be i32[2], not i32[3]"},
    {INPUT(0, "f32[2,4,4,3]") INPUT(1, "i32[2]")
     "%2 = shift %0, %1, %1 {mode = \"wrap\"} : f32[2,4,4,3]\n",
     "its mode must be zero, edge or reflect"},
    {INPUT(0, "f32[2,4,4]") INPUT(1, "bool[2]")
     "%2 = flip %0, %1 : f32[2,4,4]\n", "it needs images [N,H,W,C]"},
    {INPUT(0, "f32[2,3,3,8]") INPUT(1, "f32[8,1,1,4]") INPUT(2, "f32[2,3,3,8]")
     "%3 = conv_grad_input %0, %1, %2 {accumulate = 1} : f32[2,3,3,4]\n",
     "the addend is the first, the gradient the second: f32[2,3,3,8] and "
     "f32[2,3,3,4]"},
    {INPUT(0, "f32[2,3,3,8]") INPUT(1, "f32[8,1,1,4]") INPUT(2, "f32[2,3,3,4]")
     "%3 = conv_grad_input %0, %1, %2 : f32[2,3,3,4]\n",
     "it takes 2 operands, not 3"},
    {INPUT(0, "u8[2,8]") "%1 = pack %0 {bits = 3} : u8[2,3]\n",
     "bits must be 1, 2 or 4"},
    {INPUT(0, "bool[2,8]") "%1 = pack %0 {bits = 2} : u8[2,2]\n",
     "it packs u8, or bool by single bits, not bool[2,8]"},
    {INPUT(0, "i32[2,8]") "%1 = pack %0 {bits = 1} : u8[2,1]\n",
     "it packs u8, or bool by single bits, not i32[2,8]"},
    {INPUT(0, "u8[8,2]") "%1 = pack %0 {bits = 2} : u8[8,1]\n",
     "its rows must fill whole bytes, not u8[8,2]"},
    {INPUT(0, "u8[2,4]") "%1 = unpack %0 {bits = 2} : u8[2,12]\n",
     "packing gives the first, the operand is the second: u8[2,3] and u8[2,4]"},
    {INPUT(0, "u8[2,4]") "%1 = unpack %0 {bits = 1} : f32[2,32]\n",
     "it packs u8, or bool by single bits, not f32[2,32]"},
    {INPUT(0, "f32[2,3]") "%1 = transpose %0 : f32[3,2]\n",
     "its order must have a number for each axis"},
    {INPUT(0, "f32[2,3]") "%1 = transpose %0 {order = [1,1]} : f32[3,3]\n",
     "its order must name each axis once"},
    {INPUT(0, "f32[2,3]") "%1 = transpose %0 {order = [0,2]} : f32[2,3]\n",
     "its order must name each axis once"},
    {INPUT(0, "f32[7,3]") INPUT(1, "f32[2]") "%2 = gather %0, %1 : f32[2,3]\n",
     "it needs a table [V,...] and an i32 index"},
    {INPUT(0, "f32[0,3]") INPUT(1, "i32[2]") "%2 = gather %0, %1 : f32[2,3]\n",
     "a table needs rows"},
    {INPUT(0, "f32[1,1,1,1,1]") INPUT(1, "i32[1,1,1,1,1]")
     "%2 = gather %0, %1 : f32[1]\n", "the result has too many axes"},
    {INPUT(0, "f32[2,4]") INPUT(1, "i32[2]")
     "%2 = gather_grad %0, %1 : f32[7,3]\n",
     "gather gives the first, the gradient is the second: f32[2,3] and"},
    {INPUT(0, "f32[2,12]") "%1 = attention %0 {heads = 2} : f32[2,4]\n",
     "it needs positions, f32 or act [N,T,channels], not f32[2,12]"},
    {INPUT(0, "f32[2,0,12]") "%1 = attention %0 {heads = 2} : f32[2,0,4]\n",
     "it needs positions"},
    {INPUT(0, "f32[2,5,10]") "%1 = attention %0 {heads = 2} : f32[2,5,4]\n",
     "its channels must divide into heads"},
    {INPUT(0, "f32[2,5,771]") "%1 = attention %0 {heads = 1} : f32[2,5,257]\n",
     "its heads are too large"},
    {INPUT(0, "f32[2,5,12]")
     "%1 = attention %0 {heads = 3, kv_heads = 2} : f32[2,5,4]\n",
     "kv_heads must divide heads"},
    {INPUT(0, "f32[2,5,12]")
     "%1 = attention %0 {dropout = 1.0, heads = 2} : f32[2,5,4]\n",
     "dropout must be at least 0 and below 1"},
    {INPUT(0, "f32[2,5,12]")
     "%1 = attention %0 {dropout = 0.5, heads = 2} : f32[2,5,4]\n",
     "it needs a seed and an epoch if it has dropout"},
    {INPUT(0, "f32[2,5,12]") INPUT(1, "f32[]") INPUT(2, "i32[]")
     "%3 = attention %0, %1, %2 {dropout = 0.5, heads = 2} : f32[2,5,4]\n",
     "operand 2 must be i32[]"},
    {INPUT(0, "f32[1,60000,3]") INPUT(1, "i32[]") INPUT(2, "i32[]")
     "%3 = attention %0, %1, %2 {dropout = 0.5, heads = 1}"
     " : f32[1,60000,1]\n", "dropout is limited to 2^31 - 1 numbers"},
    {INPUT(0, "f32[2,5,12]") INPUT(1, "f32[2,5,5]") INPUT(2, "f32[2,2,5]")
     "%3 = attention_grad %0, %1, %1, %2 {heads = 2} : f32[2,5,12]\n",
     "the result and its gradient must be: f32[2,5,4] and f32[2,5,5]"},
    {INPUT(0, "f32[2,5,12]") INPUT(1, "f32[2,5,4]") INPUT(2, "f32[2,5,2]")
     "%3 = attention_grad %0, %1, %1, %2 {heads = 2} : f32[2,5,12]\n",
     "the logarithms must be: f32[2,2,5] and f32[2,5,2]"},
    {INPUT(0, "f32[2,4,4,3]") INPUT(1, "i32[3,4]")
     "%2 = take %0, %1, %1 : f32[2,4,4,3]\n",
     "rows and columns must be i32[N,...]"},
    {INPUT(0, "f32[2,4,4]") INPUT(1, "i32[2,4]")
     "%2 = take %0, %1, %1 : f32[2,4,4]\n", "it needs images [N,H,W,C]"},
    {INPUT(0, "f32[2,4,4,3]") INPUT(1, "i32[2,4,4]") INPUT(2, "i32[2,4]")
     "%3 = take %0, %1, %2 : f32[2,4,4,3]\n",
     "rows and columns of pixels must have one shape: i32[2,4,4] and"},
    {INPUT(0, "f32[2,4,4,3]") INPUT(1, "i32[2,1,3]") INPUT(2, "i32[2,3,1]")
     "%3 = take %0, %1, %2 : f32[2,1,3,3]\n",
     "rows and columns of pixels must have one shape: i32[2,1,3] and"},
    {INPUT(0, "f32[2,4,4,3]")
     "%1 = resize %0 {mode = \"nearest\"} : f32[2,4,4,3]\n", "it has no size"},
    {INPUT(0, "f32[2,4,4,3]")
     "%1 = resize %0 {mode = \"cubic\", size = [2,2]} : f32[2,2,2,3]\n",
     "its mode must be nearest or bilinear"},
    {INPUT(0, "f32[2,4,4,3]")
     "%1 = resize %0 {mode = \"nearest\", size = [0,2]} : f32[2,2,2,3]\n",
     "its size must be in 1 .. 2147483647"},
    {INPUT(0, "f32[1,4,1,1]")
     "%1 = resize %0 {mode = \"nearest\", size = [536870912,1]} : f32[1]\n",
     "it cannot make that size"},
    {INPUT(0, "f32[2,4,4,0]")
     "%1 = resize %0 {mode = \"nearest\", size = [2,2]} : f32[2,2,2,0]\n",
     "it cannot make that size"},
    {INPUT(0, "u8[2,4,4,3]")
     "%1 = resize %0 {mode = \"nearest\", size = [2,2]} : u8[2,2,2,3]\n",
     "it needs float images"},
    {INPUT(0, "f32[2,4,4,3]")
     "%1 = resize_grad %0 {mode = \"nearest\", size = [2,2]} : f32[2,4,4,3]\n",
     "resize gives the first, the gradient is the second"},
    {INPUT(0, "f32[2,4,4,3]") "%1 = max_pool %0 : f32[2,4,4,3]\n",
     "it has no window"},
    {INPUT(0, "f32[2,4,4,3]") "%1 = max_pool %0 {window = [5,1]} : f32[2,0,4,3]\n",
     "the window must fit the image"},
    {INPUT(0, "f32[2,4,4,3]")
     "%1 = max_pool %0 {pad = [2,0,0,0], window = [2,2]} : f32[2,4,4,3]\n",
     "its pad must be smaller than its window"},
    {INPUT(0, "f32[2,4,4,3]")
     "%1 = avg_pool %0 {stride = [0,1], window = [2,2]} : f32[2,4,4,3]\n",
     "its stride must be in 1 .. 2147483647"},
    {INPUT(0, "f32[2,4,4,3]")
     "%1 = avg_pool %0 {window = [2]} : f32[2,4,4,3]\n",
     "its window must have 2 numbers, not 1"},
    {INPUT(0, "i32[2,4,4,3]") "%1 = max_pool %0 {window = [2,2]} : i32[2,3,3,3]\n",
     "it needs float images"},
    {INPUT(0, "f32[2,2,2,3]")
     "%1 = avg_pool_grad %0 {window = [2,2]} : f32[2,4,4,3]\n",
     "pooling gives the first, the gradient is the second"},
    {INPUT(0, "i32[2,3,3,3]") INPUT(1, "f32[2,3,3,3]")
     "%2 = max_pool_grad %0, %1 {window = [2,2]} : f32[2,4,4,3]\n",
     "its index is the first and must be the second"},
    {INPUT(0, "f32[2,4,4,3]") INPUT(1, "act[5,3,3,3]")
     "%2 = conv %0, %1 : f32[2,2,2,5]\n",
     "both operands must be f32 or both act"},
    {INPUT(0, "f32[2,4,4,3]") INPUT(1, "f32[5,3,3,4]")
     "%2 = conv %0, %1 : f32[2,2,2,5]\n", "the channels do not fit the groups"},
    {INPUT(0, "f32[2,4,4,4]") INPUT(1, "f32[5,3,3,2]")
     "%2 = conv %0, %1 {groups = 2} : f32[2,2,2,5]\n",
     "the channels do not fit the groups"},
    {INPUT(0, "f32[2,4,4,3]") INPUT(1, "f32[5,3,3,3]")
     "%2 = conv %0, %1 {dilation = [2,2]} : f32[2,2,2,5]\n",
     "the window must fit the image"},
    {INPUT(0, "f32[2,4,4]") INPUT(1, "f32[5,3,3,3]")
     "%2 = conv %0, %1 : f32[2,2,2,5]\n", "it needs x [N,H,W,C]"},
    {INPUT(0, "f32[2,3,3,5]") INPUT(1, "f32[5,3,3,3]")
     "%2 = conv_grad_input %0, %1 : f32[2,4,4,3]\n",
     "conv gives the first, the gradient is the second"},
    {INPUT(0, "f32[2,3]") INPUT(1, "f32[2,4]")
     "%2 = matmul %0, %1 : f32[2,4]\n", "columns and rows do not match"},
    {INPUT(0, "f32[2]") "%1 = matmul %0, %0 : f32[2]\n",
     "it needs two matrices"},
    {INPUT(0, "f32[2,3,4]") INPUT(1, "f32[4,5]")
     "%2 = matmul %0, %1 : f32[2,3,5]\n",
     "it needs two matrices, or as many of each: f32[2,3,4] and f32[4,5]"},
    {INPUT(0, "f32[2,3,4]") INPUT(1, "f32[1,4,5]")
     "%2 = matmul %0, %1 : f32[2,3,5]\n", "it needs as many matrices of each"},
    {INPUT(0, "act[3,3]") "%1 = eigh %0 : act[4,3]\n",
     "it needs an f32 matrix"},
    {INPUT(0, "f32[2,3]") "%1 = eigh %0 : f32[3,3]\n",
     "it needs a square matrix"},
    {INPUT(0, "i32[3]") "%1 = sum_over_shards %0 : i32[3]\n",
     "it needs a float operand"},
    {INPUT(0, "f32[3]") "%1 = orthogonal %0 : f32[3]\n",
     "it needs an f32 matrix"},
    {INPUT(0, "f32[2,3]") INPUT(1, "f32[2]")
     "%2 = batch_norm %0, %1, %1 : f32[2,3]\n", "scale and bias must be"},
    {INPUT(0, "f32[2,3]") INPUT(1, "i32[3]")
     "%2 = cross_entropy %0, %1 : f32[2,1]\n", "its labels must be i32[M] or"},
    {INPUT(0, "f32[2,3]") INPUT(1, "f32[2,4]")
     "%2 = cross_entropy %0, %1 : f32[2,1]\n", "its labels must be i32[M] or"},
    {INPUT(0, "f32[2,3]") "%1 = softmax %0 {axis = 0} : f32[2,3]\n",
     "it works along the last axis only"},
    {INPUT(0, "f32[3]") "%1 = gradient %0, %0 : f32[3]\n",
     "its first operand must be a param"},
    {"%0 = param {name = \"p\"} : f32[3]\n" INPUT(1, "f32[4]")
     "%2 = gradient %0, %1 : f32[4]\n", "a gradient must fit its param"},
    {"%0 = param {name = \"p\"} : f32[3]\n" INPUT(1, "f32[]")
     "%2 = adam %0, %1, %1, %1, %1, %1 : f32[3]\n",
     "operand 6 must be i32[], not f32[]"},
    {"%0 = param {name = \"p\"} : f32[3]\n" INPUT(1, "f32[]")
     "%2 = sgd %0, %1, %1 : f32[3]\n", "it takes 4 operands, not 3"},
    {INPUT(0, "f32[3]") "%1 = assign %0, %0 : f32[3]\n",
     "its first operand must be a param or a state"},
    {"%0 = param {name = \"p\"} : f32[3]\n" INPUT(1, "act[3]")
     "%2 = assign %0, %1 : f32[3]\n", "the types differ: f32[3] and act[3]"},
    // clang-format on
};

enum {
    NUM_GOOD = sizeof good / sizeof good[0],
    NUM_BAD = sizeof bad / sizeof bad[0],
};

START_TEST(a_type_is_given) {
    Arena *a = arena_new();
    Graph *g = graph_of(a, good[_i]);
    const char *why = graph_verify(g, a);
    ck_assert_msg(why == NULL, "%s in\n%s", why, good[_i]);
    arena_free(a);
}
END_TEST

START_TEST(a_reason_is_given) {
    Arena *a = arena_new();
    Graph *g = graph_of(a, bad[_i].body);
    Type type;
    const char *why = type_infer(g, &g->node[g->count - 1], &type);
    ck_assert_msg(why != NULL, "a type for\n%s", bad[_i].body);
    ck_assert_msg(strncmp(why, bad[_i].why, strlen(bad[_i].why)) == 0,
                  "%s for\n%s", why, bad[_i].body);
    arena_free(a);
}
END_TEST

START_TEST(every_operation_has_a_case) {
    Arena *a = arena_new();
    bool covered[NUM_OPS] = {false};
    for (int i = 0; i < NUM_GOOD; i++) {
        Graph *g = graph_of(a, good[i]);
        covered[g->node[g->count - 1].op] = true;
    }
    for (int op = 0; op < NUM_OPS; op++)
        ck_assert_msg(covered[op], "no case for %s", op_info[op].name);
    arena_free(a);
}
END_TEST

START_TEST(windows_are_counted) {
    ck_assert_int_eq(window_count(32, 2, 3, 1, 1), 32);
    ck_assert_int_eq(window_count(5, 0, 2, 2, 1), 2);
    ck_assert_int_eq(window_count(5, 0, 3, 1, 2), 1);
    ck_assert_int_eq(window_count(4, 0, 3, 1, 2), 0);
    ck_assert_int_eq(window_count(4, 0, 7, 5, 1), 0);
    ck_assert_int_eq(window_count(4, 0, 2, 0, 1), 0);
    ck_assert_int_eq(window_count(INT64_MAX, 1, 2, 1, 1), 0);
    ck_assert_int_eq(window_count(4, 0, INT64_MAX, 1, INT64_MAX), 0);
}
END_TEST

Suite *shape_suite(void) {
    Suite *s = suite_create("shape");
    TCase *c = tcase_create("shape");
    tcase_add_loop_test(c, a_type_is_given, 0, NUM_GOOD);
    tcase_add_loop_test(c, a_reason_is_given, 0, NUM_BAD);
    tcase_add_test(c, every_operation_has_a_case);
    tcase_add_test(c, windows_are_counted);
    suite_add_tcase(s, c);
    return s;
}
