#!/bin/sh
# All operations and every model made narrow, against the meaning of its graph.
set -u
. "$ROOT/bench/gpu/rows.sh"
export SINTER_SOURCE="$ROOT" SINTER_INCLUDE="$BUILD/include/sinter" \
    SINTER_LIB="$BUILD/lib/sinter" CC="${CC:-cc}"
"$BUILD/bin/gpu" --jobs="$JOBS" ${SMALL:+"pool"} >judged
status=$?
cat judged
[ $status -ne 77 ] || exit 77
row "cases that agree" "$(sed -n 's/^\([0-9]*\) passed.*/\1/p' judged)"
row "cases that differ" "$(sed -n 's/.* \([0-9]*\) failed$/\1/p' judged)"
exit $status
