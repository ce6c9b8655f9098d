#!/bin/sh
# Where there is a GPU, sinter check plans for it, as its driver describes it, and
# sinter train runs on it; a GPU that is not there is missed before anything is
# compiled.
set -u
. "$SINTER_SOURCE/tests/runtime/cuda/double.sh"
. "$SINTER_SOURCE/tests/end_to_end/tiny.sh"

tiny=$here/tiny.net
expect 0 "$SINTER" check --json "$tiny"
python3 - out "$SINTER_SOURCE/tools/devices/h200.json" <<'END' || fail "$(cat out)"
import json, sys
found, described = (json.load(open(path)) for path in sys.argv[1:])
assert found["device"] == described["deviceName"], found["device"]
bandwidth = described["bandwidthBytesPerSecond"]
assert abs(found["peak_bandwidth"] / bandwidth - 1) < 0.01
assert found["estimate"] == "roofline of described peaks"
assert 0 < found["seconds_per_step"] < 1e-3
END
expect 0 "$SINTER" check "$tiny"
expect_says "plan for cuda in f"
expect 0 "$SINTER" check --target=host "$tiny"
expect_says "plan for host in f32: .* thread"
expect 0 env SINTER_DOUBLE_DEVICES=0 "$SINTER" check "$tiny"
expect_says "plan for host in f32: .* thread"

printf '#!/bin/sh\necho "$*" >>"%s/calls"\nexec cc "$@"\n' "$work" >counted
chmod +x counted
for command in lrfind repeat bench compare tune train; do
    expect 4 env CC="$work/counted" "$SINTER" $command "$tiny" \
        --data=synthetic:128 --device=cuda:7
    expect_says "no GPU 7: the driver finds"
    ! grep -qv -e '^--version$' calls 2>/dev/null || fail "$(cat calls)"
done
SINTER_DOUBLE_THREADS=1 expect 0 "$SINTER" train "$tiny" \
    --data=synthetic:128 --steps=1 --device=cuda:0
expect_says " on cuda:0"
