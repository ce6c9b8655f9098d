#!/bin/sh
# examples/metrics/follow.py hands every row of a run to the real wandb,
# offline, and to the real trackio.
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"
python=$SINTER_PYTHON
"$python" -c 'import wandb, trackio' 2>/dev/null || exit 77
export HOME="$work" WANDB_MODE=offline WANDB_SILENT=true
export TRACKIO_DIR="$work/trackio"

expect 0 "$SINTER" build "$models/mlp.net" -o mlp

# Where wandb cannot be imported, trackio gets the rows.
cat >without_wandb.py <<'END'
import runpy, sys
sys.modules["wandb"] = None
runpy.run_path(sys.argv[1], run_name="__main__")
END
for tracker in wandb trackio; do
    before=
    [ $tracker = wandb ] || before=without_wandb.py
    ./mlp --data=synthetic:1024 --epochs=3 --log-every=3 --out=$tracker.run \
        --metrics=- 2>log | "$python" $before \
        "$SINTER_SOURCE/examples/metrics/follow.py" >out 2>err ||
        fail "$(cat out err)"
    expect 0 "$python" "$SINTER_SOURCE/tests/campaign/tracked.py" \
        $tracker.run/metrics.jsonl $tracker
    version=$("$python" -c "import $tracker; print($tracker.__version__)")
    echo "$tracker $version: $(cat out)"
done
