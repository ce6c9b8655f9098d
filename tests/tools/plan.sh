#!/bin/sh
# sinter plan: bytes and times of two layers by hand, the table, the drawing,
# and options that are refused.
set -u

. "$SINTER_SOURCE/tests/end_to_end/folder.sh"
schema="python3 $SINTER_SOURCE/tests/tools/schema.py $SINTER_SOURCE/docs/plan.schema.json"

cat >two.net <<'NET'
model Two(x: f32[N, 1024], width=2048) -> f32[N, 1024] {
  x |> linear(width) |> relu |> linear(1024)
}

train Two {
  data      = npy("data")
  input     = data.train
  batch     = 64
  epochs    = 1
  loss      = mean(cross_entropy(output, label))
  optimizer = sgd(lr=0.1)
}
NET

# planned NAME WORD...: the plan in NAME.json.
planned() {
    name=$1
    shift
    "$SINTER" plan --json two.net "$@" >"$name.json" || fail "plan $*"
    $schema "$name.json" || fail "$name.json is not as its schema says"
}
planned one --gpus=8
planned two --gpus=16 --link=3200Gb --latency=5us --svg=curve.svg
planned fast --gpus=16 --link=3200Gb --latency=5us --reduce=fast
planned odd --gpus=6 --per-node=3 --link=12.5GB
planned shards --gpus=4 --set shards=16
planned host --processes=2
planned hosts --processes=8 --per-node=2 --link=10Gb
"$SINTER" check --json --device=h200 --set shards=1 two.net >check.json

cat >plan.py <<'PY'
import json
from math import ceil, isclose, log2
read = lambda name: json.load(open(name + ".json"))
one, two, fast, odd = read("one"), read("two"), read("fast"), read("odd")
shards, host, check = read("shards"), read("host"), read("check")
hosts = read("hosts")

# Weights, biases, a loss and two counts at least; each may be padded.
floats = 1024 * 2048 + 2048 + 2048 * 1024 + 1024
for p in one, two, odd, shards, host, hosts:
    assert 4 * floats < p["summed_bytes"] <= 4 * floats + 12 * 256, p
    assert sum(b["bytes"] for b in p["buckets"]) == p["summed_bytes"]
    assert p["buckets"][-1]["ready"] <= p["shard_seconds"] * (1 + 1e-9)

CALL, NEAR = 8.4e-6, 3.4e-6

# The sum over n GPUs with k on each machine, as docs/scaling.md says.
def seconds(p, b):
    n, k = p["ranks"], p["ranks_of_machine"]
    near, far, latency = p["link_within"], p["link_between"], p["latency_between"]
    m = n // k
    ring = (m - 1) * latency + (n - m) * NEAR + (n - 1) / n * b / min(near, far or near)
    if p["reduce"] == "fast":
        return 2 * (CALL + ring)
    if m > 1 and k in (2, 4, 8):
        levels = (k - 1) * (NEAR + b / k / near) + (m - 1) * (latency + b / m / far)
        return 3 * CALL + levels + (1 + 2 / k + 1 / n) * b / 4.8e12 + ring
    inside = (k - 1) * (NEAR + b / n / near)
    outside = (n - k) * latency + k * (n - k) / n * b / far if far else 0
    return 2 * CALL + max(inside, outside) + (1 + 1 / n) * b / 4.8e12 + ring

def by_process(p, b):
    memory, n, k = p["memory_bandwidth"], p["ranks"], p["ranks_of_machine"]
    if n > k: # two levels, there and back
        m, calls = n // k, ceil(b / 2**22)
        near = (k - 1) * (calls * 5e-6 + b / k / p["link_within"])
        far = (m - 1) * (calls * p["latency_between"] + b / m / p["link_between"])
        return 2 * (near + far) + (1 + 2 / k + 1 / n) * b / memory
    return (5 + 1 / p["ranks"]) * b / memory + 2 * ceil(b / 2**20) * 5e-6

for p, formula in (one, seconds), (two, seconds), (fast, seconds), (odd, seconds), \
        (shards, seconds), (host, by_process), (hosts, by_process):
    end = 0
    for b in p["buckets"]:
        end = max(end, b["ready"]) + formula(p, b["bytes"])
        assert isclose(b["end"], end, rel_tol=1e-6), (b, end)
    total = sum(formula(p, b["bytes"]) for b in p["buckets"])
    exposed = total if p is host else end - p["shard_seconds"]
    if p is hosts:
        exposed = p["exposed_seconds"] # a part is busy
        assert end - p["shard_seconds"] <= exposed * (1 + 1e-6) <= total * (1 + 2e-6)
    assert isclose(p["communication_seconds"], total, rel_tol=1e-6)
    assert isclose(p["exposed_seconds"], exposed, rel_tol=1e-6)
    own = 0
    if p["shards_of_rank"] > 1: # a binary counter writes m terms and reads 2 m - 1
        own = (3 * p["shards_of_rank"] - 1) * p["summed_bytes"] / p["memory_bandwidth"]
    step = p["shards_of_rank"] * p["shard_seconds"] + own + exposed + p["update_seconds"]
    assert isclose(p["seconds_per_step"], step, rel_tol=1e-6), (p, step)
    assert isclose(p["samples_per_second"], p["samples"] / step, rel_tol=1e-6)
    alone = p["weak"][0]
    rate = p["samples_per_second"] / p["ranks"] / alone["samples_per_second"]
    assert isclose(p["efficiency"], rate, rel_tol=1e-6)

# The second layer's sum runs beside the first layer's gradients.
for p in host, two:
    assert len(p["buckets"]) >= 2
    assert p["buckets"][0]["ready"] < p["shard_seconds"]
assert two["exposed_seconds"] < two["communication_seconds"]

# Bytes that a rank and a machine send, by hand.
b = two["summed_bytes"]
assert abs(two["bytes_within"] - (7 / 8 + 15 / 16) * b) <= 1, two
assert abs(two["bytes_between"] - (1 / 2 + 15 / 16) * b) <= 1, two
o = odd["summed_bytes"]
assert abs(odd["bytes_between"] - (3 * 3 / 6 + 5 / 6) * o) <= 1, odd
assert abs(fast["bytes_between"] - 2 * 15 / 16 * b) <= 1, fast
assert one["bytes_between"] == 0 and one["link_between"] is None
assert abs(one["bytes_within"] - 2 * 7 / 8 * b) <= 1, one
assert odd["link_between"] == 12.5e9 and two["link_between"] == 400e9

# One GPU is the step that check estimates, with the gaps that merging saves.
gaps = (1.5e-6 - 0.7e-6) * (check["launches_without_joins"] - check["launches"])
step = 1e-6 * check["step_us_estimate_with_tile"] + gaps
assert isclose(one["weak"][0]["seconds_per_step"], step, rel_tol=1e-6)

# Each has 64 samples, or all together.
ranks = lambda p: [r["ranks"] for r in p["weak"]]
assert ranks(two) == [2**i for i in range(11)], ranks(two)
assert ranks(odd) == [1, 2] + [3 * 2**i for i in range(9)], ranks(odd)
assert ranks(one) == [1, 2, 4, 8] and ranks(host) == [1, 2]
for p in one, two, shards:
    for weak, strong in zip(p["weak"], p["strong"]):
        n = weak["ranks"]
        assert weak["samples"] == 64 * n
        divides = n <= (16 if p is shards else 64)
        assert (strong is not None) == divides, n
        assert strong is None or strong["samples"] == 64
assert odd["strong"][2] is None
assert (shards["shards_of_rank"], shards["batch_of_shard"]) == (4, 4)
assert shards["samples"] == 64 and one["samples"] == 8 * 64

# The largest batch has the same sums and takes longer.
largest = one["largest"]
assert largest["batch_of_shard"] > 100 * 64
assert largest["seconds_per_step"] > 100 * one["seconds_per_step"]
assert largest["exposed_seconds"] <= one["exposed_seconds"] * (1 + 1e-6)
PY
python3 plan.py || fail "the plan is wrong"

python3 "$SINTER_SOURCE/tests/tools/plot/plot.py" curve.svg curves=4 charts=2 points=36 \
    text=GPUs text=1 text=4 text=1024 text=efficiency || fail "curve.svg"

expect 0 "Two on 16 GPUs, 8 on each machine: NVIDIA H200" plan two.net --gpus=16 --link=400Gb
expect 0 "batch 64 on each GPU, 1024 in all" plan two.net --gpus=16 --link=400Gb
expect 0 "from each machine, at 50 GB/s" plan two.net --gpus=16 --link=400Gb
expect 0 "Tesla T4" plan two.net --gpus=2 --device=t4
expect 0 "from each GPU, at 15.75 GB/s" plan two.net --gpus=2 --device=t4
expect 0 "batch 4 x 4 on each GPU, 64 in all" plan two.net --gpus=4 --set shards=16
expect 2 "--gpus needs a number from 1 to 1024, not '0'" plan two.net --gpus=0
expect 2 "--link needs a rate as 400Gb" plan two.net --gpus=16 --link=fast
expect 2 "--link needs a rate as 400Gb" plan two.net --gpus=16 --link=400
expect 2 "--link needs a rate as 400Gb" plan two.net --gpus=16 --link=-1Gb
expect 2 "--latency needs a time as 14us" plan two.net --gpus=16 --link=1Gb --latency=3
expect 2 "8 ranks in a machine do not divide 12" plan two.net --gpus=12 --link=400Gb
expect 2 "16 ranks, 8 in a machine, need the network" plan two.net --gpus=16
expect 2 "plan needs the number of ranks: --gpus=N or --processes=N" plan two.net
expect 2 "not both" plan two.net --gpus=2 --processes=2
expect 2 "takes no --device" plan two.net --processes=2 --device=h200
expect 2 "3 ranks do not divide 16 shards" plan two.net --gpus=3 --set shards=16
expect 2 "no device 'h20'; did you mean h200?" plan two.net --gpus=2 --device=h20
sed '/^train/,$d' two.net >untrained.net
expect 1 "this file has no train block" plan untrained.net --gpus=2
exit $failed
