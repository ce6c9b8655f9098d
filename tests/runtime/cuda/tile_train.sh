# shellcheck shell=sh disable=SC2154 # work is of expect.sh
# Sourced by tests of trainers with tile kernels.

# train NAME SAMPLES OPTION...: four steps of ./tile; a graph runs the last ones.
# Their losses are in NAME, the calls of the driver in NAME.log.
train() {
    name=$1 samples=$2
    shift 2
    expect 0 env SINTER_DOUBLE_LOG="$work/$name.log" \
        ./tile --device=cuda:0 --data="synthetic:$samples" --steps=4 --log-every=1 \
        --metrics=metrics --out=run "$@"
    sed -n 's/.*"split":"step".*"loss":\([^,}]*\).*/\1/p' metrics >"$name"
    [ "$(wc -l <"$name")" -eq 4 ] || fail "no losses of $name"
    rm -rf run metrics
}

# near NAME OTHER DIGIT: losses that differ by no more than a DIGIT-th of one,
# the rounding of activations.
near() {
    paste "$1" "$2" | awk -v digit="$3" '{
        d = $1 > $2 ? $1 - $2 : $2 - $1
        if (!($1 > 0) || d > $1 / digit) exit 1
    }' || fail "losses differ: $(paste "$1" "$2")"
}
