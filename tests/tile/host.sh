#!/bin/sh
# The host's meaning of tile kernels stops at faults that a GPU would not show.
set -u
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"

command -v "${CXX-c++}" >/dev/null || exit 77
# With _Float16, and as a compiler without it.
for option in -U__FLT16_MAX__ -O1; do
    expect 0 "${CXX-c++}" -std=c++20 "$option" -Wall -Wextra -Werror \
        -Wno-attributes -I"$SINTER_SOURCE/runtime/prelude/tile" \
        -I"$SINTER_SOURCE" "$SINTER_SOURCE/tests/tile/faults.cc" -o faults
    expect 0 ./faults 0
done
number=0
for why in "a tile lies outside of its tensor" \
    "a partial tile is accessed without a mask" "a pointer is not so aligned" \
    "another block stores to the same address" \
    "reads a value that another block stores"; do
    number=$((number + 1))
    ./faults $number >out 2>err && fail "fault $number is not found"
    expect_says "$why"
done
