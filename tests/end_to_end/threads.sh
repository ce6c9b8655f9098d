#!/bin/sh
# The weights follow from the threads that compute, whatever OpenMP's variables
# and the cores that may be used leave of those that --threads asks for.
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"

expect 0 "$SINTER" build "$here/tiny.net" -o tiny
expect 0 "$SINTER" build "$models/mlp.net" -o mlp

# train MODEL OUT THREADS [VARIABLE=VALUE]...: a trainer that waits for members
# that its team lacks would do so for ever.
train() {
    model=$1 out=$2 threads=$3
    shift 3
    expect 0 env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT "$@" \
        timeout -k 1 100 ./"$model" --data synthetic:256 --device=host \
        --epochs 1 --threads "$threads" --out "$out" --quiet
}

for model in tiny mlp; do
    train $model one 1
    one=$(newest one)
    for limit in OMP_THREAD_LIMIT=1 OMP_MAX_ACTIVE_LEVELS=0; do
        rm -rf few default
        train $model few 2 $limit
        expect_says "warning: 1 of 2 threads computes: ${limit%=*} is ${limit#*=}"
        expect_equal "$one" "$(newest few)"
        expect 0 env $limit ./$model --data synthetic:256 --device=host \
            --init-only --out default --quiet
        ! grep -q warning err || fail "asked for none: $(cat err)"
    done

    train $model two 2
    two=$(newest two)
    for setting in OMP_DYNAMIC=true OMP_NUM_THREADS=1 OMP_NUM_THREADS=5,3 \
        OMP_NESTED=true OMP_PROC_BIND=spread OMP_THREAD_LIMIT=2; do
        rm -rf same
        train $model same 2 $setting
        ! grep -q warning err || fail "$setting: $(cat err)"
        expect_equal "$two" "$(newest same)"
    done

    train $model limited 3 OMP_THREAD_LIMIT=2
    expect_says '2 of 3 threads compute: OMP_THREAD_LIMIT is 2'
    expect_equal "$two" "$(newest limited)"
    core=$(taskset -cp $$ | sed 's/.*: \([0-9]*\).*/\1/')
    train $model bound 2 taskset -c "$core"
    expect_equal "$two" "$(newest bound)"
    rm -rf one two limited bound default
done
