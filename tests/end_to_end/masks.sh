#!/bin/sh
# A U-Net learns masks while flips and crops move them, without the pixels at
# borders: 99 % of the others are right in images that it has not seen.
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"

python=
for candidate in /usr/bin/python3 python3; do
    $candidate -c 'import numpy' 2>/dev/null && python=$candidate && break
done
[ -n "$python" ] || exit 77
expect 0 "$python" "$SINTER_SOURCE/tests/pytorch/scenes.py" \
    scenes borders 2000 400 32 32
expect 0 "$SINTER" build "$models/unet_seg.net" --set size=32 --set width=8 \
    --set classes=4 --set epochs=4 -o trainer
expect 0 ./trainer --device=host --threads=1 --data=scenes --quiet \
    --metrics=rows
grep '"split":"test"' rows | tail -n 1 |
    sed 's/.*"accuracy":\([^,}]*\).*/\1/' >accuracy
awk '{ exit !($1 >= 0.99) }' accuracy ||
    fail "the share of pixels that are right is $(cat accuracy)"
grep '"split":"test"' rows | tail -n 1 |
    sed 's/.*"iou":\([^,}]*\).*/\1/' >iou
awk '{ exit !($1 >= 0.95) }' iou || fail "the mean IoU is $(cat iou)"

# A loss that is infinite for a target of 0 trains where no target is 0: places
# from outside the image have one of the edge.
expect 0 "$python" "$SINTER_SOURCE/tests/pytorch/scenes.py" clean clean 64 16
expect 0 "$SINTER" build "$here/restore.net" -o trainer \
    --set 'loss=mean(abs(output - label) / label)' \
    --set 'input=data.train |> random_crop(24, pad=8)' --set optimizer.lr=1e-3
expect 0 ./trainer --device=host --threads=1 --data=clean --quiet --epochs=2
