#!/bin/sh
# The models that bench/gpu.sh runs first use all engines of cuDNN that any model
# uses on an H200: of each direction, and with the fusions that it has there.
set -u
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"
first=$SINTER_SOURCE/bench/gpu/first.sh
golden=$SINTER_SOURCE/tests/golden/cudnn
models="$(sed -n "s/^engines='\(.*\)'/\1/p" "$first") $(sed -n \
    "s/^MODELS='\([^']*\)'.*/\1/p" "$SINTER_SOURCE/bench/gpu/trainer.sh")"

# used FILE...
used() {
    sed -n 's/^ *\(b\{0,1\}f[0-9]*\) \([a-z]*\) .*, engine \([0-9]*\),.*/\2 \3/p' \
        "$@" | sort -u
}

set --
for model in $models; do
    set -- "$@" "$golden/$model.h200"
done
used "$@" >first
used "$golden"/*.h200 >all
[ "$(wc -l <all)" -gt 20 ] || fail "no engines in $golden"
missing=$(comm -13 first all)
[ -z "$missing" ] || fail "no model of $first uses these engines: $missing"
