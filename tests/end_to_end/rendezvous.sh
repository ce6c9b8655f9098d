#!/bin/sh
# The meeting of ranks over TCP: strangers at the port, a rank of another run,
# another version or other data, and a port that is in use.
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"
. "$SINTER_SOURCE/tests/end_to_end/tiny.sh"

idx_data data 40
idx_data other 48
expect 0 "$SINTER" build "$here/tiny.net" --set shards=2 --set epochs=1 \
    --set batch=16 -o tiny
next_port() {
    port=$(python3 "$here/rendezvous.py" 0 free)
}

# rank NUMBER OPTION...: of two, over TCP; job: the number that Slurm gives it.
rank() {
    number=$1
    shift
    place="RANK=$number WORLD_SIZE=2"
    [ -z "$job" ] || place="SLURM_JOB_ID=$job SLURM_PROCID=$number
        SLURM_STEP_NUM_TASKS=2"
    # shellcheck disable=SC2086
    env $place MASTER_ADDR=localhost MASTER_PORT="$port" ./tiny --data data \
        --quiet "$@" >"said.$number" 2>&1
}
job=

# ends NUMBER STATUS PROCESS: of a rank in the background.
ends() {
    wait "$3"
    got=$?
    [ $got -eq "$2" ] || fail "rank $1 ends with $got: $(cat "said.$1")"
}

says() {
    grep -q -e "$2" "said.$1" || fail "rank $1 says: $(cat "said.$1")"
}

# Strangers come first.  The silent one and the slow one are dropped after 5 s.
next_port
rank 0 --out met &
first=$!
strangers=
for word in bytes silent slow; do
    python3 "$here/rendezvous.py" "$port" $word >stranger.$word &
    strangers="$strangers $!"
done
for stranger in $strangers; do
    wait "$stranger" || fail 'a stranger does not find the port'
done
[ "$(cat stranger.*)" = "$(printf 'closed\nclosed\nclosed')" ] ||
    fail 'a stranger was not dropped'
rank 1 --out met &
ends 1 0 $!
ends 0 0 $first

# Rank 0 may not have so many connections.
next_port
env RANK=0 WORLD_SIZE=2 MASTER_ADDR=localhost MASTER_PORT="$port" sh -c \
    'ulimit -n 12; exec ./tiny --data data --out few' >said.0 2>&1 &
first=$!
python3 "$here/rendezvous.py" "$port" many >stranger.many
ends 0 4 $first
says 0 'rank 0 has no descriptors for connections to 2 ranks: .* ulimit -n'

# A rank of another version.
next_port
rank 0 --out versions &
first=$!
expect 0 python3 "$here/rendezvous.py" "$port" version
ends 0 2 $first
says 0 'a rank has a trainer of another version of sinter'

# A rank that ends while a third one is awaited.
next_port
for rank in 0 1; do
    env RANK=$rank WORLD_SIZE=3 MASTER_ADDR=localhost MASTER_PORT="$port" \
        ./tiny --data data --out gone >said.$rank 2>&1 &
    [ $rank -eq 1 ] || first=$!
done
second=$!
until find -L /proc/$second/fd -type s 2>why | grep -q .; do sleep 0.02; done
sleep 0.5
kill -KILL $second
ends 0 4 $first
says 0 'rank 1 ended before the run began'

# Another program has the port.
next_port
mkfifo control
python3 "$here/rendezvous.py" "$port" listen <control >listening &
exec 8>control
until [ -s listening ]; do sleep 0.02; done
rank 0 --out used &
ends 0 4 $!
says 0 "port $port: Address already in use; set MASTER_PORT to another port"
exec 8>&-

# A rank of an earlier run seeks its rank 0, and finds the next one's.
next_port
job=2
rank 0 --out jobs &
first=$!
job=1
rank 1 --out jobs &
ends 1 2 $!
says 1 'rank 0 at this address is of another run'
# One of another version of sinter is refused, too.
expect 0 python3 "$here/rendezvous.py" "$port" stale
job=2
rank 1 --out jobs &
ends 1 0 $!
ends 0 0 $first
job=

# Other data.
next_port
rank 0 --out data0 &
first=$!
rank 1 --out data1 --data other &
ends 1 3 $!
ends 0 4 $first
says 1 'rank 1 reads other data than rank 0'
