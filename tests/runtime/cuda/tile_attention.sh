#!/bin/sh
# Attention as tile kernels: the estimate finds them faster for an H200, and the
# trainer launches all that a kernel has, or the kernel.
set -u
. "$SINTER_SOURCE/tests/runtime/cuda/double.sh"
. "$SINTER_SOURCE/tests/runtime/cuda/tile_train.sh"

command -v "${CXX-c++}" >/dev/null || exit 77
small_cache h200 >h200.json
export SINTER_DOUBLE_DEVICE="$work/h200.json"

# By default, with all contractions as library calls but one.
expect 0 env LD_LIBRARY_PATH="$SINTER_DOUBLE/tile/lib:$SINTER_DOUBLE" \
    "$SINTER" build "$SINTER_SOURCE/models/gpt_nano.net" --set layers=[1] \
    --set 'data=synthetic(vocabulary=65, shape=[60])' --set batch=2 \
    --target=cuda:sm_90 -o tile

SINTER_DOUBLE_SEED=1 train tiles 8
SINTER_DOUBLE_SEED=5 train again 8
train kernels 8 --without=tile-kernels
expect_equal tiles again
near tiles kernels 256
# A kernel is not launched beside its tile kernels: one forward, and two of the
# gradients.
grep -o "cuLaunchKernel t[0-9]*_attention[a-z_]*" tiles.log | sort -u |
    sed 's/.* t//' >launched
[ "$(wc -l <launched)" -ge 3 ] || fail "attention: $(cat launched)"
grep -q "_keys" launched || fail "no kernel of the gradients of keys"
while read -r name; do
    grep -q "cuLaunchKernel[A-Za-z]* k$name " tiles.log &&
        fail "k$name is launched, too"
    grep -q "cuLaunchKernel t$name " kernels.log &&
        fail "--without=tile-kernels launches t$name"
done <launched

# One of the two gradients that the driver refuses: the kernel has both.
for number in 3 4 5 6 7; do
    rm -f refused.log
    SINTER_DOUBLE_FAIL=cuModuleLoadDataEx:$number:200 train refused 8
    grep -q "kernel t[0-9]*_attention_grad_keys.*another kernel does its work" out err &&
        break
done
expect_says "kernel t[0-9]*_attention_grad_keys.*another kernel does its work"
grep -q "cuLaunchKernel t[0-9]*_attention_grad" refused.log &&
    fail "one of two kernels of the gradients is launched"
near refused kernels 256
exit 0
