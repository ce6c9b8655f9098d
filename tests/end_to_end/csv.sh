#!/bin/sh
# --metrics=FILE.csv has the rows of metrics.jsonl, of a resumed run too, and
# examples/metrics/follow.py hands them to a tracker.
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"
. "$SINTER_SOURCE/tests/end_to_end/tiny.sh"

expect 0 "$SINTER" build "$models/mlp.net" -o mlp
expect 0 ./mlp --data=synthetic:1024 --epochs=3 --log-every=3 --out=whole \
    --metrics=whole.csv
expect 0 python3 "$here/csv_rows.py" whole.csv whole/metrics.jsonl

# A run that resumes from a checkpoint within the rows.
expect 0 ./mlp --data=synthetic:1024 --epochs=3 --log-every=3 --out=parts \
    --metrics=parts.csv --steps=10
expect 0 ./mlp --data=synthetic:1024 --epochs=3 --log-every=3 --out=parts \
    --metrics=parts.csv --resume
expect 0 python3 "$here/csv_rows.py" parts.csv parts/metrics.jsonl
[ "$(grep -c split parts.csv)" -eq 1 ] || fail "the names are there twice"

# A tracker that keeps what it is given.
cat >wandb.py <<'END'
import json, sys
class Run:
    def log(self, values, step=None):
        print(json.dumps([step, values]))
    def finish(self):
        print("finished")
def init(project):
    return Run()
END
PYTHONPATH=$work expect 0 python3 "$SINTER_SOURCE/examples/metrics/follow.py" \
    <whole/metrics.jsonl
[ "$(grep -c loss out)" -eq "$(grep -c loss whole/metrics.jsonl)" ] ||
    fail "rows are lost"
expect_says '"train/loss"'
expect_says finished

# Ctrl-C stops the trainer, whose last rows still follow.
cat >interrupt.py <<'END'
import signal, subprocess, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
with open(sys.argv[2]) as f:
    first, *rest = f.readlines()
tracker = subprocess.Popen([sys.executable, "-u", sys.argv[1]], text=True,
                           stdin=subprocess.PIPE, stdout=subprocess.PIPE)
tracker.stdin.write(first)
tracker.stdin.flush()
print(tracker.stdout.readline(), end="")
tracker.send_signal(signal.SIGINT)
print(tracker.communicate("".join(rest))[0], end="")
END
mv out uninterrupted
PYTHONPATH=$work expect 0 python3 interrupt.py \
    "$SINTER_SOURCE/examples/metrics/follow.py" whole/metrics.jsonl
expect_equal out uninterrupted
