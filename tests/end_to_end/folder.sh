# A folder of its own for a test that goes on after a failure, which is told by
# fail, and what is asked of sinter; it ends with the status that $failed says.
work=$(mktemp -d "${TMPDIR:-/tmp}/sinter-test-XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0
models=$SINTER_SOURCE/models

fail() {
    echo "$*" >&2
    failed=1
}

# expect STATUS TEXT WORD...: runs sinter; its output holds TEXT.  What goes
# wrong is nothing but JSON when that is asked for.
expect() {
    status=$1
    text=$2
    shift 2
    "$SINTER" "$@" >out 2>&1
    got=$?
    if [ "$got" -ne "$status" ] || { [ -n "$text" ] &&
        ! grep -qF -e "$text" out; }; then
        fail "sinter $*: status $got, not $status, or no '$text':"
        head -20 out >&2
    fi
    [ "$status" -eq 0 ] && return
    "$SINTER" "$@" --diagnostics=json 2>out >/dev/null
    got=$?
    if [ "$got" -ne "$status" ] || grep -qv '^{"severity":"error",' out ||
        { [ "$status" -ne 1 ] && [ ! -s out ]; }; then
        fail "sinter $* --diagnostics=json: status $got, not $status, or:"
        head -20 out >&2
    fi
}
