#!/bin/sh
# Stages, updates of several batches and averages, as the checkpoints of every
# step show them.
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"
. "$SINTER_SOURCE/tests/end_to_end/tiny.sh"

# file DIR STEP: the checkpoint of a step.
file() {
    printf '%s/step-%08d.safetensors' "$1" "$2"
}

numbers() {
    tensor "$1" "$2" | od -An -v -w4 -tf4
}

# near FILE FILE: columns of numbers that agree within 1e-5 of their size.
near() {
    paste "$1" "$2" | awk '
        { d = $1 - $2; error += d * d; size += $2 * $2 }
        END { exit !(NR > 0 && size > 0 && error <= 1e-10 * size) }' ||
        fail "$1 and $2 differ: $3"
}

# goes_on PROGRAM DIR STEP LAST: from the checkpoint of a step on alone, the
# run ends with the same bits.
goes_on() {
    rm -rf part && mkdir part && cp "$(file "$2" "$3")" part
    expect 0 "./$1" --data data --out part --quiet --resume
    expect_equal "$(file "$2" "$4")" "$(file part "$4")"
}

# build NAME [SETTING...]
build() {
    name=$1
    shift
    for setting; do
        set -- "$@" --set "$setting"
        shift
    done
    expect 0 "$SINTER" build "$name.net" "$@" -o "$name"
}

# with NAME LINE...: the model with more in its train block.
with() {
    name=$1
    shift
    {
        sed '$d' "$here/steps.net"
        printf '  %s\n' "$@"
        echo '}'
    } >"$name.net"
}

idx_data data 192

# ---- a freeze on the way ----

with freeze 'freeze "first.*" after 6 step'
build freeze
expect 0 ./freeze --data data --out freeze-run --metrics rows
expect_says 'top-5'
grep -q '"perplexity"' rows || fail "no perplexity"
for part in weight bias; do
    tensor "$(file freeze-run 5)" "first.$part" >before
    tensor "$(file freeze-run 6)" "first.$part" >middle
    tensor "$(file freeze-run 10)" "first.$part" >after
    cmp -s before middle && fail "first.$part did not train"
    expect_equal middle after
done
tensor "$(file freeze-run 6)" second.weight >middle
tensor "$(file freeze-run 10)" second.weight >after
cmp -s middle after && fail "second.weight did not train"
for step in 5 6 7; do
    goes_on freeze freeze-run $step 10
done

# ---- two batches are as good as one of twice the size ----

build freeze batch=64
mv freeze once
with twice 'accumulate = 2' 'freeze "first.*" after 6 step'
build twice
expect 0 ./once --data data --out once-run --quiet
expect 0 ./twice --data data --out twice-run --quiet
for name in first.weight second.weight linear_1.weight \
    linear_1.bias.momentum; do
    numbers "$(file once-run 10)" $name >once-numbers
    numbers "$(file twice-run 10)" $name >twice-numbers
    near twice-numbers once-numbers $name
done
strings "$(file twice-run 10)" | grep -q 'first.weight.gradient' &&
    fail "gradients that wait are saved"
for step in 2 3 6; do
    goes_on twice twice-run $step 10
done

# A short batch counts by its samples: 36 and 12 are 48.
for settings in 'batch=72 accumulate=1' 'batch=36 accumulate=2'; do
    name=short-${settings##*=}
    sed 's/, drop_last//' "$here/steps.net" >"$name.net"
    # shellcheck disable=SC2086 # two settings
    build "$name" $settings
    expect 0 "./$name" --data data --out "$name-run" --quiet
    numbers "$(file "$name-run" 3)" second.weight >"$name-numbers"
done
near short-2-numbers short-1-numbers second.weight

# ---- averages ----

# recompute DIR FIRST LAST DECAY NAME: the expected averages.
recompute() {
    numbers "$(file "$1" "$2")" "$5.average" >mean
    step=$2
    while [ "$step" -lt "$3" ]; do
        step=$((step + 1))
        numbers "$(file "$1" $step)" "$5" >weight
        paste mean weight | awk -v d="$4" '{ print d * $1 + (1 - d) * $2 }' \
            CONVFMT=%.9g OFMT=%.9g >next
        mv next mean
        numbers "$(file "$1" $step)" "$5.average" >found
        near found mean "$5 after step $step"
    done
}

with ema 'average = ema(decay=0.8, start=3 step)'
build ema
expect 0 ./ema --data data --out ema-run --quiet
tensor "$(file ema-run 3)" second.weight >weight
tensor "$(file ema-run 3)" second.weight.average >average
expect_equal weight average
recompute ema-run 3 10 0.8 second.weight
for step in 2 3 5; do
    goes_on ema ema-run $step 10
done

# Evaluated are the averages: their loss is not that of the weights.
with raw 'average = ema(decay=0.8, start=3 step)'
sed -i 's/perplexity\] }/perplexity]; weights = raw }/' raw.net
build raw
expect 0 ./ema --data data --out ema-run --eval-only --metrics averaged
expect 0 ./raw --data data --out raw-run --quiet
expect 0 ./raw --data data --out raw-run --eval-only --metrics raw-rows
tensor "$(file ema-run 10)" second.weight.average >averaged-weight
tensor "$(file raw-run 10)" second.weight.average >raw-weight
expect_equal averaged-weight raw-weight
sed 's/.*"loss":\([^,]*\),.*/\1/' averaged >averaged-loss
sed 's/.*"loss":\([^,]*\),.*/\1/' raw-rows >raw-loss
cmp -s averaged-loss raw-loss && fail "averages are not evaluated"

# The weights become the averages, every two steps and at the end.  In mixed
# precision copies of them must follow, or a run that goes on differs.
with ahead 'average = lookahead(decay=0.7, every=2 step)' \
    'precision = mixed(f16)' \
    'params "linear_1.*" { lr = 2 * lr }'
build ahead steps=9
expect 0 ./ahead --data data --out ahead-run --quiet
for step in 2 8 9; do
    tensor "$(file ahead-run $step)" second.weight >weight
    tensor "$(file ahead-run $step)" second.weight.average >average
    expect_equal weight average
done
tensor "$(file ahead-run 8)" second.weight >before
expect_equal before average
tensor "$(file ahead-run 7)" second.weight >weight
tensor "$(file ahead-run 7)" second.weight.average >average
cmp -s weight average && fail "the weights did not go on"
for step in 7 8; do
    goes_on ahead ahead-run $step 9
done

# A parameter that is frozen between two averages keeps its value at the next.
with kept 'average = lookahead(decay=0.7, every=4 step)' \
    'freeze "second.*" after 6 step'
build kept
expect 0 ./kept --data data --out kept-run --quiet
tensor "$(file kept-run 5)" second.weight >before
tensor "$(file kept-run 6)" second.weight >frozen
cmp -s before frozen && fail "second.weight did not train"
for step in 7 8 10; do
    tensor "$(file kept-run $step)" second.weight >weight
    expect_equal frozen weight
done
tensor "$(file kept-run 8)" second.weight.average >average
expect_equal frozen average
tensor "$(file kept-run 7)" first.weight >before
tensor "$(file kept-run 8)" first.weight.average >average
cmp -s before average && fail "first.weight is not averaged"
goes_on kept kept-run 7 10

# Averages of every step are part of the step, which has the same bits as with
# averages after it: those of every tenth of ten steps.
for every in '1 step' '10%'; do
    name=every-${every%[ %]*}
    with "$name" "average = lookahead(decay=0.7, every=$every, start=2 step)" \
        'precision = mixed(f16)'
    build "$name"
    expect 0 "./$name" --data data --out "$name-run" --quiet
    goes_on "$name" "$name-run" 4 10
done
for step in 2 3 7 10; do
    for name in second.weight second.weight.average second.weight.momentum; do
        tensor "$(file every-1-run $step)" $name >inside
        tensor "$(file every-10-run $step)" $name >after
        expect_equal inside after
    done
done
