#!/bin/sh
# Graphs that random programs have found, as small as they got: kept/SEED.ir has
# the setup and the numbers of that seed.
# usage: kept.sh RANDOM
set -u
random=$1
failed=0
for graph in "$SINTER_SOURCE"/tests/random/kept/*.ir; do
    "$random" "$graph" "$(basename "$graph" .ir)" || failed=1
done
exit $failed
