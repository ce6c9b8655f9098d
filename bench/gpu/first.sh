#!/bin/sh
# A few steps of a small convolutional model and of one of attention: with all
# that a run does on a GPU, and without each part of it that it can do without.
# Where nothing runs, this says what to leave out.  Only without what rides on
# library calls are numbers rounded elsewhere; all other losses are the same.
set -u
. "$ROOT/bench/gpu/rows.sh"
. "$ROOT/bench/gpu/trainer.sh"
ways='graph marks joins resident rides all'
# What hangs leaves time for the others; the first reads libraries from the disk.
each=$((LIMIT / 3))

# options_of WAY
options_of() {
    case $1 in
    nothing) ;;
    resident) echo --resident=no ;;
    all) echo --resident=no --without=graph,marks,joins,rides ;;
    *) echo "--without=$1" ;;
    esac
}

# run_without WAY MODEL: its losses in WAY.MODEL, nothing where it fails.
run_without() {
    name=$1.$2
    # shellcheck disable=SC2046 # words
    timeout --foreground -k 1 $each \
        "./$2" --device="$DEVICE" --data=synthetic:32 --steps=6 --log-every=1 \
        --metrics="$name.metrics" --out="$name.run" --quiet \
        $(options_of "$1") >"$name.said" 2>&1
    status=$?
    case $status in
    0)
        sed -n 's/.*"split":"step".*"loss":\([^,}]*\).*/\1/p' \
            "$name.metrics" >"$name"
        ;;
    124 | 137) echo "error: it was stopped after $each s" >>"$name.said" ;;
    *) echo "exit status $status" >>"$name.said" ;;
    esac
}

# tell_of WAY MODEL: a row of how it went, with the losses or what was said.
tell_of() {
    name=$1.$2 came=runs what="$2 without $1"
    [ "$1" != nothing ] || what="$2 as it is"
    note=$(grep -m 1 -e '^warning: ' "$name.said")
    if [ ! -s "$name" ]; then
        came=fails note=$(grep -m 1 -e '^error: ' "$name.said" ||
            tail -n 1 "$name.said")
    elif [ "$1" != rides ] && [ "$1" != all ] && [ -s "nothing.$2" ] &&
        ! cmp -s "nothing.$2" "$name"; then
        came="has other losses"
    fi
    [ "$came" = runs ] || {
        : >failed
        echo "==== $what $came"
        tail -n 5 "$name.said"
    }
    row "$what" "$came" "" "${note:-$(paste -sd ' ' "$name")}"
}

# What the first have compiled and kept, the others find.
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
        tell_of "$way" "$model"
    done
done
[ ! -e failed ]
