// Eval: every operation against numbers that were found another way: by hand,
// or from the definition by a program in another language.

#include "ir/noise.h"
#include "tests/ir/suites.h"

#include <float.h>
#include <math.h>

#define CONST(n, type, values)                                                 \
    "%" #n " = constant {values = [" values "]} : " type "\n"
#define PARAM(n, type) "%" #n " = param {name = \"p\"} : " type "\n"

// A graph and the elements of its last node.  Inputs and params hold 1, 2, 3
// and so on.  Every operation ends one of the graphs.
static const struct {
    const char *body;
    int count;
    double want[80];
} cases[] = {
    // clang-format off
    {INPUT(0, "f32[3]"), 3, {1, 2, 3}},
    {PARAM(0, "f32[3]"), 3, {1, 2, 3}},
    {"%0 = state {init = 2.5, kind = \"run\", name = \"s\"} : f32[2]\n",
     2, {2.5, 2.5}},
    {CONST(0, "f32[3]", "7"), 3, {7, 7, 7}},
    {CONST(0, "f32[2,2]", "1,2,3,4"), 4, {1, 2, 3, 4}},
    {"%0 = iota {axis = 1} : i32[2,3]\n", 6, {0, 1, 2, 0, 1, 2}},
    {"%0 = iota {axis = 0, from = 5} : i32[2,3]\n", 6, {5, 5, 5, 6, 6, 6}},
    {"%0 = loss_scale : f32[]\n", 1, {1}},
    {"%0 = workspace : u8[2]\n", 2, {0, 0}},

    {CONST(0, "f32[2]", "-1.5,2") "%1 = neg %0 : f32[2]\n", 2, {1.5, -2}},
    {CONST(0, "f32[3]", "-1.5,2,nan") "%1 = abs %0 : f32[3]\n",
     3, {1.5, 2, NAN}},
    {CONST(0, "f32[2]", "0,1") "%1 = exp %0 : f32[2]\n",
     2, {1, 2.718281828459045}},
    {CONST(0, "f32[2]", "1,10") "%1 = log %0 : f32[2]\n",
     2, {0, 2.302585092994046}},
    {CONST(0, "f32[2]", "4,2") "%1 = sqrt %0 : f32[2]\n",
     2, {2, 1.4142135623730951}},
    {CONST(0, "f32[2]", "4,16") "%1 = rsqrt %0 : f32[2]\n", 2, {0.5, 0.25}},
    {CONST(0, "f32[2]", "0,1") "%1 = cos %0 : f32[2]\n",
     2, {1, 0.5403023058681398}},
    {CONST(0, "f32[2]", "0,1") "%1 = sin %0 : f32[2]\n",
     2, {0, 0.8414709848078965}},
    {CONST(0, "f32[2]", "0,1") "%1 = tanh %0 : f32[2]\n",
     2, {0, 0.7615941559557649}},
    {CONST(0, "f32[3]", "0,1,-10") "%1 = cdf %0 : f32[3]\n",
     3, {0.5, 0.8413447460685429, 7.619853024160527e-24}},
    {CONST(0, "f32[2]", "0,1") "%1 = pdf %0 : f32[2]\n",
     2, {0.3989422804014327, 0.24197072451914337}},
    {CONST(0, "f32[3]", "0,1,-800") "%1 = sigmoid %0 : f32[3]\n",
     3, {0.5, 0.7310585786300049, 0}},
    {CONST(0, "f32[3]", "-1.5,2.9,3") "%1 = floor %0 : f32[3]\n",
     3, {-2, 2, 3}},
    {CONST(0, "f32[4]", "-1,2,nan,-inf") "%1 = relu %0 : f32[4]\n",
     4, {0, 2, NAN, 0}},
    {CONST(0, "bool[2]", "0,1") "%1 = not %0 : bool[2]\n", 2, {1, 0}},
    {CONST(0, "f32[4]", "1,inf,-inf,nan") "%1 = finite %0 : bool[4]\n",
     4, {1, 0, 0, 0}},
    {CONST(0, "f32[4]", "-1.9,1.9,3e9,nan") "%1 = cast %0 : i32[4]\n",
     4, {-1, 1, 2147483647, 0}},
    {CONST(0, "f32[3]", "-1,255.5,7") "%1 = cast %0 : u8[3]\n",
     3, {0, 255, 7}},
    {CONST(0, "f32[2]", "0.5,0") "%1 = cast %0 : bool[2]\n", 2, {1, 0}},
    {INPUT(0, "f32[2,1]") "%1 = broadcast %0 : f32[2,2,3]\n",
     12, {1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2}},

    {INPUT(0, "f32[2,3]") INPUT(1, "f32[3]") "%2 = add %0, %1 : f32[2,3]\n",
     6, {2, 4, 6, 5, 7, 9}},
    {INPUT(0, "f32[2,1]") INPUT(1, "f32[3]") "%2 = sub %0, %1 : f32[2,3]\n",
     6, {0, -1, -2, 1, 0, -1}},
    {INPUT(0, "f32[3]") CONST(1, "f32[]", "2") "%2 = mul %0, %1 : f32[3]\n",
     3, {2, 4, 6}},
    {INPUT(0, "f32[3]") CONST(1, "f32[]", "2") "%2 = div %0, %1 : f32[3]\n",
     3, {0.5, 1, 1.5}},
    {CONST(0, "i32[3]", "7,-7,1") CONST(1, "i32[3]", "2,2,0")
     "%2 = div %0, %1 : i32[3]\n", 3, {3, -3, 0}},
    {CONST(0, "i32[3]", "7,-7,1") CONST(1, "i32[3]", "4,4,0")
     "%2 = mod %0, %1 : i32[3]\n", 3, {3, -3, 0}},
    {CONST(0, "f32[3]", "1,5,nan") CONST(1, "f32[3]", "2,3,1")
     "%2 = maximum %0, %1 : f32[3]\n", 3, {2, 5, NAN}},
    {CONST(0, "f32[3]", "1,5,nan") CONST(1, "f32[3]", "2,3,1")
     "%2 = minimum %0, %1 : f32[3]\n", 3, {1, 3, NAN}},
    {CONST(0, "f32[2]", "1,5") CONST(1, "f32[]", "nan")
     "%2 = maximum %0, %1 : f32[2]\n", 2, {NAN, NAN}},
    {CONST(0, "f32[2]", "1,5") CONST(1, "f32[]", "nan")
     "%2 = minimum %0, %1 : f32[2]\n", 2, {NAN, NAN}},
    {CONST(0, "f32[2]", "1,nan") CONST(1, "f32[]", "nan")
     "%2 = lt %0, %1 : bool[2]\n", 2, {0, 0}},
    {CONST(0, "f32[2]", "1,nan") CONST(1, "f32[]", "nan")
     "%2 = le %0, %1 : bool[2]\n", 2, {0, 0}},
    {CONST(0, "f32[2]", "1,nan") CONST(1, "f32[]", "nan")
     "%2 = eq %0, %1 : bool[2]\n", 2, {0, 0}},
    {INPUT(0, "f32[3]") CONST(1, "f32[]", "2") "%2 = lt %0, %1 : bool[3]\n",
     3, {1, 0, 0}},
    {INPUT(0, "f32[3]") CONST(1, "f32[]", "2") "%2 = le %0, %1 : bool[3]\n",
     3, {1, 1, 0}},
    {INPUT(0, "f32[3]") CONST(1, "f32[]", "2") "%2 = eq %0, %1 : bool[3]\n",
     3, {0, 1, 0}},
    {CONST(0, "bool[4]", "0,0,1,1") CONST(1, "bool[4]", "0,1,0,1")
     "%2 = and %0, %1 : bool[4]\n", 4, {0, 0, 0, 1}},
    {CONST(0, "bool[4]", "0,0,1,1") CONST(1, "bool[4]", "0,1,0,1")
     "%2 = or %0, %1 : bool[4]\n", 4, {0, 1, 1, 1}},
    {CONST(0, "bool[3]", "1,0,1") INPUT(1, "f32[3]") CONST(2, "f32[]", "nan")
     "%3 = select %0, %1, %2 : f32[3]\n", 3, {1, NAN, 3}},
    {INPUT(0, "f32[2]") CONST(1, "f32[2]", "7,8") CONST(2, "f32[]", "0.5")
     "%3 = var_finalize %0, %1, %2 {number = 0} : f32[2]\n", 2, {1, 2}},
    {CONST(0, "i32[]", "1") CONST(1, "i32[]", "3") CONST(2, "i32[2]", "4,4")
     "%3 = uniform %0, %1, %2 {stream = 2} : f32[2]\n",
     2, {0x6d79a9 * 0x1p-24, 0x6d79a9 * 0x1p-24}},
    {CONST(0, "i32[]", "0") CONST(1, "i32[]", "0") CONST(2, "i32[3]", "3,0,1")
     "%3 = uniform %0, %1, %2 {stream = 0, words = 4} : f32[3]\n",
     3, {0x9b00db * 0x1p-24, 0x6627e8 * 0x1p-24, 0xe169c5 * 0x1p-24}},

    {INPUT(0, "f32[2,3]") "%1 = sum %0 {axes = [0]} : f32[3]\n",
     3, {5, 7, 9}},
    {INPUT(0, "f32[2,3]") "%1 = sum %0 {axes = [1]} : f32[2,1]\n", 2, {6, 15}},
    {INPUT(0, "f32[2,2,2]") "%1 = sum %0 {axes = [0,2]} : f32[2,1]\n",
     2, {14, 22}},
    {INPUT(0, "f32[2,3]") "%1 = sum %0 {axes = [0,1]} : f32[]\n", 1, {21}},
    {CONST(0, "f32[2,3]", "-5,-2,-3,1,nan,9")
     "%1 = max %0 {axes = [1]} : f32[2,1]\n", 2, {-2, NAN}},
    {CONST(0, "f32[2]", "-inf,-inf") "%1 = max %0 {axes = [0]} : f32[]\n",
     1, {-INFINITY}},
    {INPUT(0, "f32[2,3]") "%1 = var %0 {axes = [0]} : f32[3]\n",
     3, {2.25, 2.25, 2.25}},
    {CONST(0, "f32[3]", "100000000,100000001,100000002")
     "%1 = var %0 {axes = [0]} : f32[]\n", 1, {2.0 / 3}},
    {CONST(0, "f32[2,3]", "1,3,3,-1,-2,-1") "%1 = argmax %0 : i32[2,1]\n",
     2, {1, 0}},
    {CONST(0, "f32[2,3]", "9,nan,nan,nan,5,6") "%1 = argmax %0 : i32[2,1]\n",
     2, {1, 0}},
    {CONST(0, "f32[2]", "1,2") CONST(1, "f32[3]", "1,2,3")
     "%2 = all_finite %0, %1 : f32[]\n", 1, {1}},
    {CONST(0, "f32[2]", "1,2") CONST(1, "f32[3]", "1,-inf,3")
     "%2 = all_finite %0, %1 : f32[]\n", 1, {0}},
    {CONST(0, "f32[2]", "1,2") CONST(1, "f32[3]", "1,2,-5")
     "%2 = total %0, %1 : f32[]\n", 1, {1}},

    {INPUT(0, "f32[2,2]") "%1 = reshape %0 : f32[4]\n", 4, {1, 2, 3, 4}},
    {INPUT(0, "f32[2,2]") "%1 = stack %0, %0 : f32[2,2,3]\n",
     12, {1, 2, 0, 3, 4, 0, 1, 2, 0, 3, 4, 0}},
    {INPUT(0, "f32[2,2]") "%1 = pad %0 {high = [0,2], low = [1,0]} : f32[3,4]\n",
     12, {0, 0, 0, 0, 1, 2, 0, 0, 3, 4, 0, 0}},
    {INPUT(0, "f32[3,4]")
     "%1 = slice %0 {high = [0,2], low = [1,1]} : f32[2,1]\n", 2, {6, 10}},
    {INPUT(0, "f32[1,2,3,1]") CONST(1, "i32[1]", "1") CONST(2, "i32[1]", "-1")
     "%3 = shift %0, %1, %2 {mode = \"zero\"} : f32[1,2,3,1]\n",
     6, {0, 4, 5, 0, 0, 0}},
    {INPUT(0, "f32[1,2,3,1]") CONST(1, "i32[1]", "1") CONST(2, "i32[1]", "-1")
     "%3 = shift %0, %1, %2 {mode = \"edge\"} : f32[1,2,3,1]\n",
     6, {4, 4, 5, 4, 4, 5}},
    {INPUT(0, "f32[1,2,3,1]") CONST(1, "i32[1]", "1") CONST(2, "i32[1]", "-2")
     "%3 = shift %0, %1, %2 {mode = \"reflect\"} : f32[1,2,3,1]\n",
     6, {6, 5, 4, 3, 2, 1}},
    {INPUT(0, "f32[2,1,2,1]") CONST(1, "i32[2]", "0,0")
     CONST(2, "i32[2]", "0,1")
     "%3 = shift %0, %1, %2 {mode = \"zero\"} : f32[2,1,2,1]\n",
     4, {1, 2, 4, 0}},
    {INPUT(0, "f32[2,1,2,2]") CONST(1, "bool[2]", "1,0")
     "%2 = flip %0, %1 : f32[2,1,2,2]\n", 8, {3, 4, 1, 2, 5, 6, 7, 8}},
    {INPUT(0, "f32[2,3]") "%1 = transpose %0 {order = [1,0]} : f32[3,2]\n",
     6, {1, 4, 2, 5, 3, 6}},
    {INPUT(0, "f32[2,1,3]") "%1 = transpose %0 {order = [2,0,1]} : f32[3,2,1]\n",
     6, {1, 4, 2, 5, 3, 6}},
    {INPUT(0, "f32[2,3,2]") "%1 = transpose %0 {order = [1,0,2]} : f32[3,2,2]\n",
     12, {1, 2, 7, 8, 3, 4, 9, 10, 5, 6, 11, 12}},
    {INPUT(0, "f32[3,2]") CONST(1, "i32[4]", "2,0,-5,9")
     "%2 = gather %0, %1 : f32[4,2]\n", 8, {5, 6, 1, 2, 1, 2, 5, 6}},
    {INPUT(0, "f32[3]") CONST(1, "i32[2,1]", "1,0")
     "%2 = gather %0, %1 : f32[2,1]\n", 2, {2, 1}},
    {INPUT(0, "f32[4,2]") CONST(1, "i32[4]", "2,0,-5,9")
     "%2 = gather_grad %0, %1 : f32[3,2]\n", 6, {8, 10, 0, 0, 8, 10}},
    // Scores 0.5, 1.25; 2, 5.
    {INPUT(0, "f32[1,2,3]") "%1 = attention %0 {scale = 0.25} : f32[1,2,1]\n",
     2, {5.03753609752618, 5.8577223804673}},
    {INPUT(0, "f32[1,2,3]")
     "%1 = attention %0 {causal = 1, scale = 0.25} : f32[1,2,1]\n",
     2, {3, 5.8577223804673}},
    {INPUT(0, "f32[1,2,3]")
     "%1 = attention_lse %0 {causal = 1, scale = 0.25} : f32[1,1,2]\n",
     2, {0.5, 5.04858735157374}},
    // Only the second position has another to attend to.  Its weights are w and
    // 1 - w, and the slope of its score is 0.25 w (1 - w) times 3 - 6.
    {INPUT(0, "f32[1,2,3]") CONST(1, "f32[1,2,1]", "3,5.8577223804673")
     CONST(2, "f32[1,2,1]", "1,1") CONST(3, "f32[1,1,2]", "0.5,5.04858735157374")
     "%4 = attention_grad %0, %1, %2, %3 {causal = 1, scale = 0.25}"
     " : f32[1,2,3]\n",
     6, {0, -0.135529979192736, 1.04742587317757, 0.101647484394553, 0.135529979192737, 0.952574126822433}},
    {INPUT(0, "f32[2,2,2,1]") CONST(1, "i32[2,1]", "1,0")
     CONST(2, "i32[2,3]", "0,1,7,1,-1,0")
     "%3 = take %0, %1, %2 : f32[2,1,3,1]\n", 6, {3, 4, 4, 6, 5, 5}},
    {INPUT(0, "f32[2,2,2,1]") CONST(1, "i32[2,1,3]", "1,0,9,-2,1,0")
     CONST(2, "i32[2,1,3]", "0,1,7,1,-1,0")
     "%3 = take %0, %1, %2 : f32[2,1,3,1]\n", 6, {3, 2, 4, 6, 7, 5}},

    {CONST(0, "u8[2,4]", "0,1,2,3,3,0,5,1")
     "%1 = pack %0 {bits = 2} : u8[2,1]\n", 2, {228, 83}},
    {CONST(0, "bool[8]", "1,0,0,1,1,0,0,0")
     "%1 = pack %0 {bits = 1} : u8[1]\n", 1, {25}},
    {CONST(0, "u8[2,1]", "228,83")
     "%1 = unpack %0 {bits = 2} : u8[2,4]\n", 8, {0, 1, 2, 3, 3, 0, 1, 1}},
    {CONST(0, "u8[1]", "93")
     "%1 = unpack %0 {bits = 4} : u8[2]\n", 2, {13, 5}},

    {CONST(0, "f32[1,3,3,1]", "1,5,5,2,5,1,-7,0,3")
     "%1 = max_pool %0 {window = [2,2]} : f32[1,2,2,1]\n", 4, {5, 5, 5, 5}},
    {CONST(0, "f32[1,2,2,1]", "-1,-2,-3,-4")
     "%1 = max_pool %0 {pad = [1,1,1,1], stride = [2,2], window = [2,2]}"
     " : f32[1,2,2,1]\n", 4, {-1, -2, -3, -4}},
    {INPUT(0, "f32[1,2,4,2]")
     "%1 = max_pool %0 {stride = [2,2], window = [2,2]} : f32[1,1,2,2]\n",
     4, {11, 12, 15, 16}},
    {CONST(0, "f32[1,3,3,1]", "1,5,5,2,5,1,-7,0,3")
     "%1 = max_pool_index %0 {window = [2,2]} : u8[1,2,2,1]\n",
     4, {1, 0, 1, 0}},
    {CONST(0, "f32[1,2,2,1]", "-1,-2,-3,-4")
     "%1 = max_pool_index %0 {pad = [1,1,1,1], stride = [2,2], window = [2,2]}"
     " : u8[1,2,2,1]\n", 4, {3, 2, 1, 0}},
    {CONST(0, "f32[1,1,2,1]", "-inf,-inf")
     "%1 = max_pool_index %0 {pad = [0,0,1,0], window = [1,3]}"
     " : u8[1,1,1,1]\n", 1, {1}},
    {CONST(0, "u8[1,2,2,1]", "1,0,1,0") INPUT(1, "f32[1,2,2,1]")
     "%2 = max_pool_grad %0, %1 {window = [2,2]} : f32[1,3,3,1]\n",
     9, {0, 3, 0, 0, 7, 0, 0, 0, 0}},
    {INPUT(0, "f32[1,2,2,1]")
     "%1 = avg_pool %0 {pad = [1,1,1,1], stride = [2,2], window = [2,2]}"
     " : f32[1,2,2,1]\n", 4, {0.25, 0.5, 0.75, 1}},
    {INPUT(0, "f32[1,1,2,2]") "%1 = avg_pool %0 {window = [1,2]}"
     " : f32[1,1,1,2]\n", 2, {2, 3}},
    {INPUT(0, "f32[1,2,2,1]")
     "%1 = avg_pool_grad %0 {window = [2,2]} : f32[1,3,3,1]\n",
     9, {0.25, 0.75, 0.5, 1, 2.5, 1.5, 0.75, 1.75, 1}},

    {INPUT(0, "f32[1,2,3,1]")
     "%1 = resize %0 {mode = \"nearest\", size = [3,5]} : f32[1,3,5,1]\n",
     15, {1, 1, 2, 2, 3, 1, 1, 2, 2, 3, 4, 4, 5, 5, 6}},
    {INPUT(0, "f32[1,2,3,1]")
     "%1 = resize %0 {mode = \"bilinear\", size = [3,5]} : f32[1,3,5,1]\n",
     15, {1, 1.4, 2, 2.6, 3, 2.5, 2.9, 3.5, 4.1, 4.5, 4, 4.4, 5, 5.6, 6}},
    {INPUT(0, "f32[1,4,2,1]")
     "%1 = resize %0 {mode = \"bilinear\", size = [2,1]} : f32[1,2,1,1]\n",
     2, {2.5, 6.5}},
    {INPUT(0, "f32[1,3,5,1]")
     "%1 = resize_grad %0 {mode = \"nearest\", size = [3,5]} : f32[1,2,3,1]\n",
     6, {16, 24, 15, 23, 27, 15}},
    {INPUT(0, "f32[1,3,5,1]")
     "%1 = resize_grad %0 {mode = \"bilinear\", size = [3,5]} : f32[1,2,3,1]\n",
     6, {7.3, 12.6, 15.1, 23.3, 30.6, 31.1}},

    {INPUT(0, "f32[1,3,3,1]") INPUT(1, "f32[1,2,2,1]")
     "%2 = conv %0, %1 : f32[1,2,2,1]\n", 4, {37, 47, 67, 77}},
    {INPUT(0, "f32[1,3,3,1]") INPUT(1, "f32[1,2,2,1]")
     "%2 = conv %0, %1 {pad = [1,0,1,0], stride = [2,2]} : f32[1,2,2,1]\n",
     4, {4, 18, 36, 77}},
    {INPUT(0, "f32[1,1,1,2]") INPUT(1, "f32[3,1,1,2]")
     "%2 = conv %0, %1 : f32[1,1,1,3]\n", 3, {5, 11, 17}},
    {INPUT(0, "f32[1,5,4,4]") INPUT(1, "f32[2,2,2,2]")
     "%2 = conv %0, %1 {dilation = [2,1], groups = 2, pad = [1,0,0,1],"
     " stride = [2,1]} : f32[1,2,4,2]\n",
     16, {516, 1256, 620, 1488, 724, 1720, 325, 851, 1552, 4024, 1696, 4424,
          1840, 4824, 766, 2314}},
    {INPUT(0, "f32[1,2,1,1]") CONST(1, "f32[1,1,1,1]", "10")
     INPUT(2, "f32[1,2,1,1]")
     "%3 = conv_grad_input %0, %1, %2 {accumulate = 1} : f32[1,2,1,1]\n",
     2, {11, 22}},
    {INPUT(0, "f32[1,2,4,2]") INPUT(1, "f32[2,2,2,2]")
     "%2 = conv_grad_input %0, %1 {dilation = [2,1], groups = 2,"
     " pad = [1,0,0,1], stride = [2,1]} : f32[1,5,4,4]\n",
     80, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
          14, 24, 116, 128, 60, 84, 300, 328, 92, 124, 396, 432, 124, 164, 492,
          536, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
          45, 54, 130, 140, 118, 138, 306, 328, 142, 166, 362, 388, 166, 194,
          418, 448, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}},
    {INPUT(0, "f32[1,2,4,2]") INPUT(1, "f32[1,5,4,4]")
     "%2 = conv_grad_weight %0, %1 {dilation = [2,1], groups = 2,"
     " pad = [1,0,0,1], stride = [2,1]} : f32[2,2,2,2]\n",
     16, {1144, 1192, 841, 874, 3088, 3152, 2138, 2180, 1340, 1392, 988, 1024,
          3544, 3616, 2480, 2528}},
    {INPUT(0, "f32[2,3]") INPUT(1, "f32[3,2]") "%2 = matmul %0, %1 : f32[2,2]\n",
     4, {22, 28, 49, 64}},
    {INPUT(0, "f32[3,2]") INPUT(1, "f32[3,2]")
     "%2 = matmul %0, %1 {ta = 1} : f32[2,2]\n", 4, {35, 44, 44, 56}},
    {INPUT(0, "f32[2,3]") INPUT(1, "f32[2,3]")
     "%2 = matmul %0, %1 {tb = 1} : f32[2,2]\n", 4, {14, 32, 32, 77}},
    {INPUT(0, "f32[2,1]") INPUT(1, "f32[3,2]")
     "%2 = matmul %0, %1 {ta = 1, tb = 1} : f32[1,3]\n", 3, {5, 11, 17}},
    {INPUT(0, "f32[2,2,3]") INPUT(1, "f32[2,3,2]")
     "%2 = matmul %0, %1 : f32[2,2,2]\n",
     8, {22, 28, 49, 64, 220, 244, 301, 334}},
    {INPUT(0, "f32[2,3,2]") INPUT(1, "f32[2,2,3]")
     "%2 = matmul %0, %1 {ta = 1, tb = 1} : f32[2,2,2]\n",
     8, {22, 49, 28, 64, 220, 301, 244, 334}},
    {CONST(0, "f32[2,2]", "2,1,1,3") "%1 = eigh %0 : f32[3,2]\n",
     6, {3.618033988749895, 1.381966011250105, 0.5257311121191336,
         0.8506508083520399, 0.8506508083520399, -0.5257311121191336}},
    {CONST(0, "f32[3,3]", "1,0,0,0,5,0,0,0,3") "%1 = eigh %0 : f32[4,3]\n",
     12, {5, 3, 1, 0, 1, 0, 0, 0, 1, 1, 0, 0}},
    {INPUT(0, "f32[3,2]") "%1 = orthogonal %0 : f32[3,2]\n",
     6, {0.1690308509457033, 0.8970852271450604, 0.50709255283711,
         0.2760262237369417, 0.8451542547285166, -0.34503277967117685}},
    {INPUT(0, "f32[2,3]") "%1 = orthogonal %0 : f32[2,3]\n",
     6, {0.2672612419124244, 0.5345224838248488, 0.8017837257372732,
         0.8728715609439694, 0.21821789023599208, -0.43643578047198506}},
    {CONST(0, "f32[2]", "3,-5") "%1 = sum_over_shards %0 : f32[2]\n",
     2, {3, -5}},

    {INPUT(0, "f32[3,2]") INPUT(1, "f32[2]")
     "%2 = batch_norm %0, %1, %1 {eps = 0.5} : f32[3,2]\n",
     6, {-0.12390297389803284, -0.24780594779606568, 1, 2, 2.1239029738980326,
         4.247805947796065}},
    {CONST(0, "f32[2,3]", "1,2,3,4,5,9") CONST(1, "i32[2]", "2,0")
     "%2 = cross_entropy %0, %1 : f32[2,1]\n",
     2, {0.40760596444438013, 5.024744890138823}},
    {CONST(0, "f32[2,3]", "1,2,3,4,5,9") CONST(1, "i32[2]", "2,0")
     "%2 = cross_entropy %0, %1 {smoothing = 0.3} : f32[2,1]\n",
     2, {0.70760596444438, 4.424744890138823}},
    {CONST(0, "f32[1,2]", "1000,-1000") CONST(1, "i32[1]", "1")
     "%2 = cross_entropy %0, %1 : f32[1,1]\n", 1, {2000}},
    {CONST(0, "f32[2,3]", "1,2,3,4,5,9")
     CONST(1, "f32[2,3]", "0.5,0.5,0,0,1,1")
     "%2 = cross_entropy %0, %1 : f32[2,1]\n",
     2, {1.9076059644443806, 4.049489780277645}},
    {CONST(0, "f32[2,3]", "1,2,3,4,5,9")
     CONST(1, "f32[2,3]", "0.5,0.5,0,0,1,1")
     "%2 = cross_entropy %0, %1 {smoothing = 0.3} : f32[2,1]\n",
     2, {1.7576059644443802, 3.742066313235998}},
    {CONST(0, "f32[2,3]", "1,2,3,4,5,9") "%1 = log_softmax %0 : f32[2,3]\n",
     6, {-2.4076059644443806, -1.4076059644443804, -0.4076059644443804,
         -5.024744890138822, -4.024744890138822, -0.02474489013882259}},
    {INPUT(0, "f32[3]") "%1 = stop_gradient %0 : f32[3]\n", 3, {1, 2, 3}},
    {CONST(0, "f32[2,3]", "1,2,3,4,5,9") "%1 = softmax %0 : f32[2,3]\n",
     6, {0.09003057317038046, 0.24472847105479767, 0.6652409557748219,
         0.006573263185309082, 0.0178679818703045, 0.9755587549443864}},

    {PARAM(0, "f32[2]") CONST(1, "f32[2]", "3,4")
     "%2 = gradient %0, %1 : f32[2]\n", 2, {3, 4}},
    {PARAM(0, "f32[2]") CONST(1, "f32[]", "0.1")
     "%2 = sgd %0, %1, %1, %1 : f32[2]\n", 2, {1, 2}},
    {PARAM(0, "f32[2]") CONST(1, "f32[2]", "3,4")
     "%2 = gradient %0, %1 : f32[2]\n" CONST(3, "f32[]", "0.1")
     CONST(4, "f32[]", "0.5") CONST(5, "f32[]", "1")
     "%6 = sgd %0, %3, %4, %5 : f32[2]\n", 2, {0.6, 1.4}},
    {PARAM(0, "f32[2]") CONST(1, "f32[2]", "3,4")
     "%2 = gradient %0, %1 : f32[2]\n" CONST(3, "f32[]", "0.1")
     CONST(4, "f32[]", "0.5") CONST(5, "f32[]", "1")
     "%6 = sgd %0, %3, %4, %5 {nesterov = 1} : f32[2]\n", 2, {0.4, 1.1}},
    {PARAM(0, "f32[2]") CONST(1, "f32[2]", "3,-4")
     "%2 = gradient %0, %1 : f32[2]\n" CONST(3, "f32[]", "0.1")
     CONST(4, "f32[]", "0.5") CONST(5, "f32[]", "1") CONST(6, "i32[]", "1")
     "%7 = adam %0, %3, %4, %4, %5, %6 {eps = 0.0} : f32[2]\n",
     2, {0.9, 2.1}},
    {PARAM(0, "f32[2]") CONST(1, "f32[2]", "3,-4")
     "%2 = gradient %0, %1 : f32[2]\n" CONST(3, "f32[]", "0.1")
     CONST(4, "f32[]", "0.5") CONST(5, "f32[]", "1") CONST(6, "i32[]", "1")
     "%7 = adamw %0, %3, %4, %4, %5, %6 {eps = 1.0} : f32[2]\n",
     2, {0.825, 1.88}},
    {PARAM(0, "f32[1]") CONST(1, "f32[1]", "2")
     "%2 = gradient %0, %1 : f32[1]\n" CONST(3, "f32[]", "1")
     CONST(4, "f32[]", "0.5") CONST(5, "f32[]", "0") CONST(6, "i32[]", "2")
     "%7 = adam %0, %3, %4, %4, %5, %6 {eps = 0.0} : f32[1]\n",
     1, {1 - (1 / 0.75) / 1.632993161855452}},
    {PARAM(0, "f32[2]") CONST(1, "f32[2]", "3,4")
     "%2 = gradient %0, %1 : f32[2]\n" CONST(3, "f32[]", "0.1")
     CONST(4, "f32[]", "0.5") CONST(5, "f32[]", "1") CONST(6, "i32[]", "1")
     "%7 = sgd %0, %3, %4, %5 {decoupled = 1} : f32[2]\n",
     2, {0.6, 1.4}},
    {PARAM(0, "f32[2]") CONST(1, "f32[2]", "3,4")
     "%2 = gradient %0, %1 : f32[2]\n" CONST(3, "f32[]", "0.1")
     CONST(4, "f32[]", "0.5") CONST(5, "f32[]", "1") CONST(6, "i32[]", "1")
     "%7 = lars %0, %3, %4, %5 {trust = 0.5} : f32[2]\n",
     2, {0.9381966011250105, 1.9072949016875158}},
    {PARAM(0, "f32[2]") CONST(1, "f32[2]", "0,0")
     "%2 = gradient %0, %1 : f32[2]\n" CONST(3, "f32[]", "0.1")
     CONST(4, "f32[]", "0.5") CONST(5, "f32[]", "1") CONST(6, "i32[]", "1")
     "%7 = lars %0, %3, %4, %5 {trust = 0.5} : f32[2]\n",
     2, {0.9, 1.8}},
    {PARAM(0, "f32[2]") CONST(1, "f32[2]", "3,-4")
     "%2 = gradient %0, %1 : f32[2]\n" CONST(3, "f32[]", "0.1")
     CONST(4, "f32[]", "0.5") CONST(5, "f32[]", "1") CONST(6, "i32[]", "1")
     "%7 = lamb %0, %3, %4, %4, %5, %6 : f32[2]\n",
     2, {0.8, 1.9}},
    {PARAM(0, "f32[2]") CONST(1, "f32[2]", "3,-4")
     "%2 = gradient %0, %1 : f32[2]\n" CONST(3, "f32[]", "0.1")
     CONST(4, "f32[]", "0.5") CONST(5, "f32[]", "1") CONST(6, "i32[]", "1")
     "%7 = rmsprop %0, %3, %4, %5, %4 {centered = 1, eps = 1.0} : f32[2]\n",
     2, {1 - 0.4 / 3, 2.1}},
    {PARAM(0, "f32[2]") CONST(1, "f32[2]", "3,-4")
     "%2 = gradient %0, %1 : f32[2]\n" CONST(3, "f32[]", "0.1")
     CONST(4, "f32[]", "0.5") CONST(5, "f32[]", "1") CONST(6, "i32[]", "1")
     "%7 = rmsprop %0, %3, %4, %5, %4 {eps = 1.0} : f32[2]\n",
     2, {0.8955184500145035, 2.082842712474619}},
    {PARAM(0, "f32[2]") CONST(1, "f32[2]", "3,-4")
     "%2 = gradient %0, %1 : f32[2]\n" CONST(3, "f32[]", "0.1")
     CONST(4, "f32[]", "0.5") CONST(5, "f32[]", "1") CONST(6, "i32[]", "2")
     "%7 = adagrad %0, %3, %5, %6 {eps = 1.0, lr_decay = 1.0} : f32[2]\n",
     2, {0.96, 2 + 0.1 / 3}},
    {PARAM(0, "f32[2]") CONST(1, "f32[2]", "3,-4")
     "%2 = gradient %0, %1 : f32[2]\n" CONST(3, "f32[]", "0.1")
     CONST(4, "f32[]", "0.5") CONST(5, "f32[]", "1") CONST(6, "i32[]", "1")
     "%7 = lion %0, %3, %4, %4, %5 : f32[2]\n",
     2, {0.8, 1.9}},
    {PARAM(0, "f32[2]") CONST(1, "f32[2]", "3,-4")
     "%2 = gradient %0, %1 : f32[2]\n" CONST(3, "f32[]", "0.1")
     CONST(4, "f32[]", "0.5") CONST(5, "f32[]", "1") CONST(6, "i32[]", "1")
     CONST(7, "f32[]", "0")
     "%8 = nadam %0, %3, %4, %7, %6 {beta1 = 0.5} : f32[2]\n",
     2, {1 - 1.7 / 15, 2 + 1.7 / 15}},
    {PARAM(0, "f32[2]") CONST(1, "f32[2]", "3,-4")
     "%2 = gradient %0, %1 : f32[2]\n" CONST(3, "f32[]", "0.1")
     CONST(4, "f32[]", "0.5") CONST(5, "f32[]", "1") CONST(6, "i32[]", "1")
     CONST(7, "f32[]", "0")
     "%8 = radam %0, %3, %4, %4, %7, %6 {eps = 1.0} : f32[2]\n",
     2, {0.7, 2.4}},
    {PARAM(0, "f32[2]") CONST(1, "f32[2]", "3,-4")
     "%2 = gradient %0, %1 : f32[2]\n" CONST(3, "f32[]", "0.1")
     CONST(4, "f32[]", "0.5") CONST(5, "f32[]", "1") CONST(6, "i32[]", "6")
     CONST(7, "f32[]", "0")
     CONST(8, "f32[]", "0.9")
     "%9 = radam %0, %3, %4, %8, %7, %6 {eps = 1.0} : f32[2]\n",
     2, {0.9863411932389455, 2.0156690117793663}},
    {PARAM(0, "f32[2]") CONST(1, "f32[2]", "3,-4")
     "%2 = gradient %0, %1 : f32[2]\n" CONST(3, "f32[]", "0.1")
     CONST(4, "f32[]", "0.5") CONST(5, "f32[]", "1") CONST(6, "i32[]", "1")
     "%7 = adan %0, %3, %4, %4, %4, %5, %6 {eps = 1.0} : f32[2]\n",
     2, {0.925 / 1.1, 2.08 / 1.1}},
    {PARAM(0, "f32[2]") CONST(1, "f32[2]", "3,-4")
     "%2 = gradient %0, %1 : f32[2]\n" CONST(3, "f32[]", "0.1")
     CONST(4, "f32[]", "0.5") CONST(5, "f32[]", "1") CONST(6, "i32[]", "2")
     "%7 = adan %0, %3, %4, %4, %4, %5, %6 {eps = 1.0} : f32[2]\n",
     2, {0.8507439720543686, 1.87982576261765}},
    {PARAM(0, "f32[2,3]") CONST(1, "f32[2,3]", "3,-1,2,0,4,1")
     "%2 = gradient %0, %1 : f32[2,3]\n" CONST(3, "f32[]", "0.1")
     CONST(4, "f32[]", "0.5")
     "%5 = muon %0, %3, %4, %4 {coefficients = [2.0,-1.5,0.5], "
     "eps = 1e-07, iterations = 1, nesterov = 1} : f32[2,3]\n",
     6, {0.8731304262007993, 1.9209882158412208, 2.797594873610904, 3.7965237684311153, 4.655618441928463, 5.673797436805452}},
    {PARAM(0, "f32[2,3]") CONST(1, "f32[2,3]", "3,-1,2,0,4,1")
     "%2 = gradient %0, %1 : f32[2,3]\n" CONST(3, "f32[]", "0.1")
     CONST(4, "f32[]", "0.5")
     "%5 = muon %0, %3, %4, %4 {coefficients = [2.0,-1.5,0.5], "
     "eps = 1e-07, iterations = 1, nesterov = 1, renormalize = 1} : f32[2,3]\n",
     6, {0.06396779636640854, 0.3026629561724394, 0.3701069841077324, 0.5598732490935524, 0.6098052927565092, 0.8188216577991078}},
    {PARAM(0, "f32[2]") CONST(1, "f32[2]", "3,4")
     "%2 = gradient %0, %1 : f32[2]\n" CONST(3, "f32[]", "1")
     "%4 = clip %3 {mode = \"norm\"} : f32[]\n", 1, {1 / 5.000001}},
    {PARAM(0, "f32[2]") CONST(1, "f32[2]", "3,4")
     "%2 = gradient %0, %1 : f32[2]\n" CONST(3, "f32[]", "6")
     "%4 = clip %3 {mode = \"norm\"} : f32[]\n", 1, {1}},
    {PARAM(0, "f32[2]") CONST(1, "f32[2]", "3,-4")
     "%2 = gradient %0, %1 : f32[2]\n" CONST(3, "f32[]", "3.5")
     "%4 = clip %3 {mode = \"value\"} : f32[]\n" CONST(5, "f32[]", "1")
     CONST(6, "f32[]", "0") "%7 = sgd %0, %5, %6, %6 : f32[2]\n",
     2, {-2, 5.5}},
    {PARAM(0, "f32[2]") CONST(1, "f32[2]", "3,-4")
     "%2 = gradient %0, %1 : f32[2]\n%3 = accumulate %0 : f32[2]\n", 2, {3, -4}},
    {INPUT(0, "f32[]") "%1 = accumulated %0 : f32[]\n", 1, {1}},
    {PARAM(0, "f32[2]") CONST(1, "f32[2]", "3,-4")
     "%2 = gradient %0, %1 : f32[2]\n" CONST(3, "f32[]", "0.5")
     "%4 = accumulated %3 : f32[]\n" CONST(5, "f32[]", "1")
     CONST(6, "f32[]", "0") "%7 = sgd %0, %5, %6, %6 : f32[2]\n",
     2, {-0.5, 4}},
    {PARAM(0, "f32[2]") CONST(1, "f32[2]", "3,4")
     "%2 = assign %0, %1 : f32[2]\n", 2, {3, 4}},
    {INPUT(0, "f32[2]") "%1 = output %0 {name = \"y\"} : f32[2]\n", 2, {1, 2}},
    // clang-format on
};

enum { NUM_CASES = sizeof cases / sizeof cases[0] };

static void ck_same(double got, double want, const char *text, int i) {
    bool same = isnan(want)   ? isnan(got)
                : isinf(want) ? got == want
                              : fabs(got - want) <= 1e-13 * (1 + fabs(want));
    ck_assert_msg(same, "element %d is %.17g and not %.17g in\n%s", i, got,
                  want, text);
}

static double *counting(Arena *a, Type t) {
    double *value = ARENA_ARRAY(a, (size_t)type_count(&t), double);
    for (int64_t i = 0; i < type_count(&t); i++)
        value[i] = (double)(i + 1);
    return value;
}

static double **leaves(Arena *a, const Graph *g) {
    double **leaf = ARENA_ARRAY(a, g->count, double *);
    for (NodeId id = 0; id < g->count; id++)
        if (g->node[id].op == OP_input || g->node[id].op == OP_param)
            leaf[id] = counting(a, *g->node[id].type);
    return leaf;
}

START_TEST(operations_mean_this) {
    Arena *a = arena_new();
    Graph *g = graph_of(a, cases[_i].body);
    const char *why = graph_verify(g, a);
    ck_assert_msg(why == NULL, "%s in\n%s", why, cases[_i].body);
    NodeId last = g->count - 1;
    double **value = graph_eval(g, a, leaves(a, g), false);
    ck_assert_int_eq(type_count(g->node[last].type), cases[_i].count);
    for (int i = 0; i < cases[_i].count; i++)
        ck_same(value[last][i], cases[_i].want[i], cases[_i].body, i);
    arena_free(a);
}
END_TEST

// The numbers of dropout are those of a tensor of all weights.
#define WEIGHTS                                                                \
    "%0 = input {name = \"qkv\"} : f32[2,4,12]\n"                               \
    "%1 = input {name = \"seed\"} : i32[]\n"                                    \
    "%2 = input {name = \"epoch\"} : i32[]\n"

START_TEST(dropout_of_attention_is_of_weights) {
    Arena *a = arena_new();
    Graph *g = graph_of(
        a, WEIGHTS
        "%3 = attention %0, %1, %2 {dropout = 0.4, heads = 2, stream = 5}"
        " : f32[2,4,4]\n"
        "%4 = reshape %0 : f32[2,4,6,2]\n"
        "%5 = transpose %4 {order = [0,2,1,3]} : f32[2,6,4,2]\n"
        "%6 = slice %5 {high = [0,4,0,0], low = [0,0,0,0]} : f32[2,2,4,2]\n"
        "%7 = slice %5 {high = [0,2,0,0], low = [0,2,0,0]} : f32[2,2,4,2]\n"
        "%8 = slice %5 {high = [0,0,0,0], low = [0,4,0,0]} : f32[2,2,4,2]\n"
        "%9 = matmul %6, %7 {tb = 1} : f32[2,2,4,4]\n"
        "%10 = constant {values = [0.7071067811865476]} : f32[]\n"
        "%11 = mul %9, %10 : f32[2,2,4,4]\n"
        "%12 = softmax %11 : f32[2,2,4,4]\n"
        "%13 = iota {axis = 0} : i32[64]\n"
        "%14 = uniform %1, %2, %13 {stream = 5, words = 4} : f32[64]\n"
        "%15 = reshape %14 : f32[2,2,4,4]\n"
        "%16 = constant {values = [0.4]} : f32[]\n"
        "%17 = lt %15, %16 : bool[2,2,4,4]\n"
        "%18 = constant {values = [0.0]} : f32[]\n"
        "%19 = constant {values = [0.6]} : f32[]\n"
        "%20 = div %12, %19 : f32[2,2,4,4]\n"
        "%21 = select %17, %18, %20 : f32[2,2,4,4]\n"
        "%22 = matmul %21, %8 : f32[2,2,4,2]\n"
        "%23 = transpose %22 {order = [0,2,1,3]} : f32[2,4,2,2]\n"
        "%24 = reshape %23 : f32[2,4,4]\n");
    double qkv[96], seed = 3, epoch = 8, *leaf[25] = {qkv, &seed, &epoch};
    for (int i = 0; i < 96; i++)
        qkv[i] = sin(i);
    ck_assert_ptr_null(graph_verify(g, a));
    double **value = graph_eval(g, a, leaf, false);
    for (int i = 0; i < 32; i++)
        ck_assert_double_eq_tol(value[3][i], value[24][i], 1e-12);
    arena_free(a);
}
END_TEST

static void see_draws(void *context, NodeId n, double *const *value) {
    for (int i = 0; i < 4096; i++)
        ck_assert_msg(isfinite(value[n][i]), "draw %d", i);
    *(bool *)context = true;
}

// An error of 8 units of f16 would move some draws above 1, where the logarithm
// is above 0 and has no root.
START_TEST(errors_keep_draws_in_their_range) {
    Arena *a = arena_new();
    Graph *g = graph_of(a, "%0 = input {name = \"seed\"} : i32[]\n"
                           "%1 = input {name = \"epoch\"} : i32[]\n"
                           "%2 = iota {axis = 0} : i32[4096]\n"
                           "%3 = uniform %0, %1, %2 {stream = 5} : f32[4096]\n"
                           "%4 = constant {values = [1.0]} : f32[]\n"
                           "%5 = sub %4, %3 : f32[4096]\n"
                           "%6 = log %5 : f32[4096]\n"
                           "%7 = neg %6 : f32[4096]\n"
                           "%8 = sqrt %7 : f32[4096]\n");
    double seed = 3, epoch = 8, *leaf[9] = {&seed, &epoch};
    bool wanted[9] = {[8] = true}, seen = false;
    ck_assert_ptr_null(graph_verify(g, a));
    noise_visit(g, leaf, F16, 8, 1, wanted, see_draws, &seen);
    ck_assert(seen);
    arena_free(a);
}
END_TEST

START_TEST(every_operation_has_a_case) {
    Arena *a = arena_new();
    bool covered[NUM_OPS] = {false};
    for (int i = 0; i < NUM_CASES; i++) {
        Graph *g = graph_of(a, cases[i].body);
        covered[g->node[g->count - 1].op] = true;
    }
    for (int op = 0; op < NUM_OPS; op++)
        ck_assert_msg(covered[op], "no case for %s", op_info[op].name);
    arena_free(a);
}
END_TEST

// An optimizer node may come before the gradient that autodiff appends.
START_TEST(optimizers_see_later_gradients) {
    Arena *a = arena_new();
    Graph *g = graph_of(a, PARAM(0, "f32[1]") CONST(1, "f32[]", "0")
                               CONST(2, "f32[]", "1") //
                        "%3 = sgd %0, %2, %1, %1 : f32[1]\n"
                        "%4 = gradient %0, %0 : f32[1]\n");
    ck_assert_double_eq(graph_eval(g, a, leaves(a, g), false)[3][0], 0);
    arena_free(a);
}
END_TEST

START_TEST(results_are_rounded_when_asked) {
    Arena *a = arena_new();
    Graph *g = graph_of(a, CONST(0, "act[1]", "0.1") //
                        "%1 = cast %0 : f16[1]\n"
                        "%2 = cast %0 : f32[1]\n");
    g->act = BF16;
    double **value = graph_eval(g, a, NULL, true);
    ck_assert_double_eq(value[0][0], 0.10009765625);
    ck_assert_double_eq(value[1][0], 0.10009765625);
    value = graph_eval(g, a, NULL, false);
    ck_assert_double_eq(value[1][0], 0.1);
    g->act = F32;
    value = graph_eval(g, a, NULL, true);
    ck_assert_double_eq(value[2][0], 0.1f);
    ck_assert_double_eq(value[1][0], 0.0999755859375);
    arena_free(a);
}
END_TEST

START_TEST(empty_tensors_are_computed) {
    Arena *a = arena_new();
    Graph *g = graph_of(a, INPUT(0, "f32[0,3]") //
                        "%1 = sum %0 {axes = [0]} : f32[3]\n"
                        "%2 = add %0, %1 : f32[0,3]\n"
                        "%3 = softmax %0 : f32[0,3]\n");
    ck_assert_ptr_null(graph_verify(g, a));
    ck_assert_double_eq(graph_eval(g, a, NULL, true)[1][2], 0);
    arena_free(a);
}
END_TEST

// Numbers, and what they are in 16 bits: halfway cases go to even, the least
// subnormal and the largest number are at their limits.
static const struct {
    DType dtype;
    double value, want;
} rounded[] = {
    // clang-format off
    {F16, 1 + 0x1p-11, 1},
    {F16, 1 + 0x3p-11, 1 + 0x1p-9},
    {F16, 1 + 0x1p-11 + 0x1p-40, 1 + 0x1p-10},
    {F16, 65504, 65504},
    {F16, 65519.999, 65504},
    {F16, 65520, INFINITY},
    {F16, -1e300, -INFINITY},
    {F16, 0x1p-24, 0x1p-24},
    {F16, 0x1p-25, 0},
    {F16, 0x1.8p-25, 0x1p-24},
    {F16, 0x3p-25, 0x1p-23},
    {F16, 0x1p-14 - 0x1p-26, 0x1p-14},
    {F16, -INFINITY, -INFINITY},
    {BF16, 1 + 0x1p-8, 1},
    {BF16, 1 + 0x3p-8, 1 + 0x1p-6},
    {BF16, 0x1p-133, 0x1p-133},
    {BF16, 0x1p-134, 0},
    {BF16, 0x1.fep127, 0x1.fep127},
    {BF16, 0x1.ffp127, INFINITY},
    {BF16, 0x1.feffffp127, 0x1.fep127},
    {F32, 16777217, 16777216},
    {F32, 16777219, 16777220},
    {F32, 0x1p-149, 0x1p-149},
    {F32, 0x1p-150, 0},
    {F32, FLT_MAX, FLT_MAX},
    {F32, 3.4028235677973366e+38, INFINITY},
    {I32, -2.9, -2},
    {I32, 1e10, 2147483647},
    {I32, -1e10, -2147483648.0},
    {U8, 256, 255},
    {U8, -1, 0},
    {BOOL, 0.1, 1},
    {BOOL, 0, 0},
    // clang-format on
};

START_TEST(rounding_is_to_nearest_even) {
    for (size_t i = 0; i < sizeof rounded / sizeof rounded[0]; i++) {
        double got = dtype_round(rounded[i].dtype, rounded[i].value);
        ck_assert_msg(got == rounded[i].want, "%s of %a is %a and not %a",
                      dtype_name(rounded[i].dtype), rounded[i].value, got,
                      rounded[i].want);
    }
    ck_assert(isnan(dtype_round(F16, NAN)));
    ck_assert(signbit(dtype_round(F16, -1e-300)));
    for (uint32_t i = 0; i < 100000; i++) {
        double v = ldexp(random_uniform(1, 0, 0, i) - 0.5,
                         (int)(random_uniform(1, 1, 0, i) * 330) - 165);
        v *= 1 + random_uniform(1, 2, 0, i) * 0x1p-20;
        ck_assert_double_eq(dtype_round(F32, v), (double)(float)v);
    }
}
END_TEST

// The first is a vector of the paper's authors; the others are from a second
// implementation that gives all three of theirs.
START_TEST(random_numbers_are_philox) {
    ck_assert_double_eq(random_uniform(0, 0, 0, 0), 0x6627e8 * 0x1p-24);
    ck_assert_double_eq(random_uniform(1, 2, 3, 4), 0x6d79a9 * 0x1p-24);
    ck_assert_double_eq(
        random_uniform(0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff),
        0x4d18d7 * 0x1p-24);
    ck_assert_double_eq(
        random_uniform(0xa4093822, 0x299f31d0, 0x85a308d3, 0x243f6a88),
        0xe69c9c * 0x1p-24);
}
END_TEST

// The words of the authors' first vector, and a first word that is given above.
START_TEST(four_numbers_share_a_block) {
    static const double words[] = {0x6627e8, 0xe169c5, 0xbc57ac, 0x9b00db};
    for (uint32_t i = 0; i < 4; i++)
        ck_assert_double_eq(random_shared(0, 0, 0, i), words[i] * 0x1p-24);
    ck_assert_double_eq(random_shared(1, 2, 3, 16), 0x6d79a9 * 0x1p-24);
    ck_assert_double_ne(random_shared(1, 2, 3, 17), 0x6d79a9 * 0x1p-24);
}
END_TEST

START_TEST(streams_are_fnv) {
    ck_assert_int_eq(stream_of(""), 0x011c9dc5);
    ck_assert_int_eq(stream_of("a"), 0x640c292c);
    ck_assert_int_eq(stream_of("foobar"), 0x3f9cf968);
}
END_TEST

Suite *eval_suite(void) {
    Suite *s = suite_create("eval");
    TCase *c = tcase_create("eval");
    tcase_add_loop_test(c, operations_mean_this, 0, NUM_CASES);
    tcase_add_test(c, dropout_of_attention_is_of_weights);
    tcase_add_test(c, errors_keep_draws_in_their_range);
    tcase_add_test(c, every_operation_has_a_case);
    tcase_add_test(c, optimizers_see_later_gradients);
    tcase_add_test(c, results_are_rounded_when_asked);
    tcase_add_test(c, empty_tensors_are_computed);
    tcase_add_test(c, rounding_is_to_nearest_even);
    tcase_add_test(c, random_numbers_are_philox);
    tcase_add_test(c, four_numbers_share_a_block);
    tcase_add_test(c, streams_are_fnv);
    suite_add_tcase(s, c);
    return s;
}
