#!/bin/sh
# A trace of some steps, on the host and on the stand-in for a GPU, and the time
# budget: parts that add up to the run.
. "$SINTER_SOURCE/tests/runtime/cuda/double.sh"
. "$SINTER_SOURCE/tests/end_to_end/tiny.sh"

command -v python3 >/dev/null || exit 77
export SINTER_DOUBLE_THREADS=1
unset SINTER_DOUBLE_IMAGES # compiling is most of a start

expect 0 "$SINTER" build "$here/tiny.net" -o tiny

# An epoch of twelve steps: of six traced ones the last need batches that the
# loader, which is at most four ahead, cannot have had when the first began.
data='--data=synthetic:768 --epochs=1'

# profile DEVICE STEPS OPTION...: some of the steps are in DEVICE.json.
profile() {
    device=$1 steps=$2
    shift 2
    rm -rf run
    began=$(date +%s.%N)
    expect 0 ./tiny --device="$device" $data --threads=1 --out=run --time \
        --metrics=rows --profile="$device.json" "$@"
    seconds=$(echo "$(date +%s.%N) $began" | awk '{ print $1 - $2 }')
    expect_says "a trace of steps 4 to $((3 + steps))"
    python3 "$SINTER_SOURCE/tests/runtime/cuda/trace.py" "$device.json" "$steps" \
        "$device" "$seconds" >&2 || fail "$device: the trace"
    python3 "$SINTER_SOURCE/tests/runtime/cuda/slowest.py" "$device.json" \
        "$steps" out >&2 || fail "$device: the table of launches"
    sed -n 's/.*"split":"test".*"loss":\([^,]*\).*/\1/p' rows >"$device.losses"
}

# A trace may go to standard output, and the rest to standard error then.
expect 0 ./tiny --device=host $data --out=run --profile=-
[ ! -e ./- ] || fail "there is a file -"
expect_says "^standard output has a trace of steps 4 to"
python3 -c 'import json; json.load(open("out"))["traceEvents"]' >&2 ||
    fail "no trace: $(head -c 300 out)"

# started DEVICE: whether the parts of the start add up to it, and no part of
# this device is missing.
started() {
    awk -v device="$1" '{ is[$1] = $2 }
        $1 ~ /^start_/ { sum += $2; parts++ }
        END {
            off = sum - is["start"]
            if (parts != 11 || off < -0.0001 || off > 0.0001) exit 1
            # A GPU that is being opened hides the reading of data.
            gpu = device != "host"
            if (!(is["start_device"] > 0 && (gpu || is["start_data"] > 0) &&
                  is["start_memory"] > 0 && is["start_states"] > 0)) exit 2
            if ((is["start_context"] > 0) != gpu ||
                (is["start_libraries"] > 0) != gpu ||
                (is["start_loading"] > 0) != gpu) exit 3
            # With an empty cache nothing takes as long as compiling.
            if (gpu && is["start_compiling"] < is["start"] / 2) exit 4
        }' budget || fail "$1: the start ($?)"
}

for device in host cuda:0; do
    profile $device 6 --profile-steps=6
    expect_says "^library calls"
    expect_says "^augmentation"
    expect_says "^checkpoints"
    sed -n 's/.*"split":"time",//p' rows | tr -d '"}' | tr ',:' '\n ' >budget
    awk '{ is[$1] = $2 }
        function apart(a, b) { return a < b - 0.02 || a > b + 0.02 }
        END {
            sum = is["start"] + is["waiting"] + is["copies"] + \
                is["augmentation"] + is["kernels"] + is["calls"] + \
                is["evaluation"] + is["checkpoints"] + is["other"]
            if (apart(sum, is["total"])) exit 1
            if (!(is["kernels"] > 0 && is["calls"] > 0 && is["loading"] > 0 &&
                  is["augmentation"] > 0 && is["evaluation"] > 0 &&
                  is["checkpoints"] > 0)) exit 2
            if (is["waiting"] > is["waited_for_data"] + 0.001) exit 3
        }' budget || fail "$device: the budget ($?)"
    started $device
    [ $device = host ] || expect_says "^start: .* s compiling"
    # Looking changes nothing.
    mv $device.losses traced
    rm -rf run
    expect 0 ./tiny --device=$device $data --threads=1 --out=run --metrics=rows
    sed -n 's/.*"split":"test".*"loss":\([^,]*\).*/\1/p' rows >plain
    expect_equal traced plain
done

# Without events a step has one part, "other", and the same losses.
rm -rf run
expect 0 ./tiny --device=cuda:0 $data --threads=1 --out=run --metrics=rows \
    --without=timing-events
grep -q '"augmentation":0.000000,"kernels":0.000000,"calls":0.000000' rows ||
    fail "--without=timing-events leaves some"
sed -n 's/.*"split":"test".*"loss":\([^,]*\).*/\1/p' rows >unmarked
expect_equal plain unmarked

# The second epoch ends with step 6; launches of its evaluation are not among
# the twenty of a step.
rm -rf run
expect 0 ./tiny --device=host --data=synthetic:192 --threads=1 --out=run \
    --profile=all.json
for name in evaluation checkpoint; do
    grep -q "\"name\":\"$name\"" all.json || fail "no $name in the trace"
done

expect_says "^ .* %  12 others"
rm -r run
expect 0 ./tiny --device=host --data=synthetic:192 --threads=1 --out=run \
    --profile=all.json --quiet
grep -q "by time" out err && fail "--quiet has a table"

# After a failure of the GPU the trace has the work of the host until then.
expect 4 env SINTER_DOUBLE_FAIL=cuLaunchKernel:30:719 ./tiny --device=cuda:0 \
    $data --out=failed --profile=failed.json
python3 - failed.json <<'END' || fail "the trace: $(head -n 3 failed.json)"
import json, sys
found = json.load(open(sys.argv[1]))
assert "CUDA_ERROR_LAUNCH_FAILED" in found["otherData"]["note"], found
assert any(e["name"] == "step" for e in found["traceEvents"])
END

# A run that ends before there is anything to trace, and mistakes.
expect 0 ./tiny --device=host --data=synthetic:192 --threads=1 --steps=2 \
    --out=short --profile=short.json
expect_says "^short.json has a trace of no complete step: the run ended before$"
grep -q "by time" out && fail "a table of no steps"
python3 -c 'import json; json.load(open("short.json"))' || fail "short.json"
expect 74 ./tiny --device=host --data=synthetic:192 --profile=no/where.json
expect_says "no/where.json"
expect 2 ./tiny --device=host --profile-steps=3
expect_says "needs --profile"
expect 2 ./tiny --device=host --eval-only --profile=x
exit 0
