#!/bin/sh
# Equal models become equal trainers: neither processors, nor folders, nor the
# environment, nor the time make a difference.
# Trainers run for less time than they compile.
export OPTIMISATION="${OPTIMISATION--Og}"
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"

expect 0 "$SINTER" build "$models/resnet9.net" -o here
pieces=$("$SINTER" build "$models/resnet9.net" --emit=c -o text &&
    wc -c <text/resnet9.cu)
[ "$pieces" -gt 65536 ] || fail "$pieces bytes of kernels are one piece"

# One processor, another folder, a copy of the model, and another name.
mkdir elsewhere temporary
cp "$models/resnet9.net" elsewhere
(
    cd elsewhere || exit 1
    expect 0 env LANG=de_DE.UTF-8 LC_ALL=C TZ=Asia/Tokyo SOURCE_DATE_EPOCH=1 \
        HOME=/nowhere TMPDIR="$work/temporary" \
        taskset -c "$(taskset -cp $$ | sed 's/.*: *//; s/[-,].*//')" \
        "$SINTER" build resnet9.net -o ../there
    expect 0 "$SINTER" build ./resnet9.net --emit=c -o ../copy
) || exit 1
expect_equal here there
for file in text/*; do
    expect_equal "$file" "copy/${file#text/}"
done
if grep -q -e "$work" here; then
    fail "the trainer names the folder that it was built in"
fi
exit 0
