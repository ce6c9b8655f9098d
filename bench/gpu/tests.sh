#!/bin/sh
# All operations and narrow models, against the graph in double.
set -u
. "$ROOT/bench/gpu/rows.sh"
export SINTER_SOURCE="$ROOT" SINTER_INCLUDE="$BUILD/include/sinter" \
    SINTER_LIB="$BUILD/lib/sinter" CC="${CC:-cc}"
# Results so far count when time is up.
trap 'report; exit 124' TERM
report() {
    cat judged
    row "cases that agree" "$(grep -c '^agrees: ' judged)"
    row "cases that differ" "$(grep -c '^FAILED: ' judged)"
}
"$BUILD/bin/gpu" --jobs="$JOBS" --limit=$((LIMIT / 2)) ${SMALL:+"pool"} \
    >judged &
wait $!
status=$?
[ $status -ne 77 ] || not_here "$(cat judged)"
report
exit $status
