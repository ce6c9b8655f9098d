#!/bin/sh
# Ranks that own parts of the optimizer's states: the same weights as without
# parts, checkpoints that do not depend on the number of ranks, and less memory.
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"
. "$SINTER_SOURCE/tests/end_to_end/tiny.sh"
. "$SINTER_SOURCE/tests/end_to_end/start_ranks.sh"

idx_data data 150
cat >mixed.net <<'NET'
model Mixed(image: u8[N, 12, 12, 1]) -> f32[N, 10] {
  image
    |> normalize(mean=[128], std=[64])
    |> conv(8, 3, bias=false) |> batch_norm |> relu as first
    |> conv(8, 3) |> relu                           as second
    |> global_max_pool
    |> linear(16) |> relu
    |> linear(12) |> relu
    |> linear(10)
}

train Mixed {
  data      = idx("data")
  batch     = 64
  shards    = 8
  epochs    = 2
  precision = mixed(f16)
  loss      = mean(cross_entropy(output, label))
  optimizer = OPTIMIZER
  clip      = norm(0.5)
  average   = ema(0.9)
  params "first.*" { optimizer = sgd(lr=0.02, momentum=0.9) }
  freeze "*.bias" after 1 epoch
  eval every 1 step on data.test { metrics = [accuracy, loss] }
  checkpoint every 2 step keep 9
  checkpoint best loss keep 1
}
NET

# All states of two checkpoints, whatever their order and metadata.
cat >equal.py <<'PYTHON'
import json
import struct
import sys


def states(path):
    with open(path, "rb") as f:
        data = f.read()
    start = 8 + struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:start])
    header.pop("__metadata__")
    return {name: data[start + t["data_offsets"][0]:
                       start + t["data_offsets"][1]]
            for name, t in header.items()}


one, other = map(states, sys.argv[1:])
differ = [name for name in {*one, *other} if one.get(name) != other.get(name)]
sys.exit("these states differ: %s" % differ if differ else 0)
PYTHON

# Adam beside sgd, and nadam, whose parameters share a state.
for name in adam nadam; do
    sed "s/OPTIMIZER/$name(lr=0.01)/" mixed.net >"$name.net"
    expect 0 "$SINTER" build "$name.net" -o "$name.whole"
    expect 0 "./$name.whole" --data data --out "$name.0" --quiet
    expect 0 "$SINTER" build "$name.net" --set optimizer_shards=4 -o "$name"
    expect 0 "./$name" --data data --out "$name.1" --quiet
    expect 0 python3 equal.py "$(newest "$name.0")" "$(newest "$name.1")"
done

# Muon, whose matrices go through its iterations together with those of their
# shard.
sed 's/OPTIMIZER/adam(lr=0.01)/
    /^  params/a\  params "linear_*.weight" { optimizer = muon(lr=0.02) }' \
    mixed.net >muon.net
expect 0 "$SINTER" build muon.net --set optimizer_shards=3 -o muon
expect 0 ./muon --data data --out muon.1 --quiet
for run in adam.2 adam.4 nadam.4 muon.4; do
    ranks "${run#*.}" "$run" "./${run%.*}" --data data
    case $statuses in *[1-9]*) expect_statuses 0 ;; esac
    expect_equal "$(newest "${run%.*}.1")" "$(newest "$run")"
done

# Runs stop, and go on with other numbers of ranks; repeated steps are compared.
ranks 4 moved ./adam --data data --steps=2
expect_statuses 0 0 0 0
ranks 2 moved ./adam --data data --resume --steps=2 --verify-every=1
expect_statuses 0 0
expect 0 ./adam --data data --resume --out moved --quiet
expect_equal "$(newest adam.1)" "$(newest moved)"
expect_equal "$(find adam.1 -name 'best*')" "$(find adam.4 -name 'best*')"

# Memory: the arena of the plan, but for the shards of others, in the log of rank
# 0; and the most that each process had.
wide='--set width=1500 --set shards=4 --set batch=32'
# shellcheck disable=SC2086
expect 0 "$SINTER" check --json "$models/mlp.net" $wide --target=host \
    --set optimizer_shards=4
sed -n 's/.*"optimizer_shard_bytes": \[\([^]]*\)\].*/\1/p' out |
    tr -d ' ' | tr , '\n' >parts
[ "$(wc -l <parts)" -eq 4 ] || fail "$(cat out)"
arena=$(sed -n 's/.*"arena_bytes": \([0-9]*\),.*/\1/p' out)
# shellcheck disable=SC2086
expect 0 "$SINTER" build "$models/mlp.net" $wide --set optimizer_shards=4 \
    -o wide
cat >peak.py <<'PYTHON'
import os
import resource
import sys

words = [word for word in sys.argv[1:] if word != "--quiet"]
status = os.spawnvp(os.P_WAIT, words[0], words)
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
with open("peak." + os.environ["RANK"], "w") as f:
    print(peak, file=f)
sys.exit(status)
PYTHON

# peaks COUNT: the most memory that a rank of so many had.
peaks() {
    rm -f peak.*[0-9]
    ranks "$1" "wide.$1" python3 peak.py ./wide --data synthetic --steps=2
    case $statuses in *[1-9]*) expect_statuses 0 ;; esac
    mib=$(sed -n 's/^memory: .*, \(.*\) MiB of it the arena/\1/p' \
        "wide.$1/log.txt")
    # The shards of rank 0 are the first; pages are whole.
    awk -v arena="$arena" -v own=$((4 / $1)) -v mib="$mib" '
        { all += $1; if (NR <= own) kept += $1 }
        END { d = (arena - all + kept) / 1048576 - mib
              exit !(d < 0.1 && d > -0.1) }' parts ||
        fail "an arena of $mib MiB on each of $1 ranks"
    most=$(sort -n peak.*[0-9] | tail -n 1)
}
peaks 4
of4=$most
peaks 2
expect_equal "$(newest wide.4)" "$(newest wide.2)"
# Two ranks have two shards each, four have one.
part=$(sort -n parts | head -n 1)
[ $((most - of4)) -gt $((part * 9 / 10)) ] ||
    fail "two ranks take $most bytes, four $of4, and a shard has $part"
