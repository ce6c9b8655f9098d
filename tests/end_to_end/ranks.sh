#!/bin/sh
# Ranks of one machine: the same weights and metrics for any number of them,
# and what happens when one is missing, differs or dies.  Beside PyTorch.
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"
. "$SINTER_SOURCE/tests/end_to_end/tiny.sh"
. "$SINTER_SOURCE/tests/end_to_end/start_ranks.sh"

# 150 samples in updates of 64: the last one fills two shards of eight and a
# half of another.
idx_data data 150
sed 's/, drop_last//' "$here/tiny.net" >tails.net
recipe='--set shards=8 --set lr=0.05 --set epochs=2 --set batch=64'
# shellcheck disable=SC2086
expect 0 "$SINTER" build tails.net $recipe -o tiny
expect 0 ./tiny --data data --out one --quiet
grep -q '"step":6,' one/metrics.jsonl || fail 'the last samples take no step'
for count in 2 4 8; do
    ranks $count "of$count" ./tiny --data data
    case $statuses in *[1-9]*) expect_statuses 0 ;; esac
    expect_equal "$(newest one)" "$(newest "of$count")"
    sed 's/"samples_per_second.*//; s/"seconds.*//' one/metrics.jsonl \
        >want
    sed 's/"samples_per_second.*//; s/"seconds.*//' \
        "of$count/metrics.jsonl" >got
    expect_equal want got
    sed -n 's/.*"split":"time".*"ranks":\([0-9.]*\),.*/\1/p' \
        "of$count/metrics.jsonl" | awk '{ exit !($1 > 0) }' ||
        fail 'the time that rank 0 waited for others is unknown'
done

# Six shards of two batches each, in subtrees of one, two and all of them; the
# seventh update of an epoch has one sample.
recipe='--set shards=6 --set accumulate=2 --set batch=12 --set lr=0.05'
# shellcheck disable=SC2086
expect 0 "$SINTER" build tails.net $recipe --set epochs=2 -o six
idx_data odd 145
expect 0 ./six --data odd --out six1 --quiet
for count in 3 6; do
    ranks $count "six$count" ./six --data odd
    case $statuses in *[1-9]*) expect_statuses 0 ;; esac
    expect_equal "$(newest six1)" "$(newest "six$count")"
done
ranks 2 six2 ./six --data odd
expect_statuses 2 2
says '2 ranks would have 3 of 6 shards each, which is no power of two'

# An evaluation of 145 samples in batches of two has each once, by any number of
# ranks.
expect 0 "$SINTER" build "$here/tiny.net" --set shards=1 --set batch=2 -o two
for count in 1 2 3 5 8; do
    ranks $count "two$count" ./two --data odd --eval-only \
        --init="$(newest six1)" --metrics="two$count.rows"
    case $statuses in *[1-9]*) expect_statuses 0 ;; esac
    sed 's/,"samples_per_second.*//' "two$count.rows" >got
    [ $count -eq 1 ] && cp got want
    expect_equal want got
done
grep -q '"accuracy":' want || fail 'no evaluation'

# Large sums, of confusion matrices, are taken of one rank after another.
sed 's/linear(10)/linear(200)/; s/N, 10]/N, 200]/
    s/\[accuracy, loss\]/[accuracy, loss, confusion]/' tails.net >matrix.net
expect 0 "$SINTER" build matrix.net --set shards=1 --set batch=16 -o matrix
expect 0 ./matrix --data odd --steps=3 --out matrix0 --quiet
for count in 1 3; do
    ranks $count "matrix$count" ./matrix --data odd --eval-only \
        --init="$(newest matrix0)" --metrics="matrix$count.rows"
    case $statuses in *[1-9]*) expect_statuses 0 ;; esac
    sed 's/,"samples_per_second.*//' "matrix$count.rows" >got
    [ $count -eq 1 ] && cp got want
    expect_equal want got
done
grep -q '"split":"confusion".*\[\[0,5,' want || fail 'no confusion matrix'

# sinter repeat and bench with the ranks that a command starts.
cat >two.sh <<'END'
#!/bin/sh
export WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=localhost MASTER_PORT=999 TORCHELASTIC_RUN_ID=$$
RANK=1 "$@" &
RANK=0 "$@" && wait $!
END
chmod +x two.sh
for launcher in '' "--launcher=$work/two.sh"; do
    # shellcheck disable=SC2086 # an option or nothing
    expect 0 "$SINTER" repeat tails.net $launcher --set shards=4 --set batch=32 \
        --set epochs=1 --data=odd --runs=2 --device=host --json
    python3 -c 'import json
results = json.load(open("out"))
print(results["seeds"], results["accuracy"], results["loss"])' >got || fail 'no result'
    [ -n "$launcher" ] || cp got want
done
expect_equal want got
expect 0 "$SINTER" bench tails.net "--launcher=$work/two.sh" --set shards=4 \
    --set batch=32 --runs=1 --steps=4
expect_says 'a step takes'

# Gradients in two buckets: the sum of the first goes on beside the rest of the
# backward pass.
wide='--set width=1500 --set shards=4 --set batch=32'
# shellcheck disable=SC2086
expect 0 "$SINTER" show plan --target=host "$models/mlp.net" $wide
[ "$(grep -c '^# bucket of .* ready after' out)" -eq 2 ] || fail "$(cat out)"
# shellcheck disable=SC2086
"$SINTER" show trainer "$models/mlp.net" $wide |
    sed -n '/^static void train_step(/,/^}/p' >step
grep -q RT_BACKWARD step || fail 'the trainer has no backward pass'
! grep -q RT_UPDATE step || fail "to store a bucket is part of the update"
# shellcheck disable=SC2086
expect 0 "$SINTER" build "$models/mlp.net" $wide -o wide
expect 0 ./wide --data synthetic --steps=3 --out wide1 --quiet
for count in 2 4; do
    ranks $count "wide$count" ./wide --data synthetic --steps=3
    case $statuses in *[1-9]*) expect_statuses 0 ;; esac
    expect_equal "$(newest wide1)" "$(newest "wide$count")"
done

# The first batch is repeated for all shards of all ranks.
for count in 1 4; do
    ranks $count "again$count" ./tiny --data data --repeat-batch
    case $statuses in *[1-9]*) expect_statuses 0 ;; esac
done
expect_equal "$(newest again1)" "$(newest again4)"
cmp -s "$(newest one)" "$(newest again1)" && fail 'no batch is repeated'

# Four ranks stop, and two go on.
ranks 4 moved ./tiny --data data --steps=2
expect_statuses 0 0 0 0
ranks 2 moved ./tiny --data data --resume
expect_statuses 0 0
expect_equal "$(newest one)" "$(newest moved)"

# Ranks that do not fit together.
ranks 3 three ./tiny --data data
expect_statuses 2 2 2
says '3 ranks do not divide 8 shards'
# shellcheck disable=SC2016
ranks 2 steps sh -c 'exec ./tiny --data data --steps=$((RANK + 1)) "$@"' sh
expect_statuses 2 2
says 'rank 1 has other options than rank 0: --steps, --epochs, --verify-every'
# shellcheck disable=SC2016
ranks 2 apart.npy sh -c '[ $RANK -eq 1 ] || set -- "$@" --predict data
    exec ./tiny "$@"' sh
expect_statuses 2 2
says 'rank 1 has other options than rank 0: .* --predict'
expect 0 "$SINTER" build "$here/tiny.net" -o alone
ranks 2 alone2 ./alone --data data
expect_statuses 2 2
says 'this trainer is for one process: build it with --set shards=2'
expect 0 "$SINTER" build "$here/tiny.net" --set shards=8 --set lr=0.01 -o other
RANK=1 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_PORT=900 TORCHELASTIC_RUN_ID=$$ \
    ./other --data data --out other1 >said.1 2>&1 &
RANK=0 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_PORT=900 TORCHELASTIC_RUN_ID=$$ \
    ./tiny --data data --out other0 >said.0 2>&1
[ $? -eq 2 ] || fail "a rank of another recipe was let in"
wait $!
says 'rank 1 has another model or recipe than rank 0'
RANK=2 WORLD_SIZE=2 expect 2 ./tiny --data data
expect_says 'RANK=2 is not a number from 0 to 1'

# Ranks on fewer cores than threads, once for all: each on its own, or on the
# same ones.
warns() {
    expect_statuses 0 0
    [ "$(cat said.* | grep -c 'warning: .*threads')" -eq 1 ] ||
        fail "$(cat said.*)"
    says "^warning: $1"
}
if [ "$(nproc)" -gt 1 ]; then
    # shellcheck disable=SC2016
    ranks 2 bound sh -c 'exec taskset -c $RANK "$@"' sh ./tiny --data data \
        --threads=2 --steps=1
    warns '2 of 2 ranks are bound to fewer cores than the 2 of --threads'
fi
for threads in 1 2; do
    ranks 2 crowded$threads taskset -c 0 ./tiny --data data \
        --threads=$threads --steps=1
    warns "2 ranks of one machine have $((2 * threads)) threads for its 1 proc"
done
ranks 2 limit env OMP_THREAD_LIMIT=1 ./tiny --data data --threads=2 --steps=1
[ "$(cat said.* | grep -c 'OMP_THREAD_LIMIT is 1')" -eq 1 ] ||
    fail "$(cat said.*)"
expect 0 taskset -c 0 ./tiny --data data --out one_core --threads=2 --steps=1
expect_says '^warning: 2 threads on 1 processor: they wait'

# Limits of rank 0: of the size of files, and of descriptors, which it raises.
limited() {
    # shellcheck disable=SC2016
    ranks "$1" limited sh -c \
        'limit=$1; shift; [ $RANK -gt 0 ] || ulimit $limit; exec ./tiny \
            --data data --steps=1 "$@"' sh "$2"
}
limited 2 '-f 1000'
expect_statuses 5 5
says 'cannot allocate 3 MiB of memory that the ranks share: .* ulimit -f'
limited 8 '-Sn 8'
case $statuses in *[1-9]*) expect_statuses 0 ;; esac

# An error that all ranks have is reported by each, and no rank waits for
# another.
ranks 2 diverged ./tiny --data data --epochs=1 --log-every=1 --init wild
expect_statuses 3 4
says 'wild'
expect 0 "$SINTER" build "$here/tiny.net" --set shards=8 --set lr=1e30 \
    --set batch=64 -o wild
ranks 4 diverged ./wild --data data --log-every=1
expect_statuses 6 6 6 6
says 'the loss is'

# A rank that is killed ends the others, and the run goes on from its last
# checkpoint.
expect 0 "$SINTER" build "$here/tiny.net" --set shards=4 --set epochs=100000 \
    --set batch=64 -o long

# wait_for_checkpoint: newer than $last.
wait_for_checkpoint() {
    tries=0
    while [ "$(newest killed 2>/dev/null)" = "$last" ]; do
        tries=$((tries + 1))
        [ $tries -lt 3000 ] || fail 'no checkpoint of ranks'
        sleep 0.02
    done
    last=$(newest killed)
}

background=1
last=
ranks 4 killed ./long --data data
wait_for_checkpoint
kill -KILL "${list##* }"
join
expect_statuses 4 4 4 137
says 'rank 3 ended after step [0-9]*, so rank 0 ends after step'
last=$(newest killed)
ranks 2 killed ./long --data data --resume
wait_for_checkpoint
kill -TERM "${list##* }"
join
says 'stopped at step'

# Two ranks lose what two of DistributedDataParallel do (tests/pytorch/ddp.py),
# which computes in double.
background=
idx_data data 128
expect 0 "$SINTER" build "$here/ddp.net" -o ddp
ranks 2 ddp_run ./ddp --data data --log-every=1
expect_statuses 0 0
sed -n 's/.*"split":"step".*"loss":\([^,]*\),.*/\1/p' ddp_run/metrics.jsonl |
    paste - "$here/ddp.losses" | awk '
    { d = $1 / $2 - 1; if (d < 0) d = -d; if (d > most) most = d }
    END { print "of 20 losses, the largest difference is " most
          exit !(NR == 20 && most < 1e-5) }' ||
    fail "the losses of two ranks differ from PyTorch's"
