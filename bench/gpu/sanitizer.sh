#!/bin/sh
# Two models under compute-sanitizer: a convolutional one with all it has, and
# one of attention.
set -u
. "$ROOT/bench/gpu/rows.sh"
. "$ROOT/bench/gpu/trainer.sh"
[ -n "$SANITIZER" ] || not_here "there is no compute-sanitizer"
if [ -n "$SMALL" ]; then
    build lenet lenet || exit
    tools=memcheck models=lenet
else
    "$SINTER" build "$ROOT/models/resnet9.net" --set width=8 --set batch=4 \
        -o resnet9 || exit
    "$SINTER" build "$ROOT/models/gpt_nano.net" --set batch=2 \
        --set 'layers=[1]' \
        --set 'data=synthetic(vocabulary=65, shape=[8])' -o gpt_nano || exit
    tools='memcheck racecheck synccheck initcheck' models='resnet9 gpt_nano'
fi
# checked TOOL MODEL: a row of what the tool says of three steps.
checked() {
    said="no errors"
    "$SANITIZER" --tool "$1" --error-exitcode 9 "./$2" \
        --device="$DEVICE" --data=synthetic:16 --steps=3 --out="$1.$2.run" \
        --quiet >"$1.$2" 2>&1 || {
        said="exit status $?"
        : >failed
        tail -n 40 "$1.$2"
    }
    row "$2 under $1" "$said" "" "$(grep -m 1 'ERROR SUMMARY' "$1.$2")"
}

# All of them at a time: they wait for the tool more than for the GPU.
for tool in $tools; do
    for model in $models; do
        checked "$tool" "$model" &
    done
done
wait
[ ! -e failed ]
