#!/bin/sh
# A reader that takes nothing stops no run: it trains, saves, sees a signal and
# ends by it.  One that takes all, however late, is given all.
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"

idx_data data 192
expect 0 "$SINTER" build "$here/tiny.net" --set epochs=100000 -o tiny

# begin OUT [OPTION]...: a run in the background, which ends in time.
begin() {
    run_out=$1
    shift
    timeout -s KILL 60 ./tiny --data data --device=host --threads 1 --out "$run_out" "$@" 3>&- &
    run=$!
}

# until_newer FILE: there is a newer checkpoint than FILE.
until_newer() {
    tries=0
    while [ "$(newest "$run_out" 2>/dev/null)" = "$1" ]; do
        tries=$((tries + 1))
        if [ $tries -eq 600 ]; then
            kill -s KILL $run
            fail "$run_out: no checkpoint after '$1'"
        fi
        sleep 0.05
    done
}

# stops: the run has saved, is given a signal, saves again and ends by it.
stops() {
    until_newer ''
    until_newer "$(newest "$run_out")"
    kill -s TERM $run
    wait $run
    status=$?
    [ $status -eq 143 ] || fail "$run_out: exit status $status"
    last=$(newest "$run_out")
    expect 0 ./tiny --data data --out "$run_out" --resume --steps 1 --quiet
    [ "$(newest "$run_out")" != "$last" ] || fail "$run_out does not go on"
}

# A pipe that is full, and stays so.
mkfifo full
exec 3<>full
head -c 65536 /dev/zero >&3
begin log.run 2>full
stops
begin rows.run --metrics=- --log-every=1 >full 2>log
stops
grep -q 'metrics in standard output were lost: its reader was too slow' log ||
    fail "rows are lost unsaid: $(cat log)"
begin both.run --metrics=- >full 2>&1
stops
exec 3>&-

# A reader that is gone.
{
    sleep 0.5 # so that it is
    ./tiny --data data --out gone.run --steps 3 2>&1
    echo $? >status
} | true
[ "$(cat status)" -eq 0 ] || fail "without a reader: exit status $(cat status)"
[ -n "$(newest gone.run)" ] || fail 'nothing is saved without a reader'

# rows FILE: the fields that do not depend on time.
rows() {
    grep -v '"split":"time"' "$1" | sed 's/,"samples_per_second".*//'
}

sed '/every 1 epoch/d' "$here/tiny.net" >rows.net
expect 0 "$SINTER" build rows.net --set batch=8 --set epochs=300 -o tiny
expect 0 ./tiny --data data --out whole --steps 900 --log-every=1 \
    --metrics=whole.rows
{
    ./tiny --data data --out late --steps 900 --log-every=1 --metrics=-
    echo $? >status
} 2>log | (sleep 4 && cat) >late.rows
[ "$(cat status)" -eq 0 ] || fail "a late reader: exit status $(cat status)"
[ "$(wc -c <late.rows)" -gt 65536 ] || fail 'a pipe has room for all rows'
rows whole.rows >a
rows late.rows >b
expect_equal a b

# Rows to a pipe that is opened late, and to one that never is.
mkfifo pipe
(sleep 1 && cat pipe) >pipe.rows &
expect 0 ./tiny --data data --out pipe.run --steps 900 --log-every=1 \
    --metrics=pipe
wait $!
rows pipe.rows >b
expect_equal a b
expect 74 ./tiny --data data --out closed.run --steps 1 --metrics=pipe
expect_says 'cannot open pipe: its reader was too slow'
exit 0
