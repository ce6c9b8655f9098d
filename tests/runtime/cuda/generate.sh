#!/bin/sh
# A GPU generates the host's text: its caches, in f32 and in 16 bits.
. "$SINTER_SOURCE/tests/runtime/cuda/double.sh"
. "$SINTER_SOURCE/tests/end_to_end/tiny.sh"

for precision in f32 'mixed(bf16)'; do
    expect 0 "$SINTER" build "$SINTER_SOURCE/models/gpt_nano.net" -o gpt \
        --act=recipe --set precision="$precision" --set batch=2 \
        --set 'layers=[1]' --set vocabulary=256 \
        --set 'data=synthetic(vocabulary=256, shape=[16])'
    rm -rf run
    expect 0 ./gpt --device=host --data=synthetic:64 --steps=8 --out=run --quiet
    for device in host cuda:0; do
        expect 0 ./gpt --device=$device --generate=sinter --weights=run \
            --tokens=24 --temperature=0.5 --seed=1
        cp out $device
    done
    expect_equal host cuda:0
done
