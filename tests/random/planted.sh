#!/bin/sh
# The race checker finds every fourth barrier of the prelude that is taken away,
# or with PLANTED_ALL=1 each.
# usage: planted.sh RANDOM
set -eu
random=$1
graph=$SINTER_SOURCE/tests/random/barriers.ir
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -rL "$SINTER_INCLUDE/." "$work"
block=runtime/prelude/block.h

"$random" --faithful "$graph" 1
failed=0
every=4
[ -z "${PLANTED_ALL:-}" ] || every=1
for line in $(grep -n 'BARRIER();' "$SINTER_INCLUDE/$block" | cut -d: -f1 |
    awk -v every=$every 'NR % every == 0'); do
    sed "${line}s/BARRIER();//" "$SINTER_INCLUDE/$block" >"$work/$block"
    if SINTER_INCLUDE=$work "$random" --faithful "$graph" 1 >"$work/log" 2>&1 ||
        ! grep -q '^simt: ' "$work/log"; then
        echo "block.h:$line: nobody misses the barrier"
        cat "$work/log"
        failed=1
    fi
done
exit $failed
