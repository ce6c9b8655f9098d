#!/bin/sh
# shellcheck disable=SC2154 # here and work are of expect.sh
# sinter lrfind: the rate rises as it says, the losses are those of the steps that
# were made, and what it suggests follows from them.
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"
. "$SINTER_SOURCE/tests/end_to_end/tiny.sh"
tiny=$here/tiny.net
micro=$here/micro.net

find() {
    want=$1
    shift
    expect "$want" "$SINTER" lrfind "$@"
}

# follows: the JSON in out is what its own losses make of it.
follows() {
    python3 - out <<'END' || fail "$* $(cat out)"
import json, math, sys
found = json.load(open(sys.argv[1]))
points, keep, steps = found["points"], found["smoothing"], found["steps"]
assert keep == min(0.98, 1 - 5 / steps) or abs(keep - 1 + 5 / steps) < 1e-8
mean = 0
for i, p in enumerate(points):
    rate = found["from"] * (found["to"] / found["from"]) ** (
        (p["step"] - 1) / (steps - 1))
    assert abs(p["rate"] / rate - 1) < 1e-4, p
    mean = keep * mean + (1 - keep) * p["loss"]
    smooth = mean / (1 - keep ** (i + 1))
    assert abs(p["smoothed"] / smooth - 1) < 1e-6, p
    over = smooth > 4 * min(q["smoothed"] for q in points[:i + 1])
    assert not over or i == len(points) - 1, p
first = round(1 / (1 - keep))
if found["least"] is not None:
    least = min(points[first:], key=lambda p: p["smoothed"])
    assert abs(found["least"] / least["rate"] - 1) < 1e-8
    assert abs(found["tenth"] / found["least"] - 0.1) < 1e-8
    assert points[first]["rate"] <= found["fastest"] <= found["least"]
    half = min(first // 2, points.index(least) - first)
    slope = [(points[i + half]["smoothed"] - points[i - half]["smoothed"]) /
             math.log(points[i + half]["rate"] / points[i - half]["rate"])
             for i in range(first, points.index(least) - half + 1)]
    fastest = points[first + slope.index(min(slope))]["rate"]
    assert abs(found["fastest"] / fastest - 1) < 1e-8
END
}

# A network that learns, and is lost at the largest rates: the key lr is set.
find 0 "$tiny" --data=random --device=host
expect_says "^Tiny on host, data synthetic:2176, batch 64: lr rises from 1e-06 to 10 in 100 steps$"
expect_says "^the loss is smoothed by an exponential average with factor 0.95$"
expect_says "^ *1  *1e-06  *[0-9.]*  *[0-9.]*$"
expect_says "^the loss fell from [0-9.]*, fastest at rate 0\.00[0-9]*, to its minimum, "
expect_says "^try 0\.00[0-9]*, the rate of the fastest fall, or 0\.[0-9]*, a tenth of"
expect_says "^this is one short run"
lines=$(grep -c '^ *[0-9]' out)
[ "$lines" -ge 18 ] || fail "$lines lines: $(cat out)"
[ "$lines" -le 21 ] || fail "$lines lines: $(cat out)"
find 0 "$tiny" --data=random --json --to=1e4 --steps=60
grep -q '"device": "auto", "key": "lr", .*"diverged": true, ' out ||
    fail "1e4: $(head -n 1 out)"
grep -q '"fastest": [0-9]' out || fail "nothing was found: $(head -n 1 out)"
follows "with the key lr"

# Where there is none it is the optimizer's, in an argument that is not there.
find 0 "$micro" --json --from=1e-12 --to=1e-10 --steps=20 --set "optimizer=adam()"
grep -q '"key": "optimizer.lr", .*"least": null, ' out ||
    fail "rates of nothing: $(head -n 1 out)"
follows "without a key lr"
find 0 "$micro" --from=1e-12 --to=1e-10 --steps=20
expect_says "^at no rate did the loss fall by more than its noise$"

# That the run diverges is no failure.
find 0 "$micro" --from=1e20 --to=1e30 --steps=20
expect_says "^the loss diverged in step [1-3], which ends the test$"

# The scale of the loss is too large for these gradients, and is halved step by
# step: what that skips is no step of the test.
find 0 "$micro" --json --steps=20 --set precision=f16 --set "clip=value(1)" \
    --set "loss=mean(2e35 * cross_entropy(output, label))"
skipped=$(sed -n 's/.*"skipped": \([0-9]*\), .*/\1/p' out)
[ "$skipped" -ge 2 ] || fail "$skipped steps skipped: $(cat out)"
[ "$(grep -c '^ {"step": ' out)" -eq $((20 - skipped)) ] ||
    fail "not 20 steps: $(cat out)"
! grep -q '{"step": 1,' out || fail "what was skipped: $(cat out)"
follows "with steps that are skipped"

# From 65536 it is 1 after 16 of them, and the step after ends the run.
sed 's/relu as hidden/scale(0) |> sqrt/' "$micro" >root.net
find 0 root.net --steps=20 --set precision=f16
expect_says "^the loss scale reached its minimum in step 17, which ends the test$"

# A run may be shorter than the test.
idx_data data 128
find 0 "$tiny" --data=data
expect_says "^the recipe ends the run after 6 steps; --set"
find 0 "$tiny" --data=data --validation=50%
expect_says "^the recipe ends the run after 3 steps"
find 0 "$micro" --set steps=12 --json
grep -q '"steps": 12, ' out || fail "12 steps: $(cat out)"
follows "of a run of 12 steps"

# What the file says is trained on, or nothing; and nothing is evaluated or saved
# on the way.
mkdir elsewhere
cat >keeps <<'END'
#!/bin/sh
cp ./*.c "$KEPT"
exec "$COMPILER" "$@"
END
chmod +x keeps
cd elsewhere || exit 1
find 3 "$tiny"
expect_says "no data in data; name its folder with --data DIR"
cd ..
COMPILER="${CC:-cc}" KEPT="$work/kept.c" CC="$work/keeps" find 0 "$tiny"
expect_says "^Tiny, data data, batch 64: "
grep -q "eval_every = {0.0, " kept.c || fail "it evaluates"
grep -q "checkpoint_every = {0.0, " kept.c || fail "it saves"

# A run whose loss is lost is not waited for, nor what comes behind its last
# step.
cat >trainer <<'END'
#!/bin/sh
for word; do
    case $word in --metrics=*) rows=${word#*=} ;; esac
done
for i in $(seq 20); do
    loss=$((i <= 12 ? 1 : HIGHER))
    echo "{\"split\":\"step\",\"step\":$i,\"loss\":$loss,\"lr\":0.$i}" >>"$rows"
done
printf '{"split":"step","loss":' >>"$rows"
exec sleep 300
END
cat >builds <<'END'
#!/bin/sh
while [ "$1" != -o ]; do shift; done
cp "$TRAINER" "$2" && chmod +x "$2"
END
chmod +x builds
export TRAINER="$work/trainer"
for higher in 90 1; do
    HIGHER=$higher CC="$work/builds" expect 0 timeout 60 "$SINTER" lrfind \
        "$micro" --steps=20 --json
    lost=$([ $higher = 90 ] && echo true || echo false)
    grep -q "\"diverged\": $lost, " out || fail "diverged: $(head -n 1 out)"
done
expect_says '{"step": 20, '

# What a signal ends is told so.
cat >trainer <<'END'
#!/bin/sh
kill -KILL $$
END
CC="$work/builds" find 137 "$micro" --steps=20
expect_says "^sinter: trainer, built with -O1, was killed by signal 9, Killed: it printed no message$"
cat >killed <<'END'
#!/bin/sh
kill -SEGV $$
END
chmod +x killed
CC="$work/killed" find 139 "$micro" --steps=20
expect_says "^sinter: $work/killed was killed by signal 11, Segmentation fault while compiling$"

find 2 "$micro" --steps=9
expect_says "^sinter: --steps needs a number from 10 to 1000000, not '9'"
find 2 "$micro" --from=1 --to=1
expect_says "^sinter: --from=1 must be below --to=1$"
find 2 "$micro" --to=0
expect_says "^sinter: --to needs a rate from 1e-30 to 1e30, not '0'$"
sed 's/^  optimizer = \(.*\)/  params "*" { optimizer = \1 }/' "$micro" >groups.net
find 1 groups.net
expect_says "^error\[E0409\]: the train block has no key .optimizer.$"
