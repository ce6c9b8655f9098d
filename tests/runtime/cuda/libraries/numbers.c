// The numbers of runtime/cuda/libraries/cudnn.def are those of the library's
// headers.
#include <cudnn.h>

#define DNN(name, value) _Static_assert((int)CUDNN_##name == (value), #name);
#include "runtime/cuda/libraries/cudnn.def"
