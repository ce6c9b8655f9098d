// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// cuDNN packs: plans at addresses.

#include "runtime/cuda/libraries/cudnn.h"

void *rt_cudnn_variant_pack(const RtCudnnPlan *p,
                            const uint64_t address[RT_NUM_ROLES],
                            uint64_t workspace, RtError *e) {
    RtDescriptors d = {.c = p->own.c, .error = e};
    int64_t id[RT_NUM_ROLES];
    uint64_t at[RT_NUM_ROLES];
    for (int i = 0; i < p->graph.num_roles; i++) {
        id[i] = p->graph.role[i];
        at[i] = address[p->graph.role[i]];
    }
    void *pack = rt_descriptor(&d, DNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    rt_descriptor_set(&d, pack, DNN_ATTR_VARIANT_PACK_UNIQUE_IDS,
                      DNN_TYPE_INT64, p->graph.num_roles, id);
    rt_descriptor_set(&d, pack, DNN_ATTR_VARIANT_PACK_DATA_POINTERS,
                      DNN_TYPE_VOID_PTR, p->graph.num_roles, at);
    rt_descriptor_set(&d, pack, DNN_ATTR_VARIANT_PACK_WORKSPACE,
                      DNN_TYPE_VOID_PTR, 1, &workspace);
    rt_descriptor_finalize(&d, pack, "the addresses of a convolution");
    if (!d.failed)
        return pack;
    rt_descriptors_free(&d);
    return NULL;
}

bool rt_cudnn_execute(const RtCudnnPlan *p, void *pack, RtError *e) {
    char why[512] = "";
    const RtCudnn *c = p->own.c;
    if (c->execute(c->handle, p->plan, pack) == 0)
        return true;
    c->last_error(why, sizeof why);
    return rt_fail(e, EXIT_DEVICE, "cuDNN cannot run a plan: %.200s", why);
}
