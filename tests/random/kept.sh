#!/bin/sh
# Graphs that random programs have found, as small as they got: kept/SEED.ir has
# the setup and the numbers of that seed.  Those whose comment begins with
# "faithful" run in faithful mode too.
# usage: kept.sh RANDOM
set -u
random=$1
failed=0
for graph in "$SINTER_SOURCE"/tests/random/kept/*.ir; do
    seed=$(basename "$graph" .ir)
    "$random" "$graph" "$seed" || failed=1
    ! head -n 1 "$graph" | grep -q '^# faithful' ||
        "$random" --faithful "$graph" "$seed" || failed=1
done
exit $failed
