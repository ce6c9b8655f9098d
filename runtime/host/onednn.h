// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What oneDNN is asked for to make a convolution.  Versions 2 and 3 differ in
// how it is asked.
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

// Ends the program with a word about it where status is not success.
void rt_dnnl_check(dnnl_status_t status, const char *what);

// Lets a primitive add to what its result holds.
dnnl_status_t rt_dnnl_append_sum(dnnl_post_ops_t to);

// A tensor of a convolution in the arena's order, for rt_layout_free.
Layout rt_layout_plain(const RtCall *c, Role role);
void rt_layout_free(Layout layout);

// How oneDNN does a convolution, of images in NHWC and weights in the order
// that it likes.
dnnl_primitive_desc_t rt_conv_plan(const RtCall *c, dnnl_engine_t engine,
                                   dnnl_primitive_attr_t attr);

// The same by Winograd's method, with images too in the order that it likes.
// NULL: it would be slower, or oneDNN has none for this processor.
dnnl_primitive_desc_t rt_winograd_plan(const RtCall *c, dnnl_engine_t engine,
                                       dnnl_primitive_attr_t attr);

// Whether that is the quicker way.
bool rt_winograd_is_faster(const RtCall *c);

// Whether a plan is of small matrix products, the quickest that oneDNN has.
bool rt_conv_is_brgemm(const_dnnl_primitive_desc_t plan);

// Whether those are slow at a forward convolution, for its rows are short.
bool rt_conv_is_short(const RtCall *c);

// Whether they are slower than the gradient that they would stand for.
bool rt_conv_is_narrow(const RtCall *c);

#endif
