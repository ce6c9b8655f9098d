#!/bin/sh
# Tile kernels against library calls: losses, the time of a step, and in the log
# the longest launches of both.
set -u
. "$ROOT/bench/gpu/rows.sh"
. "$ROOT/bench/gpu/trainer.sh"

"$SINTER" doctor >found
grep "^Tile IR" found
grep -q "^Tile IR *[0-9]" found || not_here "no compiler of tile kernels"
arch=$(sed -n "s/^$DEVICE .*compute capability \([0-9]*\)[.]\([0-9]*\),.*/\1\2/p" found)
[ "${arch:-0}" -ge 80 ] || not_here "no GPU of compute capability 8.0 or later"

# losses NAME OPTION...: of the first steps.
losses() {
    name=$1
    shift
    train tile "$model" --steps=8 --log-every=1 "$@" >"$name.log" || return
    sed -n 's/.*"split":"step".*"loss":\([^,}]*\).*/\1/p' metrics >"$name"
}

set --
[ -z "$SMALL" ] || set -- --set "precision=mixed(f16)"
for model in $MODELS; do
    build tile "$model" --target=cuda:sm_"$arch" --tile=all "$@" &&
        losses tiles && losses library --without=tile-kernels || exit
    row "$model: losses with tile kernels" "$(paste -sd ' ' tiles)" "" \
        "$(paste -sd ' ' library) with the library"
    for name in tiles library; do
        without=
        [ $name = tiles ] || without=--without=tile-kernels
        echo "$model, $name:"
        # shellcheck disable=SC2086 # an option or nothing
        train tile "$model" --steps=16 --profile=$name.json $without || exit
    done
    against "$model" "tile kernels" tile "library calls" \
        "tile --without=tile-kernels" || exit
done
