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
