#!/bin/sh
# Nothing that a user, a file or a folder is called steers the terminal that it
# is printed to: control characters and those that change the order of reading
# are shown as escapes, on standard output and standard error.
set -u

. "$SINTER_SOURCE/tests/end_to_end/folder.sh"

esc=$(printf '\033') csi=$(printf '\302\233') rlo=$(printf '\342\200\256')
odd="a$esc[31m${csi}2J${rlo}b"
hidden=$(printf '[\001-\010\013-\037\177]|\302[\200-\237]')
hidden="$hidden|$(printf '\342\200[\216\217\252-\256]|\342\201[\246-\251]')"

# plain STATUS COMMAND...: its output holds no such character.
plain() {
    status=$1
    shift
    "$@" >out 2>&1 </dev/null
    got=$?
    [ $got -eq "$status" ] || fail "$*: status $got, not $status: $(head out)"
    LC_ALL=C grep -aE -e "$hidden" out >hidden && fail "$*: $(head hidden)"
    return 0
}

# named STATUS COMMAND...: the same, and the name is there.
named() {
    plain "$@"
    # shellcheck disable=SC1003 # the backslashes are the output's
    grep -qF 'a\x1b[31m\u009b2J\u202eb' out || fail "$*: no name: $(head out)"
}

cp "$models/mlp.net" "$odd.net"
printf 'model %s' "$odd" >"$odd.bad.net"
named 1 "$SINTER" check "$odd.bad.net"
named 1 "$SINTER" fmt --check "$odd.bad.net"
named 74 "$SINTER" check "$odd.none.net"
plain 1 "$SINTER" check "$odd.net" --set "$odd=1"
plain 1 "$SINTER" check "$odd.net" --set "batch=$odd"
named 2 "$SINTER" check "$odd.net" "--$odd"
named 2 "$SINTER" "$odd"
named 2 "$SINTER" show "$odd" "$odd.net"
named 2 "$SINTER" explain "$odd"
named 2 "$SINTER" build "$odd.net" -o "$odd.net"
plain 0 "$SINTER" check "$odd.net"
for stage in graph fused plan launches kernels memory params recipe fusion; do
    plain 0 "$SINTER" show $stage "$odd.net"
done
"$SINTER" show graph "$odd.net" >graph.ir
plain 0 "$SINTER" opt graph.ir
grep -v '^$' graph.ir | cmp -s - out || fail "another graph is read"
printf 'graph %s' "$odd" >"$odd.ir"
named 1 "$SINTER" opt "$odd.ir"
plain 0 "$SINTER" explain W0611

# JSON has escapes of its own.
"$SINTER" check "$odd.bad.net" --diagnostics=json 2>out
# shellcheck disable=SC1003
grep -qF 'a\u001b[31m\u009b2J\u202eb' out || fail "JSON: $(cat -v out)"
LC_ALL=C grep -aqE -e "$hidden" out && fail "JSON: $(cat -v out)"
/usr/bin/python3 -c 'import json, sys
for line in sys.stdin: json.loads(line)' <out || fail "no JSON: $(cat out)"

"$SINTER" build "$odd.net" -o "./$odd" || fail "no trainer"
named 0 "./$odd" --help
named 3 "./$odd" --data "$odd.none"
named 2 "./$odd" "--$odd"
named 2 "./$odd" --device "$odd"
named 3 "./$odd" --data synthetic:256 --epochs 1 --init "$odd" --out run
named 74 "./$odd" --data synthetic:256 --epochs 1 --metrics "$odd/rows" \
    --out run
plain 0 "./$odd" --data synthetic:256 --epochs 1 --out "$odd.run"
named 0 "./$odd" --data synthetic:256 --epochs 1 --out "$odd.init" --init-only
named 0 "./$odd" --data synthetic:256 --out "$odd.run" --resume --eval-only
plain 0 "./$odd" --list-kernels
# Nor does a name begin a line of its own.
line="a
b"
"./$odd" --data "$line" >out 2>&1
[ "$(wc -l <out)" -eq 1 ] || fail "a name has lines: $(cat out)"
"$SINTER" check "$line.net" >out 2>&1
[ "$(wc -l <out)" -eq 1 ] || fail "a name has lines: $(cat out)"

exit $failed
