#!/bin/sh
# A small run on real images, where they are: it must learn something.
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"

unpack=$SINTER_SOURCE/../shared/data/unpack-cifar10
[ -x "$unpack" ] || exit 77
python=
for candidate in /usr/bin/python3 python3; do
    $candidate -c 'import PIL' 2>/dev/null && python=$candidate && break
done
[ -n "$python" ] || exit 77
expect 0 "$python" "$unpack" cifar --train 2000 --test 500

expect 0 "$SINTER" build "$models/resnet9.net" --set width=8 \
    --set batch=128 --set epochs=8 -o resnet9
expect 0 ./resnet9 --data cifar --out run --metrics=rows.jsonl
accuracy=$(grep '"split":"test"' rows.jsonl | tail -n 1 |
    sed 's/.*"accuracy":\([0-9.]*\).*/\1/')
awk -v a="$accuracy" 'BEGIN { exit !(a >= 0.35 && a <= 1) }' ||
    fail "accuracy $accuracy after 8 epochs, chance is 0.1"
