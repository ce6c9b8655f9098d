#!/bin/sh
# Ranks predict as one process does, to the byte: in all forms of inputs and
# outputs, for numbers of samples that ranks and batches do not divide.
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"
. "$SINTER_SOURCE/tests/end_to_end/tiny.sh"
. "$SINTER_SOURCE/tests/end_to_end/start_ranks.sh"

for candidate in python3 /usr/bin/python3; do
    $candidate -c 'import numpy, PIL' 2>/dev/null && python=$candidate && break
done
[ -n "${python:-}" ] || exit 77
"$python" "$here/predict.py" data

# 71 images in batches of 4, one of which cannot be decoded; the trainer is for
# one process.
cp "$here/predict.net" .
expect 0 "$SINTER" build predict.net --set batch=4 -o one
expect 0 ./one --out=run --steps=7 --quiet
echo garbage >images/a/bad.png
find images -name '*.png' | sort >list

# A map of classes for each pixel, and two outputs.
cat >map.net <<'END'
model Map(image: u8[N, 8, 8, 3]) -> f32[N, 8, 8, 5] {
  image |> normalize(mean=128, std=64) |> conv(5, 1)
}

train Map {
  data      = npy("none")
  batch     = 3
  epochs    = 1
  loss      = mean(cross_entropy(output, label))
  optimizer = sgd(lr=0.1)
}
END
cat >two.net <<'END'
model Two(image: u8[N, 8, 8, 3]) -> (class: f32[N, 5], box: f32[N, 2]) {
  h = image |> normalize(mean=128, std=64) |> flatten
  [h |> linear(5), h |> linear(2)]
}

train Two {
  data      = npy("none", targets=["box"])
  batch     = 3
  epochs    = 1
  loss      = mean(cross_entropy(output.class, label.class)) + mean(l1(output.box, label.box))
  optimizer = adamw(lr=0.01)
}
END
for model in map two; do
    expect 0 "$SINTER" build $model.net -o $model
    expect 0 ./$model --data=synthetic:12 --steps=1 --out=$model.run --quiet
done

# agree STATUS OUT PROGRAM...: rank 0 ends with STATUS, the others well, and they
# write what one process writes; for each number of ranks in counts.
agree() {
    status=$1 to=$2
    shift 2
    mkdir -p of.1
    expect "$status" "$@" --out "of.1/$to" --quiet
    cp err of.1.err
    for count in $counts; do
        mkdir -p of.$count
        ranks $count "of.$count/$to" "$@"
        # shellcheck disable=SC2046 # a word for each rank
        expect_statuses "$status" $(seq $((count - 1)) | sed 's/.*/0/')
        sed "s/of\.$count/of.1/; /ranks of one machine have/d" said.0 >got
        expect_equal of.1.err got
        cat said.[1-9] >got
        expect_equal /dev/null got
        diff -r of.1 of.$count >&2 || fail "$count ranks write other $to"
        rm -r of.$count
    done
    [ "$(find of.1 -type f | wc -l)" -gt 0 ] || fail "no $to"
    rm -r of.1
}
counts='2 3 5'
agree 3 files.jsonl ./one --predict images --weights=run --logits
agree 3 files.npy ./one --predict images --weights=run
agree 0 single.jsonl ./one --predict one.npy --weights=run
counts=3
agree 0 set.jsonl ./one --predict data --weights=run --top=2
agree 0 array.npy ./one --predict data/test_x.npy --weights="$(newest run)"
agree 3 lines.jsonl sh -c \
    'exec ./one --predict=- --weights=run "$@" <list' sh
agree 3 maps/ ./map --predict images --weights=map.run
agree 0 drawn.npy ./map --predict=synthetic:7 --weights=map.run
agree 3 outputs.npy ./two --predict images --weights=two.run
agree 3 outputs.jsonl ./two --predict images --weights=two.run --logits

# Of shards, whose number no ranks need to divide; on standard output; with
# weights of the newest run.
expect 0 "$SINTER" build predict.net --set batch=8 --set shards=4 -o shards
mkdir runs
mv run runs/run
expect 0 ./shards --predict data --weights=runs/run --quiet
mv out want
ranks 3 - ./shards --predict data --weights=runs/run
expect_statuses 0 0 0
sed '/ranks of one machine have/d' said.0 >got
expect_equal want got

# An error of rank 0 ends all with its status, and so does one of another.
ranks 3 wrong.txt ./one --predict data --weights=runs/run
expect_statuses 2 2 2
says 'a .jsonl or an .npy file'
says '^error: rank 0 predicts no more, so rank 2 ends$'
ranks 3 none.jsonl ./one --predict data --weights=rum
expect_statuses 3 3 3
ln -s /dev/full full.npy
ranks 3 full.npy ./one --predict data --weights=runs/run
[ "${statuses% * *}" = ' 74' ] || fail "a full disk: $statuses"
mkdir other
cp images/001.png other
# shellcheck disable=SC2016
ranks 3 fewer.jsonl sh -c 'cd . && exec ./one --predict \
    $([ $RANK -ne 1 ] || echo other) images --weights=runs/run "$@"' sh
expect_statuses 3 3 3
says 'rank 1 reads other inputs than rank 0'
