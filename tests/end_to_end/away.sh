#!/bin/sh
# A folder of checkpoints that is away for a moment costs a run nothing; one that
# stays away ends it, and one that another trainer has is left to that.
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"

idx_data data 192
expect 0 "$SINTER" build "$here/tiny.net" --set epochs=1000000 -o tiny

# begin OUT: a run in the background, which ends in time.
begin() {
    ./tiny --data data --device=host --threads 1 --out "$1" 2>"$1.log" &
    eval "$1=$!"
}

# until_newer OUT FILE: there is a newer checkpoint than FILE.
until_newer() {
    tries=0
    while [ "$(newest "$1" 2>/dev/null)" = "$2" ]; do
        tries=$((tries + 1))
        if [ $tries -eq 600 ]; then
            cat "$1.log" >&2
            fail "$1: no checkpoint after '$2'"
        fi
        sleep 0.05
    done
}

# until_says OUT TEXT: the run has printed it.
until_says() {
    tries=0
    until grep -q "$2" "$1.log"; do
        tries=$((tries + 1))
        if [ $tries -eq 600 ]; then
            cat "$1.log" >&2
            fail "$1: nothing about '$2'"
        fi
        sleep 0.05
    done
}

# ends OUT STATUS: the run is over.
ends() {
    eval "wait \$$1"
    status=$?
    [ $status -eq "$2" ] || fail "$1: exit status $status: $(cat "$1.log")"
}

trap 'kill -s KILL ${gone:-} ${back:-} ${first:-} ${second:-} 2>/dev/null
    rm -rf "$work"' EXIT

# Time alone passes for a run that is stopped.
begin gone
until_newer gone ''
mv gone gone.moved
until_says gone 'warning: gone is gone: No such file'
until_says gone 'gone has no checkpoint of this run'
until_says gone 'next try of a checkpoint in 4 s'
kill -s STOP "$gone"
stopped=$(date +%s)

begin back
until_newer back ''
mv back back.moved
until_says back 'next try of a checkpoint in 1 s'
sleep 1
mv back.moved back
until_newer back "$(newest back)"
kill -s TERM "$back"
ends back 143
expect 0 ./tiny --data data --out back --resume --steps 1 --quiet

begin first
until_newer first ''
mv first second # whose lock is held
./tiny --data data --out second --resume 2>second.log &
second=$!
ends second 3
grep -q 'another trainer writes its checkpoints to second' second.log ||
    fail "second: $(cat second.log)"
mkdir first
until_says first 'warning: first is another folder than the run began with'
until_newer first ''
kill -s TERM "$first"
ends first 143

while [ $(($(date +%s) - stopped)) -lt 61 ]; do sleep 1; done
kill -s CONT "$gone"
ends gone 74
exit 0
