#!/bin/sh
# A few steps of a small convolutional model and of an attention model: with all
# features of the CUDA device, and without each optional one.  If nothing runs,
# this finds the feature to disable.  Losses are equal, except without library
# fusion, which rounds differently.
set -u
. "$ROOT/bench/gpu/rows.sh"
. "$ROOT/bench/gpu/trainer.sh"
ways='graph timing-events merged-launches resident library-fusions all'
# A run that hangs leaves time for the others; the first reads libraries from
# disk.
each=$((LIMIT / 3))

# options_of WAY
options_of() {
    case $1 in
    nothing) ;;
    resident) echo --resident=no ;;
    all) echo --resident=no --without=graph,timing-events,merged-launches,library-fusions ;;
    *) echo "--without=$1" ;;
    esac
}

# run_without WAY MODEL: its losses in WAY.MODEL, empty on failure.
run_without() {
    name=$1.$2
    # shellcheck disable=SC2046 # words
    timeout --foreground -k 1 $each \
        "./$2" --device="$DEVICE" --data=synthetic:32 --steps=6 --log-every=1 \
        --metrics="$name.metrics" --out="$name.run" --quiet \
        $(options_of "$1") >"$name.log" 2>&1
    status=$?
    case $status in
    0)
        sed -n 's/.*"split":"step".*"loss":\([^,}]*\).*/\1/p' \
            "$name.metrics" >"$name"
        ;;
    124 | 137) echo "error: it was stopped after $each s" >>"$name.log" ;;
    *) echo "exit status $status" >>"$name.log" ;;
    esac
}

# report_of WAY MODEL: a row of the result, with the losses or the error.
report_of() {
    name=$1.$2 result=runs label="$2 without $1"
    [ "$1" != nothing ] || label="$2 as it is"
    note=$(grep -m 1 -e '^warning: ' "$name.log")
    if [ ! -s "$name" ]; then
        result=fails note=$(grep -m 1 -e '^error: ' "$name.log" ||
            tail -n 1 "$name.log")
    elif [ "$1" != library-fusions ] && [ "$1" != all ] && [ -s "nothing.$2" ] &&
        ! cmp -s "nothing.$2" "$name"; then
        result="has other losses"
    fi
    [ "$result" = runs ] || {
        : >failed
        echo "==== $label $result"
        tail -n 5 "$name.log"
    }
    row "$label" "$result" "" "${note:-$(paste -sd ' ' "$name")}"
}

# The first runs fill the caches for the others.
build_narrow || exit
for model in $NARROW; do
    run_without nothing "$model" &
done
wait
for way in $ways; do
    for model in $NARROW; do
        run_without "$way" "$model" &
    done
done
wait
for model in $NARROW; do
    for way in nothing $ways; do
        report_of "$way" "$model"
    done
done
[ ! -e failed ]
