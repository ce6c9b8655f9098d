#!/bin/sh
# A run that was stopped goes on to the same bits as one that was not.
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"

idx_data data 192
expect 0 "$SINTER" build "$here/tiny.net" --set epochs=60 \
    --set "optimizer=lamb(lr=lr)" -o tiny
expect 0 ./tiny --data data --out whole --quiet

# stop_with SIGNAL DIR: starts a run and stops it after its second checkpoint.
stop_with() {
    ./tiny --data data --out "$2" --quiet >out 2>err &
    tries=0
    while [ "$(find "$2" -name '*.safetensors' 2>/dev/null | wc -l)" -lt 2 ] &&
        [ $tries -lt 1000 ]; do
        tries=$((tries + 1))
        sleep 0.02
    done
    kill -s "$1" $! 2>/dev/null
    wait $! 2>/dev/null
    status=$?
    [ -n "$(newest "$2")" ] || fail "$1: no checkpoint is left"
    return $status
}

stop_with TERM stopped
status=$?
[ $status -eq 143 ] || [ $status -eq 0 ] || fail "TERM: exit status $status"
expect 0 ./tiny --data data --out stopped --quiet --resume
expect_equal "$(newest whole)" "$(newest stopped)"

stop_with KILL killed
expect 0 ./tiny --data data --out killed --quiet --resume
expect_equal "$(newest whole)" "$(newest killed)"

# Half of the newest checkpoint is missing: the one before is loaded.
stop_with TERM broken
checkpoint=$(newest broken)
size=$(wc -c <"$checkpoint")
head -c $((size / 2)) "$checkpoint" >half && mv half "$checkpoint"
expect 0 ./tiny --data data --out broken --resume
expect_equal "$(newest whole)" "$(newest broken)"

# A run's precision is part of its fingerprint.
expect 0 "$SINTER" build "$here/tiny.net" --set epochs=60 \
    --set "optimizer=lamb(lr=lr)" --set precision=bf16 -o half
expect 3 ./half --data data --out whole --resume
expect_says "with a different model text or recipe, precision f32, here bf16 (finger"
