#!/bin/sh
# On busy cores a team of threads costs a small network next to nothing: its
# launches run on one thread, and members of the team sleep while they wait.
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"

expect 0 "$SINTER" build "$here/tiny.net" -o tiny

# seconds COMMAND...: the processor time that it takes.
seconds() {
    LC_ALL=C bash -c 'TIMEFORMAT="%U %S"; time "$@" >/dev/null 2>err' sh "$@" 2>&1 |
        awk '{ print $1 + $2 }'
}

# busy COMMAND...: runs it beside three programs for each core that only compute.
busy() {
    pids=
    trap 'kill $pids 2>/dev/null; rm -rf "$work"' EXIT
    for _ in $(seq $((3 * $(nproc)))); do
        (while :; do :; done) &
        pids="$pids $!"
    done
    "$@"
    # shellcheck disable=SC2086
    kill $pids
    wait
    pids=
}

train() {
    seconds env -u OMP_WAIT_POLICY ./tiny --data synthetic:512 --device=host \
        --epochs 4 --threads "$1" --out "run-$1" --quiet
}

both() {
    one=$(train 1)
    team=$(train 2)
}
busy both
echo "processor time: $one s on one thread, $team s on two"
[ -n "$(newest run-2)" ] || fail "no run"
awk "BEGIN { exit !($team < 3 * $one + 0.3) }" ||
    fail "two threads take $team s, one takes $one s"

# Times measured beside other programs are reported as noise.
# In one file with the results, the note is the last line.
# shellcheck disable=SC2016 # sh expands $0 and $1
busy expect 0 sh -c '"$0" bench "$1" --data=synthetic --runs=2 --steps=3 2>&1' \
    "$SINTER" "$here/tiny.net"
tail -n 1 out | grep -q '^note: the times are noise: other programs used' ||
    fail "$(cat out)"

# A loader that is given the trainer as its argument is not started again.
loader=$(awk '$6 ~ /ld-linux/ { print $6; exit }' /proc/self/maps)
[ -n "$loader" ] || exit 0
expect 0 env -u OMP_WAIT_POLICY "$loader" ./tiny --data synthetic:64 \
    --device=host --steps=1 --out loaded
