#!/bin/sh
# sinter check: the machine that is planned for, and the times of a step and an
# epoch: of a described GPU the roofline of its launches, of the processors here
# from measured peaks; and the memory of a long sequence.
set -u

. "$SINTER_SOURCE/tests/end_to_end/folder.sh"
schema="python3 $SINTER_SOURCE/tests/tools/schema.py $SINTER_SOURCE/docs/check.schema.json"
resnet9=$models/resnet9.net

"$SINTER" check --json --device=h200 "$resnet9" >h200.json
"$SINTER" check --json --device=h200 --samples=5120 "$models/mlp.net" >mlp.json
"$SINTER" show kernels --json --device=h200 --graph=train "$resnet9" >kernels.json
for batch in 64 256; do
    "$SINTER" check --json --target=host --set width=8 --set batch=$batch \
        "$resnet9" >host-$batch.json
done
for shards in 1 2 6; do
    "$SINTER" check --json --device=h200 --samples=5120 "$models/mlp.net" \
        --set batch=24 --set shards=$shards --set accumulate=2 >shards-$shards.json
done
for file in h200 mlp host-64 host-256 shards-1 shards-2 shards-6; do
    $schema $file.json || fail "$file.json is not as its schema says"
done
cat >times.py <<'END'
import json
read = lambda name: json.load(open(name + ".json"))
h200, mlp, kernels = read("h200"), read("mlp"), read("kernels")
assert h200["device"] == "NVIDIA H200"
assert h200["estimate"] == "roofline of described peaks"
launches = sum(l["roofline_seconds"] for l in kernels["launches"])
assert 0.98 < h200["seconds_per_step"] / launches < 1.1, launches
# Four schedulers of each multiprocessor that has a block issue an instruction in
# a cycle.  No more blocks are resident than the launch has for each.
for l in kernels["launches"]:
    if l["estimate"]:
        slots = l["estimate"]["issue_seconds"] * 4 * 1.98e9 * min(l["blocks"], 132)
        assert slots > 0.999 * sum(l["estimate"]["instructions"].values()), l["name"]
        assert l["estimate"]["resident_blocks"] <= -(-l["blocks"] // 132), l["name"]
# A thread of an update loads a gradient in 16 bits, a parameter and a momentum,
# of two turns of four elements each, before it stores the first.
update = next(l["estimate"] for l in kernels["launches"] if l["name"].endswith("_update"))
assert update["bytes_in_flight"] == 256 * update["resident_blocks"] * 8 * (2 + 4 + 4)
# 512 of 50,000 samples, and the last ones are dropped.
assert abs(h200["seconds_per_epoch"] / h200["seconds_per_step"] - 97) < 1e-6
assert h200["samples_per_epoch"] == 50000
assert abs(mlp["seconds_per_epoch"] / mlp["seconds_per_step"] - 40) < 1e-6
# n batches of an update: a tree stores n sums and reads n terms and n - 1 sums.
one, two, six = (read("shards-%d" % n) for n in (1, 2, 6))
assert one["seconds_per_step_in_one_shard"] is None
assert one["shard_sum_bytes"] / 5 == two["shard_sum_bytes"] / 11
assert one["shard_sum_bytes"] / 5 == six["shard_sum_bytes"] / 35
assert 4 * one["parameters"] <= one["shard_sum_bytes"] / 5 < 4.2 * one["parameters"]
for some in two, six:
    assert some["seconds_per_step_in_one_shard"] == one["seconds_per_step"]
    assert some["seconds_per_step"] > one["seconds_per_step"] + (
        some["shard_sum_bytes"] - one["shard_sum_bytes"]) / some["peak_bandwidth"]
small, large = read("host-64"), read("host-256")
assert small["estimate"] == "shares of measured peaks"
assert "thread" in small["device"], small["device"]
assert 1e9 < small["peak_flops"] < 1e15
assert 1e8 < small["peak_bandwidth"] < 1e14
# Peaks are measured each time, so the estimate is compared with the formula at
# its own: library calls have 80 % of the peak, with vectors that may be half
# empty, and kernels 12 %, with at most 4 operations for each byte that they move.
for host in small, large:
    train = next(s for s in host["steps"] if s["name"] == "train")
    memory = train["bytes_moved"] / host["peak_bandwidth"]
    calls = host["flops_step"] / host["peak_flops"] / 0.8
    kernels = 4 * train["bytes_moved"] / host["peak_flops"] / 0.12
    launches = 5e-6 * host["launches"]
    least = max(memory, calls) + launches
    most = memory + 2 * calls + kernels + launches
    assert least <= host["seconds_per_step"] <= most, (least, most, host)
assert large["flops_step"] == 4 * small["flops_step"]
END
python3 times.py || fail "the times are wrong"

# No tensor grows with the square of a sequence's length.
for target in cuda host; do
    for length in 1024 2048; do
        "$SINTER" check --json --target=$target "$models/gpt_nano.net" \
            --set batch=$((65536 / length)) \
            --set "data=synthetic(vocabulary=65, shape=[$length])" \
            >$target-$length.json
    done
done
cat >arenas.py <<'END'
import json
for target in "cuda", "host":
    arena = [json.load(open("%s-%d.json" % (target, length)))["arena_bytes"]
             for length in (1024, 2048)]
    assert arena[0] < 900 << 20, (target, arena)
    assert arena[1] < 1.1 * arena[0], (target, arena)
END
python3 arenas.py || fail "a tensor of attention has length x length elements"

# The peaks are measured in the memory that there is.
if [ -z "${SINTER_SANITIZED:-}" ]; then
    (
        ulimit -v 160000
        "$SINTER" check --json --target=host "$models/mlp.net"
    ) >narrow.json
    grep -q '"seconds_per_step": [0-9]' narrow.json ||
        fail "no estimate in little memory: $(cat narrow.json)"
fi

# Without a GPU, this machine is the host.
if ! ls /dev/nvidia* >/dev/null 2>&1; then
    expect 0 "plan for host in f32: " check "$models/mlp.net"
    expect 0 " estimated, from measured peaks of " check "$models/mlp.net"
fi
expect 0 "plan for cuda in f32: NVIDIA H200" check --target=cuda "$models/mlp.net"
expect 0 "plan for cuda in f32: Tesla T4" check --device=t4 "$models/mlp.net"
expect 0 "unknown: give the number of samples with --samples=N" check --device=t4 "$models/mlp.net"
exit $failed
