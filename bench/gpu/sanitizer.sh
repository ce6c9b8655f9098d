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
failed=0
for tool in $tools; do
    for model in $models; do
        rm -rf run
        "$SANITIZER" --tool "$tool" --error-exitcode 9 "./$model" \
            --device="$DEVICE" --data=synthetic:16 --steps=3 --out=run --quiet \
            >said 2>&1
        status=$?
        said="no errors"
        [ $status -eq 0 ] || {
            said="exit status $status" failed=1
            tail -n 40 said
        }
        row "$model under $tool" "$said" "" "$(grep -m 1 'ERROR SUMMARY' said)"
    done
done
exit $failed
