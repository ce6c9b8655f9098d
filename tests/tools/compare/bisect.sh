#!/bin/sh
# shellcheck disable=SC2154 # here is of expect.sh
# sinter bisect: finds the rewrite that brings a mistake in, and leaves the kernel
# that has it; sinter bench and compare --ablate measure.
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"
. "$SINTER_SOURCE/tests/end_to_end/tiny.sh"
. "$SINTER_SOURCE/tests/tools/compare/faulty.sh"
micro=$here/micro.net

# A relu that leaves 1 in place of 0, but not where it is a kernel of its own,
# whose values are of several lanes.
relu='s/= \(v[0-9]*\) < 0 ? 0 : \1;/= \1 < 0 ? 1 : \1;/'
FAULT=$relu expect 7 "$SINTER" bisect "$micro" --out=found
expect_says "is the first that breaks the result"
expect_says "of hidden.*micro.net:3"
include=${SINTER_INCLUDE:?}
kernel() {
    expect 0 "$COMPILER" -O1 -march=native -fopenmp-simd -ffp-contract=off \
        -I "$include" -o kernel "$1" -lm
}
# The text is right, since it was the compiler that was not.
kernel found/kernel.c
expect 0 ./kernel found/kernel.bin
sed "$relu" found/kernel.c >wrong.c
cmp -s wrong.c found/kernel.c && fail "the kernel that was found has no relu"
kernel wrong.c
expect 1 ./kernel found/kernel.bin
expect_says "should be 0"

# The same file is a program for a GPU.  Where there is none it says so.
nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
if [ -x "$nvcc" ]; then
    expect 0 "$nvcc" -x cu -fmad=false -Wno-deprecated-gpu-targets \
        -I "$include" -o on_gpu found/kernel.c
    if [ -e /dev/nvidiactl ]; then
        expect 0 ./on_gpu found/kernel.bin
    else
        expect 2 ./on_gpu found/kernel.bin
        expect_says "CUDA driver"
    fi
fi

expect 0 "$SINTER" bisect "$micro" -a "--rewrite-limit=0"
expect_says "the result is right with all rewrites"

expect 0 "$SINTER" compare --ablate "$here/tiny.net" --steps=3 --set batch=16
expect_says "^without bit_packing .*%"
expect_says "^unfused .*%"
# launches NAME: those of a variant.
launches() {
    sed -n "s/^$1 *\([0-9]*\) .*/\1/p" out
}
all=$(launches everything)
[ "$(launches "no loading")" -eq "$all" ] || fail "loading is no launch"
[ "$(launches "no augmentation")" -eq $((all - 1)) ] ||
    fail "augmentation is one launch"
[ "$(launches "no norms, activations")" -eq $((all - 6)) ] ||
    fail "two norms before pools and their gradients are six launches"
expect_says "^no updates .*[0-9]  *-[0-9.]*%"

# A batch that is given again and again has one loss, where nothing is learnt.
expect 0 "$SINTER" build "$micro" --set "optimizer=sgd(lr=0)" -o still
for repeat in "" --repeat-batch; do
    # shellcheck disable=SC2086 # none or one
    rm -rf still.run
    expect 0 ./still --data=synthetic:128 --epochs=1 --log-every=1 \
        --metrics=rows --out=still.run $repeat
    losses=$(sed -n 's/.*"split":"step".*"loss":\([^,}]*\).*/\1/p' rows |
        sort -u | wc -l)
    [ "$losses" -eq $([ -z "$repeat" ] && echo 8 || echo 1) ] ||
        fail "$losses losses of eight steps $repeat"
done
expect 2 "$SINTER" bench "$micro" --batch=0
expect_says "^sinter: --batch needs a number from 1, or up to 32 different ones as 64,128, not '0'"
for batch in 8, ,8 8,0 8,x 8,16x 8,4,8 "$(seq -s, 33)"; do
    expect 2 "$SINTER" bench "$micro" --batch="$batch"
done
expect 2 "$SINTER" compare --ablate -b -O0 "$micro"
expect_says "it takes no -b"
# A step has the samples of all its batches.
expect 0 "$SINTER" bench "$micro" --steps=9 --runs=1 --set accumulate=4
expect_says ", from 1 run of 9 steps$"
awk '/^a step takes/ { n = $4 * $6 / 1000 } END { exit !(n > 60 && n < 68) }' out ||
    fail "64 samples: $(cat out)"
# A run ends with its recipe: two of these thirty steps are before it, and two
# do not count.
expect 0 "$SINTER" bench "$micro" --steps=40 --runs=1 --set steps=30
expect_says ", from 1 run of 26 steps$"
expect 2 "$SINTER" bench "$micro" --runs=1 --set steps=4
expect_says "the run ends before a step can be measured"
expect 2 "$SINTER" bench "$micro" --runs=0
expect 0 "$SINTER" bench "$micro" --steps=6 --runs=2 --json
# Of several batches each has a row, and so have those that are too large.
expect 0 "$SINTER" bench "$micro" --batch=8,16,4096,3000000000 --steps=4 --runs=3 \
    --memory=64KiB
expect_says ": 3 runs of 4 steps of each batch, in turns; "
expect_says "^ *8  *[0-9.]*  *[0-9.]* \.\. [0-9.]*  *[0-9]*  *[0-9.e-]*  *[0-9.]*$"
expect_says "^ *4096  does not fit$"
expect_says "^ *3000000000  does not compile$"
expect_says "^error\[E0405\]: .batch. must be a whole number from 1 to 2147483647$"
# Of some microseconds three digits behind the point tell little.
awk '$1 == 16 { off = 16000 / $6 - $2; near = 0.0005 + 0.5 / ($6 - 0.5) * $2 }
    END { exit !(near && off < near && off > -near) }' out ||
    fail "16 samples: $(cat out)"
expect 0 "$SINTER" bench "$micro" --batch=16,8,4 --steps=4 --runs=2 --json --memory=8KiB
python3 - out <<'END' || fail "a list of batches: $(cat out)"
import json, sys
found = json.load(open(sys.argv[1]))
large, *small = found["batches"]
assert found["schema"] == 1 and found["runs"] == 2, found
assert [large["batch"]] + [b["batch"] for b in small] == [16, 8, 4]
assert large["failed"] == "does not fit" and "run_ms" not in large
for b in small:
    assert b["failed"] is None and len(b["run_ms"]) == 2, b
    assert len(b["step_ms"]) == 8 and b["arena_bytes"] > 0, b
END
expect 5 "$SINTER" bench "$micro" --batch=16,32 --memory=1KiB
