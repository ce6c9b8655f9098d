#!/bin/sh
# The rows of a hundred thousand steps have the loss of one, to the digits that
# they show, and a run that was interrupted tells the same.
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"
. "$SINTER_SOURCE/tests/end_to_end/tiny.sh"

expect 0 "$SINTER" build "$here/flat.net" -o flat

# train NAME OPTION...: its rows, without times.
train() {
    name=$1
    shift
    expect 0 ./flat --device=host --data=synthetic:100000 --out="$name.run" \
        --metrics="$name.jsonl" --log-every=10000 --threads=1 --quiet "$@"
    sed -n '/"split":"time"/d; s/,"samples_per_second.*//p; /"step",/p' \
        "$name.jsonl" >"$name.rows"
}

# 1.44 as f32 has it, and exp of that.
train whole --loaders=1
[ "$(grep -c '"loss":1.44000006,' whole.rows)" -eq 12 ] ||
    fail "not all rows have the loss: $(cat whole.rows)"
grep -q '"split":"test".*"perplexity":4.22069606,' whole.rows ||
    fail "another perplexity: $(cat whole.rows)"

train parts --loaders=1 --steps=33333
train parts --loaders=3 --resume
expect_equal whole.rows parts.rows
expect_equal "$(newest whole.run)" "$(newest parts.run)"

# A sample of 65,536 places is summed in two stages of 256 terms: each rounds by
# 2^-24 of the sum at most for each term, and so does the sum over a batch.
sed -e 's/N, 1\]/N, 256, 256, 1]/g' -e 's/linear(image, 1)/image |> batch_norm/' \
    "$here/flat.net" >places.net
for batch in 1 16; do
    expect 0 "$SINTER" build places.net --set batch=$batch -o places
    expect 0 ./places --device=host --data=synthetic:$batch --quiet \
        --out=places.$batch --metrics=places.jsonl
    sed -n 's/.*"split":"t[a-z]*".*"loss":\([^,]*\).*/\1/p' places.jsonl |
        awk -v batch=$batch '
            { off = $1 / 1.44 - 1; if (off < 0) off = -off }
            off > (256 + 256 + batch) / 2 ^ 24 { print $0; lost = 1 }
            END { exit lost || NR < 2 }' >&2 ||
        fail "the places of a sample lose digits in a batch of $batch"
done
