// What kernels use of <math.h>, which takes longer to read than they do.
#ifndef TESTS_RANDOM_TCC_MATH_H
#define TESTS_RANDOM_TCC_MATH_H

float cosf(float), fabsf(float), floorf(float), sinf(float), sqrtf(float);
float copysignf(float, float), fmaxf(float, float), fminf(float, float),
    fmodf(float, float), powf(float, float);
float fmaf(float, float, float);
int __signbitf(float);
#define signbit __signbitf

#endif
