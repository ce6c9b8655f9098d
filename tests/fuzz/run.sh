#!/bin/sh
# run.sh NAME PROGRAM SECONDS [FOLDER]: feeds a fuzz target what tests have of
# its language, the kept inputs of tests/fuzz/NAME and what follows from them.
# An input that fails is left in FOLDER, and its path printed.
set -eu
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1

name=$1 program=$2 seconds=$3
here=$(CDPATH='' cd "$(dirname "$0")" && pwd)
root=$(dirname "$(dirname "$here")")
work=$(mktemp -d "${TMPDIR:-/tmp}/fuzz-XXXXXX")
trap 'rm -rf "$work"' EXIT
found=${4:-${TMPDIR:-/tmp}}
mkdir "$work/seeds" "$work/run"

if [ "$name" = language ]; then
    set -- "$root"/models/*.net "$root"/tests/golden/accept/*.net \
        "$root"/tests/golden/reject/*.net
    {
        sed -n 's/^\(BUILTIN\|PARAM\)([^,]*, *//; s/^\([a-z0-9_]*\),.*/"\1"/p' \
            "$root/frontend/functions/builtins.def"
        sed -n 's/^BUILTIN(\([a-z0-9_]*\),.*/"\1"/p' \
            "$root/frontend/functions/builtins.def"
        sed -n 's/^\(KEYWORD\|PUNCT\)([A-Z_]*, *\(".*"\)).*/\2/p' \
            "$root/frontend/text/tokens.def"
    } | grep -v '""' | sort -u >"$work/words"
elif [ "$name" = graph ]; then
    set -- "$root"/tests/golden/accept/*.ir "$root"/tests/golden/kernels/*.ir \
        "$root"/tests/golden/verify/*.ir "$root"/tests/golden/passes/*/*.ir
    {
        sed -n 's/^OP(\([a-z0-9_]*\),.*/"\1"/p' "$root/ir/ops.def"
        sed -n 's/^ATTR(\([a-z0-9_]*\),.*/"\1"/p' "$root/ir/attrs.def"
    } | sort -u >"$work/words"
else
    set --
    printf '"%s"\n' dtype shape data_offsets __metadata__ F32 BF16 BOOL \
        descr fortran_order False '<f4' '<i8' '|u1' plans products fusions \
        apart vocab merges added_tokens pre_tokenizer ByteLevel Split Regex \
        content .cls .json label path= size= ustar '\xde\xc0\xef\xbe' \
        IHDR PLTE tRNS gAMA IDAT IEND >"$work/words"
fi
cp "$here/$name"/* "$work/seeds"
# In less than a minute, every fourth file of the golden tests.
every=4 count=0
[ "$seconds" -lt 60 ] || every=1
for file in "$@"; do
    count=$((count + 1))
    [ $((count % every)) -eq 0 ] || continue
    [ -f "$file" ] || continue
    # A golden graph ends where its expectation begins.
    sed '/^---$/,$d' "$file" >"$work/seeds/$(echo "$file" | tr / _)"
done

# A timeout is one of the clock, which a busy machine stretches; how long files
# may take is tested by tests/frontend/check_limits.c.
cd "$work/run"
"$program" -max_total_time="$seconds" -max_len=4096 -timeout=100 \
    -rss_limit_mb=1024 -dict="$work/words" -artifact_prefix="$found/" \
    -print_final_stats=1 -verbosity=1 "$work/run" "$work/seeds" \
    2>"$work/log" && status=0 || status=$?
if [ "$status" -ne 0 ]; then
    grep -m 1 -A 30 '^==[0-9]*==' "$work/log" >&2 || tail -n 60 "$work/log" >&2
    grep 'Test unit written' "$work/log" >&2
    exit 1
fi
sed -n 's/^stat::number_of_executed_units: */inputs: /p' "$work/log"
