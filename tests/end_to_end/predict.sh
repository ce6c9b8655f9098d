#!/bin/sh
# --predict gives the numbers of an evaluation: for a data set, arrays, image
# files, folders of them and lines; for weights of a checkpoint, with averages,
# of its run, and of a build with another batch.
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"
. "$SINTER_SOURCE/tests/end_to_end/tiny.sh"

for candidate in python3 /usr/bin/python3; do
    $candidate -c 'import numpy, PIL' 2>/dev/null && python=$candidate && break
done
[ -n "${python:-}" ] || exit 77
"$python" "$here/predict.py" data

# says TEXT...: lines of a Python program about the predictions.
says() {
    "$python" "$here/predict.py" "$@" || fail "predict.py $*"
}

cp "$here/predict.net" .
for average in 'average=ema(0.9)' 'average=lookahead(0.9, every=2 step)' ''; do
    rm -rf run
    expect 0 "$SINTER" build predict.net ${average:+--set "$average"} -o trainer
    expect 0 ./trainer --out=run --steps=7 --quiet
    expect 0 ./trainer --out=run --eval-only --metrics=rows
    for output in all.jsonl all.npy; do
        expect 0 ./trainer --predict data --weights=run --logits -o $output
    done
    says evaluation rows all.jsonl all.npy
done

# The same samples in other forms.
expect 0 ./trainer --predict data/test_x.npy --weights=run --logits
cp out array.jsonl
says same all.jsonl array.jsonl
expect 0 ./trainer --predict images --weights="$(newest run)" --logits
cp out files.jsonl
says same all.jsonl files.jsonl
find images -name '*.png' | sort >list
# shellcheck disable=SC2046 # names without spaces
expect 0 ./trainer --predict $(cat list) --weights=run --logits -o files.jsonl
says same all.jsonl files.jsonl
# shellcheck disable=SC2046 # names without spaces
expect 0 "$SINTER" train predict.net --quiet --weights=run --logits \
    --predict $(cat list) -o files.jsonl
says same all.jsonl files.jsonl
expect 2 "$SINTER" train predict.net more.net
expect_says "unexpected 'more.net'"
expect 2 "$SINTER" train predict.net -x
expect_says "no option '-x'"
expect 0 ./trainer --predict=- --weights=run --logits <list
says same all.jsonl out
says waits ./trainer run list

# Without --weights it is the newest run; a build with another batch takes the
# weights alone.
expect 0 ./trainer --steps=7 --quiet
expect 0 ./trainer --predict one.npy --logits
grep -q '^weights of runs/Small/001/step-00000007.safetensors, step 7 of 16, ep' \
    err || fail "the weights are not named: $(cat err)"
cp out first
expect 0 "$SINTER" build predict.net --set batch=1 -o single
expect 0 ./single --predict one.npy --logits
grep -q '^weights of runs/.*: . of . tensors of Small$' err ||
    fail "the weights are not named: $(cat err)"
says close first out
expect 0 ./trainer --predict one.npy --top=3
says top out

# A file that cannot be decoded has an error; the others have their rows.
echo garbage >images/a/bad.png
expect 3 ./trainer --predict images --weights=run -o files.jsonl
expect_says "1 of 71 inputs could not be read"
says bad files.jsonl
expect 3 ./trainer --predict images --weights=run -o files.npy
says bad_array files.npy

good=$(find images -name '*.png' ! -name bad.png | sort | head -n 1)
expect 3 ./trainer --predict "$good" missing.png --weights=run
expect_says "^{\"input\":\"$good\",\"class\"\|^{\"input\":\"$good\",\"number\""
expect_says '^{"input":"missing.png","error":"cannot open missing.png'
expect_says "1 of 2 inputs could not be read"

# Errors.
expect 3 ./trainer --predict nothing --weights=run
expect_says "cannot open nothing"
expect 3 ./trainer --predict images --weights=rum
expect_says "cannot open rum"
expect 3 ./trainer --predict all.npy --weights=run
expect_says "has samples of 3, but the trainer takes 8x8x3"
mkdir empty
expect 3 ./trainer --predict empty --weights=run
expect 3 ./trainer --predict images --weights=empty
expect_says "empty has no checkpoint"
expect 2 ./trainer --weights=run
expect_says "needs --predict PATH"
expect 2 ./trainer --predict images --weights=run -o files.txt
expect_says "a .jsonl or an .npy file"
expect 2 ./trainer --predict=- --weights=run -o lines.npy <list
ln -s /dev/full full.jsonl
expect 74 ./trainer --predict images --weights=run -o full.jsonl
