#!/bin/sh
# The tree-sitter grammar: model files parse, files with syntax errors do not,
# trees have their shapes, and queries compile.
#
# Needs the commands tree-sitter 0.25 or later, node and cc.
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"
tree-sitter --version >/dev/null 2>&1 || exit 77

# Errors of the text that are none of the grammar: limits, encodings, and types,
# which are names.
accepted='byte-order-mark utf16 string-control-above number-too-large
    name-too-long nested-too-deep type-float32 type-uint8'

cp -r "$SINTER_SOURCE/tools/editors/tree-sitter" grammar
cd grammar || exit 1
expect 0 tree-sitter generate
expect 0 tree-sitter test
for query in queries/*.scm; do
    expect 0 tree-sitter query "$query" "$models/resnet9.net"
    expect_says capture
done

find "$models" "$SINTER_SOURCE/frontend" "$SINTER_SOURCE/tests" -name '*.net' |
    grep -v /reject/ >good
[ "$(wc -l <good)" -gt 100 ] || fail "no model files"
: >bad
for file in "$SINTER_SOURCE"/tests/golden/reject/*.net; do
    name=$(basename "$file" .net)
    case " $(echo $accepted) " in
    *" $name "*) echo "$file" >>good ;;
    *) if grep -q '^error\[E01' "${file%.net}.err"; then
        echo "$file" >>bad
    else
        echo "$file" >>good
    fi ;;
    esac
done

expect 0 tree-sitter parse --quiet --paths good
expect 1 tree-sitter parse --quiet --paths bad
grep -c -e ERROR -e MISSING out >errors
[ "$(cat errors)" -eq "$(wc -l <bad)" ] ||
    fail "$(cat errors) of $(wc -l <bad) files have errors"
echo "$(wc -l <good) files parse, $(cat errors) do not"
