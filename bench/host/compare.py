#!/usr/bin/python3
"""A trainer of models/resnet9.net on the host beside PyTorch, interleaved.

usage: compare.py SINTER [--width 16] [--batch 128] [--steps 32] [--rounds 5]
                  [--threads 2] [--python PROGRAM] [--compile]
                  [--model resnet9|gpt_nano] [--fused]
                  [--layer gru|lstm|rnn [--positions 256] [--vocabulary 65]]

--model gpt_nano compares that model, with a width of 48 and a batch of 64
unless these are given; --fused lets PyTorch fuse its attention.

With --layer, that recurrent layer between an embedding and a linear layer takes
the place of ResNet-9, on random texts.

Builds the trainer, then runs each of the two in turn and prints the time of a
training step of the trainer relative to PyTorch's: the ratio of the medians,
and the smallest and largest ratio of the rounds.  Both are warm when the clock
starts: the trainer after an epoch of as many steps, PyTorch after some steps.
The same ratio of CPU time depends less on other load of the machine; on a busy
one, --threads 1 excludes threads that wait for others.

The trainer reads random images in CIFAR-10's format and augments them; PyTorch
does neither.
"""
import argparse
import json
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
IMAGE = 3 * 32 * 32
POLL = 0.002  # seconds


RECURRENT = """import "std/recurrent.net" {{ {layer} }}
model Text(text: i32[N, T], width=16) -> f32[N, T, {vocabulary}] {{
  text |> embedding({vocabulary}, width) |> {layer}(width) |> linear({vocabulary})
}}
train Text {{
  data      = synthetic(vocabulary={vocabulary}, shape=[{positions}])
  batch     = 16
  epochs    = 1
  loss      = mean(cross_entropy(output, label))
  optimizer = adamw(lr=1e-3)
}}
"""


def images(args):
    return not args.layer and args.model == "resnet9"


def build(args, path):
    model = HERE.parent.parent / "models" / f"{args.model}.net"
    if args.layer:
        model = path.with_suffix(".net")
        model.write_text(RECURRENT.format(**vars(args)))
    subprocess.run([args.sinter, "build", model, "--set", f"width={args.width}",
                    "--set", f"batch={args.batch}", "-o", path], check=True)


def write_data(folder, samples):
    """CIFAR-10's files, of one test image."""
    draw = random.Random(0)
    for name, count in ("data_batch_1", samples), ("test_batch", 1):
        record = (bytes([draw.randrange(10)]) + draw.randbytes(IMAGE)
                  for _ in range(count))
        (folder / f"{name}.bin").write_bytes(b"".join(record))


def rows_of(metrics):
    text = metrics.read_text() if metrics.exists() else ""
    rows = [json.loads(line) for line in text.split("\n")[:-1]]
    return [row for row in rows if row["split"] in ("train", "test")]


def wait_for_rows(run, metrics, count):
    while run.poll() is None and len(rows_of(metrics)) < count:
        time.sleep(POLL)


def processor_seconds(pid):
    """CPU time of a process so far, user and system."""
    stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
    user, system = stat.rsplit(")", 1)[1].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def trainer_step(args, path, folder):
    data = folder if images(args) else f"synthetic:{args.steps * args.batch}"
    # The first epoch and its evaluation; gpt_nano's comes at the end.
    return epoch_step(args, path, folder, data,
                      1 if args.model == "gpt_nano" else 2)


def epoch_step(args, path, folder, data, before):
    """Seconds and CPU seconds of a step of the second epoch, which so many rows
    of metrics precede."""
    metrics = folder / "metrics.json"
    metrics.unlink(missing_ok=True)
    shutil.rmtree(folder / "out", ignore_errors=True)
    command = [path, "--data", data, "--epochs", "2", "--threads",
               args.threads, "--metrics", metrics, "--quiet", "--device",
               "host", "--out", folder / "out"]
    with subprocess.Popen(list(map(str, command)),
                          stdout=subprocess.DEVNULL) as run:
        wait_for_rows(run, metrics, before)
        used = processor_seconds(run.pid)
        wait_for_rows(run, metrics, before + 1)
        spent = processor_seconds(run.pid) - used
    if run.returncode != 0:
        raise SystemExit(f"the trainer ended with status {run.returncode}")
    speed = rows_of(metrics)[before]["samples_per_second"]
    return args.batch / speed, spent / args.steps


def pytorch_step(args):
    command = [args.python, HERE / "steps.py"]
    for name in "width", "batch", "steps", "threads", "model":
        command += [f"--{name}", getattr(args, name)]
    command += ["--compile"] * args.compile + ["--fused"] * args.fused
    for name in ("layer", "positions", "vocabulary") if args.layer else ():
        command += [f"--{name}", getattr(args, name)]
    run = subprocess.run(list(map(str, command)), text=True,
                         stdout=subprocess.PIPE)
    if run.returncode != 0:
        raise SystemExit(f"steps.py failed; has {args.python} PyTorch, as "
                         "Debian's python3-torch?")
    return tuple(map(float, run.stdout.split()))


def share(what, ours, theirs):
    ratio = [x / y for x, y in zip(ours, theirs)]
    median = statistics.median(ours) / statistics.median(theirs)
    print(f"{what}: {median:.2f} of PyTorch's "
          f"({min(ratio):.2f} .. {max(ratio):.2f} in {len(ratio)} rounds)")


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("sinter")
    ap.add_argument("--width", type=int)
    ap.add_argument("--batch", type=int)
    ap.add_argument("--steps", type=int, default=32)
    ap.add_argument("--rounds", type=int, default=5)
    ap.add_argument("--threads", type=int, default=2)
    ap.add_argument("--python", default="/usr/bin/python3")
    ap.add_argument("--compile", action="store_true")
    ap.add_argument("--model", default="resnet9",
                    choices=("resnet9", "gpt_nano"))
    ap.add_argument("--fused", action="store_true")
    ap.add_argument("--layer", choices=("gru", "lstm", "rnn"))
    ap.add_argument("--positions", type=int, default=256)
    ap.add_argument("--vocabulary", type=int, default=65)
    args = ap.parse_args()
    gpt = args.model == "gpt_nano"
    args.width = args.width or (48 if gpt else 16)
    args.batch = args.batch or (64 if gpt else 128)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        path = folder / "trainer"
        build(args, path)
        if images(args):
            write_data(folder, args.steps * args.batch)
        ours, theirs = [], []
        for _ in range(args.rounds):
            ours.append(trainer_step(args, path, folder))
            theirs.append(pytorch_step(args))
            print("trainer {:.1f} ms, {:.1f} of processors; PyTorch {:.1f} ms, "
                  "{:.1f}".format(*(1e3 * x for x in ours[-1] + theirs[-1])),
                  flush=True)
    print(f"width {args.width}, {args.threads} threads")
    share("time", *([x[0] for x in side] for side in (ours, theirs)))
    share("processor time", *([x[1] for x in side] for side in (ours, theirs)))


if __name__ == "__main__":
    main()
