#!/bin/sh
# A trainer that makes values again instead of keeping them takes less memory
# and comes to the same bits.
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"
. "$SINTER_SOURCE/tests/end_to_end/tiny.sh"

number() {
    grep -o "\"$1\": [0-9]*" out | head -n 1 | sed 's/.* //'
}

# compare NAME SHARE SAMPLES SETTING...: with a limit of so many percent of the
# arena, and where the recipe asks for it.
compare() {
    name=$1
    share=$2
    samples=$3
    shift 3
    expect 0 "$SINTER" check --json "$models/$name.net" "$@"
    arena=$(number arena_bytes)
    launches=$(number launches_without_joins)
    limit=$((arena * share / 100))
    expect 0 "$SINTER" check --json "$models/$name.net" "$@" --memory=$limit
    [ "$(number arena_bytes)" -le $limit ] || fail "$name: above its limit"
    [ "$(number launches_without_joins)" -gt "$launches" ] || fail "$name: nothing is remade"
    for kind in kept $kinds; do
        case $kind in
        kept) option=--memory=$arena ;;
        limited) option=--memory=$limit ;;
        auto) option=--set=recompute=auto ;;
        esac
        expect 0 "$SINTER" build "$models/$name.net" "$@" "$option" -o $kind
        expect 0 ./$kind --data "synthetic:$samples" --quiet --threads 1 --log-every=1 \
            --metrics=$kind.rows --out=$kind.run
        grep '"split":"step"' $kind.rows |
            sed 's/.*\("loss":[^,]*\),.*/\1/' >$kind.losses
    done
    [ "$(wc -l <kept.losses)" -ge 4 ] || fail "$name: too few steps"
    for kind in $kinds; do
        expect_equal kept.losses $kind.losses
        expect_equal "$(newest kept.run)" "$(newest $kind.run)"
    done
    rm -rf ./*.run
}

kinds=limited
compare lenet 98 256 --set=batch=64 --set=epochs=1
compare gpt_nano 60 16 --set=batch=4 --set=steps=4
kinds='limited auto'
compare resnet9 80 64 --set=width=8 --set=batch=16 --set=epochs=1
