#!/bin/sh
# Equal models are equal files, wherever and whenever they are compiled.
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"

for model in lenet resnet9; do
    expect 0 "$SINTER" build "$models/$model.net" --emit=c -o first
    mkdir -p elsewhere
    (cd elsewhere && expect 0 "$SINTER" build "$models/$model.net" --emit=c \
        -o ../second) || exit 1
    for file in $model.c $model.cu; do
        expect_equal "first/$file" "second/$file"
        if grep -q -e "$work" -e "$SINTER_SOURCE" "first/$file"; then
            fail "$file names a folder of this machine"
        fi
    done
    expect 0 "$CC" -std=c11 -Wall -Werror -fopenmp-simd \
        -fsyntax-only -I"$SINTER_INCLUDE" \
        first/$model.c
done
expect 0 "$SINTER" build "$models/resnet9.net" --set width=8 --emit=c -o third
cmp -s first/resnet9.cu third/resnet9.cu && fail "width changes nothing"
exit 0
