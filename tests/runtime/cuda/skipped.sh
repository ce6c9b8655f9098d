#!/bin/sh
# Steps that overflow are counted on a GPU as on the host, fused and not, and
# where a run stops within an epoch and goes on; and end it there as here.
. "$SINTER_SOURCE/tests/runtime/cuda/double.sh"
. "$SINTER_SOURCE/tests/end_to_end/tiny.sh"

# build NAME OPTION...: a trainer whose gradients are large.
build() {
    name=$1
    shift
    expect 0 "$SINTER" build "$here/micro.net" --set precision=f16 \
        --act=recipe --set epochs=4 --set "optimizer=sgd(lr=1e-6)" \
        --set "loss=mean(3000 * cross_entropy(output, label))" "$@" -o "$name"
}

# train TRAINER DEVICE NAME OPTION...: writes the rows of a run without the
# columns of time.
train() {
    trainer=$1 device=$2 name=$3
    shift 3
    expect 0 "./$trainer" --device="$device" --data=synthetic:64 \
        --out="$name.run" --metrics="$name.rows" "$@"
    sed -n 's/.*split":"\([a-z]*\).*\("step":[0-9]*\).*\("loss_scale.*skipped":[0-9]*\).*/\1 \2 \3/p' \
        "$name.rows" >"$name.skipped"
}

build fused
build apart -O0
train fused host host --log-every=1
for skipped in 4 2 0; do
    grep -q "^train .*\"skipped\":$skipped\$" host.skipped ||
        fail "no epoch has $skipped skipped steps"
done
[ "$(wc -l <host.skipped)" -eq 20 ] || fail "not all steps are told"

train fused cuda:0 cuda --log-every=1
expect_says "on cuda:0"
expect_says "^warning: every step of this epoch was skipped .* is 4096 and is halved by each"
expect_equal host.skipped cuda.skipped
for device in host cuda:0; do
    train apart $device apart --log-every=1
    expect_equal host.skipped apart.skipped
    rm -rf apart.run
done

# In the third epoch two steps are skipped, one before the run stops.
train fused cuda:0 parts --steps=10 --log-every=1
train fused cuda:0 parts --resume --log-every=1
expect_equal host.skipped parts.skipped
expect_equal "$(newest cuda.run)" "$(newest parts.run)"

# A gradient that is no number at any scale ends the run when it is 1.
sed 's/relu as hidden/scale(0) |> sqrt/' "$here/micro.net" >root.net
expect 0 "$SINTER" build root.net --set precision=f16 --act=recipe -o root
for device in host cuda:0; do
    expect 6 ./root --device=$device --data=synthetic:64 --out=root.$device
    expect_says "replay of step 17, operation by operation: .* of sqrt_1, backward, root.net:3 is the first"
    expect_says "at the smallest loss scale, 1, after step 20"
done
exit 0
