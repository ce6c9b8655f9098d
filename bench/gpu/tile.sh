#!/bin/sh
# Tile kernels against library calls: losses, the time of a step, in the log the
# longest launches of both, and the time of each contraction, also in PyTorch.
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

# contractions OPTION...: rows of a model's contractions, one by one.
contractions() {
    "$SINTER" show plan "$ROOT/models/$model.net" "$@" \
        --set batch="$(batch_of "$model")" >graph 2>err || {
        cat err
        return 1
    }
    "${PYTHON:-python3}" "$ROOT/bench/gpu/contractions.py" tiles.json \
        library.json graph "$TRACED" "$DEVICE" f16 >"$model.layers" || return
    while IFS="$(printf '\t')" read -r name count tile library torch; do
        row "$model: $name: tile kernel / library" \
            "$(ratio "$tile" "$library")" "" \
            "$count in a step: $tile us, library $library us, PyTorch $torch us"
    done <"$model.layers"
}

TRACED=8
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
        rm -rf run
        ./tile --device="$DEVICE" --out=run --steps=16 \
            --data=synthetic:$((16 * $(batch_of "$model"))) \
            --profile-steps="$TRACED" --profile=$name.json $without || exit
    done
    contractions "$@" || exit
    against "$model" "tile kernels" tile "library calls" \
        "tile --without=tile-kernels" || exit
done
