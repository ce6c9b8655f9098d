#!/bin/sh
# Resident images and streamed ones give the same results to the bit, however the
# double's streams run; batches of resident images are numbers.
. "$SINTER_SOURCE/tests/runtime/cuda/double.sh"
. "$SINTER_SOURCE/tests/end_to_end/tiny.sh"
export SINTER_DOUBLE_THREADS=1

expect 0 "$SINTER" build "$here/tiny.net" -o tiny

# on_gpu OPTION...: a run of two epochs with batches that are not whole.
on_gpu() {
    ./tiny --device=cuda:0 --data=synthetic:150 --epochs=2 "$@"
}

expect 0 env SINTER_DOUBLE_LOG="$work/copies" \
    ./tiny --device=cuda:0 --data=synthetic:150 --epochs=2 --resident=no \
    --out=streamed --metrics=streamed.rows
expect_says "images are streamed: --resident=no"
# A batch is 64 images of 144 bytes, 4 batches in two epochs and 6 in tests.
[ "$(grep -c 'cuMemcpyHtoD.* bytes=9216 ' copies)" -eq 10 ] ||
    fail "not each batch is copied"
sed 's/,"samples_per_second".*/}/' streamed.rows >streamed.loss

# compiled LOG: how often something was.
compiled() {
    grep -c nvrtcCompileProgram "$1"
}

# One gather kernel serves both sets of images, and compiles with the others, not
# after them.
expect 0 env XDG_CACHE_HOME=/dev/null SINTER_DOUBLE_LOG="$work/none.log" \
    ./tiny --device=cuda:0 --data=synthetic:150 --steps=1 --resident=no \
    --out=cold
rm -rf cold
expect 0 env XDG_CACHE_HOME=/dev/null SINTER_DOUBLE_LOG="$work/cold.log" \
    ./tiny --device=cuda:0 --data=synthetic:150 --steps=1 --out=cold
expect_says "images stay on cuda:0"
[ "$(compiled cold.log)" -eq $(($(compiled none.log) + 1)) ] ||
    fail "$(compiled none.log) kernels, and $(compiled cold.log) with images"
awk '/nvrtcCompileProgram/ && loads { exit 1 }
     /cuModuleLoadDataEx/ { loads = 1 }' cold.log ||
    fail "what gathers is compiled behind the others"
for seed in 0 1 2; do
    expect 0 env SINTER_DOUBLE_SEED=$seed SINTER_DOUBLE_LOG="$work/log" \
        ./tiny --device=cuda:0 --data=synthetic:150 --epochs=2 --out=kept \
        --metrics=kept.rows
    expect_says "images stay on cuda:0"
    expect_equal "$(newest streamed)" "$(newest kept)"
    sed 's/,"samples_per_second".*/}/' kept.rows >kept.loss
    expect_equal streamed.loss kept.loss
    rm -rf kept
done

grep -q 'cuMemcpyHtoD.* bytes=9216 ' log && fail "images are copied"

# Once captured, a step is a graph and a gather launch.
awk '/cuGraphInstantiate/ { graphs = gathers = 0 }
     /cuGraphLaunch/ { graphs++ }
     /cuLaunchKernel/ { gathers++ }
     END { exit !(graphs > 0 && gathers <= graphs) }' log ||
    fail "more is launched than graphs, and what gathers"

# --print-plan has the same without a GPU.
expect 0 env LD_LIBRARY_PATH= ./tiny --device=cuda --print-plan
expect_says "^images u8\[64,12,12,1\] stay on the GPU if .* 256 bytes of indices, and 9216 if"
expect 0 env LD_LIBRARY_PATH= ./tiny --device=cuda --print-plan --resident=no
expect_says "^images u8\[64,12,12,1\] are streamed: a batch is 9216 bytes"

# The odd ways of reading: evaluation alone, and going on.
expect 0 on_gpu --resident=yes --out=streamed --eval-only
expect 0 on_gpu --resident=yes --out=parts --steps=3
expect 0 on_gpu --resident=no --out=parts --resume
expect_equal "$(newest streamed)" "$(newest parts)"

# The holdout lies among the training images.
expect 0 on_gpu --resident=no --out=held --validation=50 --metrics=held.rows
expect 0 on_gpu --resident=yes --out=apart --validation=50 --metrics=apart.rows
expect_equal "$(newest held)" "$(newest apart)"
for rows in held apart; do
    sed 's/,"samples_per_second".*/}/' $rows.rows >$rows.loss
done
expect_equal held.loss apart.loss

# Images that do not fit are streamed, or refused with --resident=yes.
expect 0 env SINTER_DOUBLE_MEMORY=5500000 \
    ./tiny --device=cuda:0 --data=synthetic:40000 --steps=1 --out=large
expect_says "images are streamed: they need"
expect 5 env SINTER_DOUBLE_MEMORY=5500000 \
    ./tiny --device=cuda:0 --data=synthetic:40000 --steps=1 --resident=yes \
    --out=none
expect_says "resident=yes: they need .* MiB are free"
# Data are read while the GPU opens; an error of the GPU is reported first.
expect 3 ./tiny --device=cuda:0 --data=nowhere
expect_says "no data in nowhere"
expect 4 env SINTER_DOUBLE_FAIL=cuDevicePrimaryCtxRetain:1:46 \
    ./tiny --device=cuda:0 --data=nowhere
grep -q "no data" out && fail "$(cat out)"
# And at once: drawing these images would take half a minute.
expect 4 env SINTER_DOUBLE_FAIL=cuDevicePrimaryCtxRetain:1:46 timeout 15 \
    ./tiny --device=cuda:0 --data=synthetic:10000000
expect 2 ./tiny --device=host --data=synthetic:64 --resident=yes
expect_says "reads images in place"
expect 2 ./tiny --device=host --resident=maybe
expect_says "expected auto, yes or no"
exit 0
