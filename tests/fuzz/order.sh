#!/bin/sh
# Compilers evaluate the arguments of a call in different orders, gcc on x86 from
# the last and clang from the first: the sinter of clang has the graphs that the
# golden files have from gcc's, and the plans of two models.
#
#   order.sh SINTER
set -u
sinter=$(realpath "$1")
source=$(CDPATH='' cd "$(dirname "$0")/../.." && pwd)
failed=0 compared=0

# same FILE COMMAND...: its output is the file.
same() {
    want=$1
    shift
    compared=$((compared + 1))
    "$@" 2>/dev/null | diff "$want" - || failed=$((failed + 1))
}

cd "$source/tests/golden/accept" || exit 1
for net in *.net; do
    grep -q -e '^# options:' -e '^# train$' "$net" ||
        same "${net%.net}.ir" "$sinter" show graph "$net"
done
cd "$source/models" || exit 1
for name in airbench94 gpt_nano; do
    same "$source/tests/golden/models/$name.report" \
        "$sinter" check --device=h200 "$name.net"
done
echo "$compared compared, $failed differ"
[ $failed -eq 0 ] && [ $compared -ge 80 ]
