// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The convolutions of oneDNN, versions 2 and 3.
#ifndef RUNTIME_ONEDNN_H
#define RUNTIME_ONEDNN_H

#include "runtime/rt.h"

#include <dnnl.h>

typedef enum { SRC, WEIGHTS, DST, NUM_ROLES } Role;

#if DNNL_VERSION_MAJOR >= 3
typedef const_dnnl_memory_desc_t Layout;
#else
typedef const dnnl_memory_desc_t *Layout;
#endif

// Ends the program with a message unless status is success.
void rt_dnnl_check(dnnl_status_t status, const char *what);

// Lets a primitive add to its result's old value.
dnnl_status_t rt_dnnl_append_sum(dnnl_post_ops_t to);

// A tensor of a convolution in the arena's layout; free with rt_layout_free.
Layout rt_layout_plain(const RtCall *c, Role role);
void rt_layout_free(Layout layout);

// Plans a convolution with images in NHWC and weights in any layout.
dnnl_primitive_desc_t rt_conv_plan(const RtCall *c, dnnl_engine_t engine,
                                   dnnl_primitive_attr_t attr);

// The same by Winograd's method, with images in any layout, too.  NULL: slower,
// or not available for this processor.
dnnl_primitive_desc_t rt_winograd_plan(const RtCall *c, dnnl_engine_t engine,
                                       dnnl_primitive_attr_t attr);

bool rt_winograd_is_faster(const RtCall *c);

// Whether a plan is brgconv, small matrix products, usually the fastest.
bool rt_conv_is_brgemm(const_dnnl_primitive_desc_t plan);

// Whether brgconv is slow for a forward convolution: its rows are short.
bool rt_conv_is_short(const RtCall *c);

// Whether brgconv is slower than the data gradient that it would replace.
bool rt_conv_is_narrow(const RtCall *c);

#endif
