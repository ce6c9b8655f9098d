#!/bin/sh
# shellcheck disable=SC2154 # here is of expect.sh
# sinter repeat: what it tells of a seed is what a trainer of that seed leaves,
# and the rows below are of these numbers.
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"
. "$SINTER_SOURCE/tests/end_to_end/tiny.sh"
micro=$here/micro.net

expect 0 "$SINTER" build "$micro" -o micro
expect 0 "$SINTER" repeat "$micro" --data=synthetic:64 --runs=3 --seed=4 -o kept
mv out table
expect_file() {
    grep -q -e "$1" table || fail "the table does not say $1: $(cat table)"
}
expect_file "^Micro, 3 runs from seed 4$"
for seed in 4 5 6; do
    expect 0 ./micro --data=synthetic:64 --seed=$seed --quiet --out=$seed \
        --metrics=$seed.rows
    expect_equal "$(newest $seed)" "$(newest kept/$seed)"
    sed -n 's/.*"split":"test".*"loss":\([^,]*\),"accuracy":\([^,]*\).*/\1 \2/p' \
        $seed.rows | tail -n 1 >result
    read -r loss accuracy <result
    awk -v seed=$seed -v loss="$loss" -v accuracy="$accuracy" '
        $1 == seed {
            found = $2 == sprintf("%.2f", 100 * accuracy) &&
                    $3 == sprintf("%.4f", loss) && $5 >= $4
        }
        END { exit !found }' table || fail "seed $seed: $(cat table)"
done
# 0.005 and 0.00005 are the most that a printed number is off, and so is a mean
# of them.
awk '$1 ~ /^[456]$/ { n++; a[n] = $2; sum += $2; loss += $3 }
     $1 == "mean" { mean = $2; mean_loss = $3 }
     $1 == "deviation" { deviation = $2 }
     $1 == "least" { least = $2 }
     $1 == "most" { most = $2 }
     function off(x, y) { return x > y ? x - y : y - x }
     END {
         for (i = 1; i <= n; i++) square += (a[i] - sum / n) ^ 2
         exit !(n == 3 && off(mean, sum / n) < 0.011 &&
                off(mean_loss, loss / n) < 0.00011 &&
                off(deviation, sqrt(square / (n - 1))) < 0.011 &&
                least <= mean && mean <= most && most > least)
     }' table || fail "the rows below are of other numbers: $(cat table)"

# What has ended is taken up by a call for the same, and by no other; what has
# not is made again.  The same model is the same trainer.
again() {
    taken=$1
    shift
    expect 0 "$SINTER" repeat micro --data=synthetic:64 -o kept --json "$@"
    expect_says "\"reused\": $taken, "
}
again 3 --runs=4 --seed=4
mv out before
cp kept/5.rows rows
again 4 --runs=4 --seed=4
sed 's/"reused": 3/"reused": 4/' before >right
expect_equal right out
expect_equal rows kept/5.rows
rm kept/5.ended
again 3 --runs=4 --seed=4
cmp -s rows kept/5.rows && fail "a run that has not ended is taken up"
: >kept/6.ended
again 1 --runs=2 --seed=6
rm kept/7.rows
again 1 --runs=2 --seed=6
cp micro same
expect 0 "$SINTER" build "$micro" --set epochs=19 -o micro
again 0 --runs=1 --seed=4
mv same micro
again 0 --runs=1 --seed=4
again 0 --runs=1 --seed=4 --data=synthetic:32
# A trainer has a thread for each processor, and the bits are theirs.
if [ "$(nproc)" -gt 1 ] && command -v taskset >/dev/null; then
    again 0 --runs=1 --seed=4
    again 1 --runs=1 --seed=4
    first=$(taskset -cp $$ | sed 's/.*: \([0-9]*\).*/\1/')
    taskset -c "$first" "$SINTER" repeat micro --data=synthetic:64 -o kept \
        --json --runs=1 --seed=4 >out 2>err
    expect_says "\"reused\": 0, "
fi
expect 0 "$SINTER" repeat micro --data=synthetic:64 -o kept --seed=6 --runs=2
expect_says "^results reused from an earlier call: 2$"

# What is held out is what is told of, and another run than one without.
expect 0 "$SINTER" repeat micro --data=synthetic:64 --validation=16 -o kept \
    --seed=6 --runs=2
grep -q taken out && fail "a run that holds nothing out is taken up"
mv out table
expect_file "^micro, 2 runs from seed 6, evaluated on held-out samples$"
expect 0 ./micro --data=synthetic:64 --validation=16 --seed=6 --quiet --out=held
expect_equal "$(newest held)" "$(newest kept/6)"
expect 0 "$SINTER" repeat micro --data=synthetic:64 --validation=16 -o kept \
    --seed=6 --runs=2 --json
expect_says '"data": "synthetic:64", "validation": "16", "runs": 2, .*"reused": 2'

# A trainer that is there already, as one object; nothing of it is left.
mkdir clean
expect 0 env TMPDIR="$work/clean" "$SINTER" repeat micro --data=random --runs=2 \
    --json
expect_says '^{"schema": 2, "model": "micro", "device": "auto", "data": "synthetic", "runs": 2, "diverged": 0, "reused": 0, "seeds": \[0, 1\], "accuracy": \['
# Seconds with all their digits: in the table such a run takes none.
python3 - out <<'END' || fail "seconds: $(cat out)"
import json, sys
found = json.load(open(sys.argv[1]))
assert len(found["training_s"]) == len(found["total_s"]) == 2
for part, whole in zip(found["training_s"], found["total_s"]):
    assert 0 < part < whole
END
[ -z "$(ls clean)" ] || fail "it leaves $(ls clean)"
expect 2 "$SINTER" repeat micro --set lr=1
expect_says "is a trainer, but compiler options"

# Every run has the same warning, which is printed once.
sed '/optimizer/a\  freeze "hidden.*"' "$micro" >frozen.net
expect 0 "$SINTER" repeat frozen.net --data=synthetic:64 --runs=3
[ "$(grep -c '^warning: hidden.weight and 1 more' err)" = 1 ] || fail "$(cat err)"

# One that diverges is told of, and ends it with that status behind the others.
expect 6 "$SINTER" repeat "$micro" --data=synthetic:64 --runs=2 \
    --set "optimizer=sgd(lr=1e30)"
expect_says "^0  *diverged"
expect_says "^1  *diverged"

# What ends it has ended the run, which writes its checkpoint, before.
TMPDIR=$work/clean "$SINTER" repeat "$micro" --data=synthetic:64 \
    --set epochs=100000 -o ended >out 2>&1 &
until [ -s ended/0.rows ]; do
    kill -0 $! || fail "there is nothing to end: $(cat out)"
    sleep 0.1
done
kill $!
wait $! && fail "it ends well"
[ -e "$(newest ended/0)" ] || fail "the run goes on"
grep -q '^stopped at step' out || fail "the trainer's last lines are lost"
! grep -q diverged out || fail "$(cat out)"

expect 2 "$SINTER" repeat "$micro" --data=nowhere --runs=2
expect_says "this trainer generates its data"
expect 2 "$SINTER" repeat "$micro" --runs=0
expect_says "runs needs a number from 1 to 1000"
expect 2 "$SINTER" repeat "$micro" --seed=2147483647
expect_says "seed needs a number from 0"
cp micro unable
chmod -x unable
expect 74 "$SINTER" repeat unable --data=random
expect_says "^sinter: cannot start ./unable: Permission denied$"
# What is a program and no trainer ends well, too; what a signal ends could not
# say so.
expect 2 "$SINTER" repeat /bin/true
expect_says "^sinter: /bin/true is not a trainer: it exited with status 0 but reported no run$"
echo '#include <signal.h>
int main(void) { return raise(SIGKILL); }' >killed.c
expect 0 "${CC:-cc}" -o killed killed.c
expect 137 "$SINTER" repeat killed
expect_says "^sinter: ./killed was killed by signal 9, Killed$"
expect 74 "$SINTER" repeat micro --data=random -o nowhere/else
expect_says "nowhere/else"
exit 0
