#!/bin/sh
# Two models under compute-sanitizer: a convolutional one with all features, and
# an attention model.  Its initcheck would find nothing: the arena is cleared
# first.
set -u
. "$ROOT/bench/gpu/rows.sh"
. "$ROOT/bench/gpu/trainer.sh"
[ -n "$SANITIZER" ] || not_here "there is no compute-sanitizer"
build_narrow || exit
tools='memcheck racecheck synccheck'
[ -z "$SMALL" ] || tools=memcheck
# checked TOOL MODEL: a row of the tool's findings in three steps.  Error codes
# of API calls are ignored, since the program handles each: libraries ask the
# driver for functions that it may not have.  The row names the kernels, as
# these may be the libraries' own.
checked() {
    result="no errors"
    "$SANITIZER" --tool "$1" --error-exitcode 9 --report-api-errors no "./$2" \
        --device="$DEVICE" --data=synthetic:16 --steps=3 --out="$1.$2.run" \
        --quiet >"$1.$2" 2>&1 || {
        result="exit status $?"
        # Containers may not let it at the GPU; then it has no summary.
        if ! grep -q 'ERROR SUMMARY' "$1.$2" && refusal=$(grep -m 1 -i \
            '^=========.*\(unable to\|not supported\|permission\|failed to\|internal.*error\)' \
            "$1.$2"); then
            row "$2 under $1" "not run" "" "$refusal"
            return
        fi
        : >failed
        head -n 40 "$1.$2"
        sed -n 's/^=========  *at \([^ +]*\).*/reported in \1/p' "$1.$2" |
            sort | uniq -c | sort -rn | head -n 20
        tail -n 20 "$1.$2"
    }
    row "$2 under $1" "$result" "" "$(grep -m 1 'SUMMARY' "$1.$2")"
}

# All in parallel: they wait for the tool more than for the GPU.
for tool in $tools; do
    for model in $NARROW; do
        checked "$tool" "$model" &
    done
done
wait
[ ! -e failed ]
