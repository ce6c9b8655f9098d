# A folder of its own for a test that goes on after a failure, which is told by
# fail; it ends with the status that $failed says.
work=$(mktemp -d "${TMPDIR:-/tmp}/sinter-test-XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0
models=$SINTER_SOURCE/models

fail() {
    echo "$*" >&2
    failed=1
}
