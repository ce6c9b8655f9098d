"""Hands a run's rows to a tracker: ./trainer --metrics=- | python3 follow.py"""
import importlib
import json
import signal
import sys


def tracker():
    for name in "wandb", "trackio":
        try:
            return importlib.import_module(name)
        except ImportError:
            pass


signal.signal(signal.SIGINT, signal.SIG_IGN)  # the trainer's last rows follow
log = tracker()
run = log.init(project="sinter") if log else None
for line in sys.stdin:
    row = json.loads(line)
    split, step = row.pop("split"), row.pop("step", None)
    values = {f"{split}/{key}": value for key, value in row.items()
              if isinstance(value, (int, float)) and not isinstance(value, bool)}
    run.log(values, step=step) if run else print(step, values, flush=True)
if run:
    run.finish()
