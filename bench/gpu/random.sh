#!/bin/sh
# Random programs, with different seeds on each processor.
set -u
. "$ROOT/bench/gpu/rows.sh"
export SINTER_SOURCE="$ROOT" SINTER_INCLUDE="$BUILD/include/sinter" \
    SINTER_LIB="$BUILD/lib/sinter" CC="${CC:-cc}"
most=2000
[ -z "$SMALL" ] || most=4 JOBS=1
# Many small pieces, so that results so far count when time is up.
piece=$((most / JOBS / 8 + 1))
[ $piece -le 16 ] || piece=16
trap 'report; exit 124' TERM
report() {
    cat output
    row "random programs" "$(awk '/ programs and / { n += $1 }
        END { print n + 0 }' output)" "" "of $most"
    row "random programs that differ" "$(awk '/ failed$/ { n += $(NF - 1) }
        END { print n + 0 }' output)"
    row "pieces that were stopped" "$(grep -c ' stopped after ' output)"
}
# shellcheck disable=SC2016 # the inner shell expands
seq 0 "$piece" $((most - 1)) |
    xargs -P "$JOBS" -I FIRST sh -c '
        count=$(($2 - FIRST < $1 ? $2 - FIRST : $1))
        sh "$ROOT/bench/gpu/limit.sh" $((LIMIT / 4)) \
            "$0/bin/random" --gpu FIRST $count >FIRST.log 2>&1
        status=$?
        cat FIRST.log
        case $status in
        124 | 137) echo "seeds from FIRST on: stopped after $((LIMIT / 4)) s" ;;
        esac
        exit $status' "$BUILD" "$piece" "$most" >output 2>&1 &
wait $!
status=$?
report
exit $status
