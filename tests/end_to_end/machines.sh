#!/bin/sh
# Ranks on several machines, whose network delays each packet by 2 ms: the
# weights of one process, to the bit.
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"
. "$SINTER_SOURCE/tests/end_to_end/tiny.sh"
. "$SINTER_SOURCE/tests/end_to_end/namespaces.sh"
command -v mpirun.openmpi >/dev/null || exit 77
machines_open 2 2

idx_data data 150
recipe='--set shards=8 --set lr=0.05 --set epochs=2 --set batch=64'
# shellcheck disable=SC2086
expect 0 "$SINTER" build "$here/tiny.net" $recipe -o tiny
expect 0 ./tiny --data data --out one --quiet

expect 0 mpirun_on 10.77.0.1:1,10.77.0.2:1 ./tiny --data data --out two --quiet
expect_equal "$(newest one)" "$(newest two)"
expect 0 mpirun_on 10.77.0.1:2,10.77.0.2:2 ./tiny --data data --out four \
    --quiet
expect_equal "$(newest one)" "$(newest four)"

# Two ranks of a machine add before they send: a sum of gradients in a step, and
# its share of the result, where each rank for itself would send two.
cat >wide.net <<'NET'
model Wide(image: u8[N, 12, 12, 1]) -> f32[N, 10] {
  image |> normalize(mean=[128], std=[64]) |> flatten |> linear(4000) |> relu
    |> linear(10)
}

train Wide {
  data      = idx("data")
  batch     = 16
  shards    = 4
  epochs    = 1
  loss      = mean(cross_entropy(output, label))
  optimizer = sgd(lr=0.01)
}
NET
gradients=$((4 * (144 * 4000 + 4000 + 4000 * 10 + 10)))
sent() {
    ip netns exec "$prefix-1" awk '!/lo:/ && /:/ { sum += $10 }
        END { print sum }' /proc/net/dev
}
expect 0 "$SINTER" build wide.net -o wide
expect 0 ./wide --data data --out wide1 --steps=5 --quiet
for steps in 1 5; do
    before=$(sent)
    expect 0 mpirun_on 10.77.0.1:2,10.77.0.2:2 ./wide --data data \
        --out wide4.$steps --steps=$steps --quiet
    eval "sent$steps=$(($(sent) - before))"
done
expect_equal "$(newest wide1)" "$(newest wide4.5)"
# shellcheck disable=SC2154
share=$((100 * (sent5 - sent1) / 4 / gradients))
echo "a machine sends $share % of the gradients in a step"
[ $share -ge 90 ] && [ $share -le 130 ] || fail 'not one sum of each machine'

# refused SENTENCE OPTION...: ranks that torchrun starts, on two machines.
refused() {
    sentence=$1
    shift
    list=
    for rank in 0 1; do
        on 10.77.0.$((rank + 1)) env RANK=$rank WORLD_SIZE=2 \
            MASTER_ADDR=10.77.0.1 MASTER_PORT=20002 ./tiny --data data \
            --out refused "$@" >said.$rank 2>&1 &
        list="$list $!"
    done
    for process in $list; do
        wait "$process"
        [ $? -eq 2 ] || fail "$(cat said.*)"
    done
    for rank in 0 1; do
        grep -q -e "$sentence" said.$rank || fail "$(cat said.$rank)"
    done
}
refused 'MPI .* does not know those that torchrun starts: start them with mpirun'
refused '--collectives=shared is for ranks of one machine' --collectives=shared

machines_close
[ "$packets" -gt 100 ] || fail "$packets packets between machines"
