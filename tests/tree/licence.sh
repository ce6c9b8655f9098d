#!/bin/sh
# LICENSE is Apache 2.0 with the LLVM exceptions, word for word, and files that
# go into a trainer name it: the sources that it links, the headers of its
# kernels, the modules of std, and the emitted text.  The version of CHANGELOG.md
# is that of the compiler.
. "$SINTER_SOURCE/tests/end_to_end/folder.sh"
identifier='SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception'

expect 0 '' build --emit=c "$models/mlp.net" -o .
for file in mlp.c mlp.cu; do
    [ "$(sed -n 2p "$file")" = "// $identifier" ] ||
        fail "$file: no licence in the second line"
done

cd "$SINTER_SOURCE" || exit 1

sum=$(sha256sum <LICENSE)
[ "${sum%% *}" = 'e4abf9cd071e2e784ff04751fdf566ec4f1fe339bbef8bdcf6f56133f609a516' ] ||
    fail "LICENSE has another text"

# named_by MARK FILE...: the first line is the identifier's, behind a mark.
named_by() {
    mark=$1
    shift
    for file in "$@"; do
        [ "$(head -n 1 "$file")" = "$mark $identifier" ] ||
            fail "$file: the first line is not '$mark $identifier'"
    done
}
for folder in base ir runtime; do
    # shellcheck disable=SC2046 # no name has a space
    named_by // $(find "$folder" -name '*.[ch]' -o -name '*.def')
done
named_by '#' frontend/std/*.net

"$SINTER" --version >"$work/version"
grep -q "^sinter $(sed -n 's/^## \([0-9.]*\).*/\1/p' CHANGELOG.md | head -n 1)$" \
    "$work/version" || fail "CHANGELOG.md is not of $(cat "$work/version")"
exit $failed
