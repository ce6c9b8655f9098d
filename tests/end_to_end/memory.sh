#!/bin/sh
# However little memory there is, a trainer that starts fits: it trains, or
# reports before its first step the memory that it lacks.
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"

[ -z "${SINTER_SANITIZED:-}" ] || exit 77 # they take terabytes of addresses
expect 0 "$SINTER" build "$here/tiny.net" -o tiny
expect 0 ./tiny --data synthetic:64 --device=host --out start --init-only
start=$(newest start)

# run KIB THREADS: the exit status with that much address space.
run() {
    rm -rf run
    (
        ulimit -v "$1"
        exec ./tiny --data synthetic:64 --device=host --threads "$2" \
            --epochs 1 --out run --quiet --init "$start"
    ) >out 2>err
}

# The program itself, with its libraries, takes more than the least of these.
for threads in 1 4; do
    fits=0 lacks=0 kib=40000
    while [ $kib -le 240000 ]; do
        run $kib $threads && got=0 || got=$?
        case $got in
        0) fits=$((fits + 1)) ;;
        5) lacks=$((lacks + 1)) ;;
        127) grep -q 'shared librar' err || fail "$kib KiB: $(cat err)" ;;
        *) fail "status $got with $kib KiB, $threads threads: $(cat err)" ;;
        esac
        kib=$((kib + 4000))
    done
    [ $fits -gt 0 ] && [ $lacks -gt 0 ] ||
        fail "$fits that fit, $lacks that do not"
done

# So does the compiler, where a C compiler lacks it, which ccache could spare.
# shellcheck disable=SC2016 # what is after -c is for that shell
expect 5 env CCACHE_DISABLE=1 \
    sh -c 'ulimit -v 40000 && exec "$0" build "$1" -o small' \
    "$SINTER" "$here/micro.net"
expect_says 'the C compiler needs memory'

# Threads that there cannot be are no fault of the model.
run 100000 200 && got=0 || got=$?
[ $got -eq 5 ] || fail "status $got: $(cat err)"
expect_says 'allows [0-9]* of 200 threads: start fewer'
exit 0
