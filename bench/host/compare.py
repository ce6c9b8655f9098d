#!/usr/bin/python3
"""A trainer of models/resnet9.net on the host beside PyTorch, interleaved.

usage: compare.py SINTER [--width 16] [--batch 128] [--steps 8] [--rounds 5]

Builds the trainer, then runs each of the two in turn, both with two threads,
and prints the time of a training step of the trainer as a share of PyTorch's:
the ratio of the medians, and the smallest and largest of the rounds.  The
trainer draws its own samples and augments them; PyTorch does neither.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
THREADS = "2"


def build(sinter, width, batch, path):
    model = HERE.parent.parent / "models" / "resnet9.net"
    subprocess.run([sinter, "build", model, "--set", f"width={width}",
                    "--set", f"batch={batch}", "-o", path], check=True)


def trainer_speed(path, samples, folder):
    metrics = folder / "metrics.json"
    metrics.unlink(missing_ok=True)
    subprocess.run([path, "--data", f"synthetic:{samples}", "--epochs", "1",
                    "--threads", THREADS, "--metrics", metrics, "--quiet",
                    "--out", folder / "out"],
                   check=True, stdout=subprocess.DEVNULL)
    rows = [json.loads(line) for line in metrics.read_text().splitlines()]
    train = [row for row in rows if row["split"] == "train"]
    return train[-1]["samples_per_second"]


def eager_speed(width, batch, steps):
    command = ["/usr/bin/python3", HERE / "eager.py", "--width", str(width),
               "--batch", str(batch), "--steps", str(steps),
               "--threads", THREADS]
    return float(subprocess.run(command, check=True, text=True,
                                stdout=subprocess.PIPE).stdout)


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("sinter")
    ap.add_argument("--width", type=int, default=16)
    ap.add_argument("--batch", type=int, default=128)
    ap.add_argument("--steps", type=int, default=8)
    ap.add_argument("--rounds", type=int, default=5)
    args = ap.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        path = folder / "trainer"
        build(args.sinter, args.width, args.batch, path)
        ours, theirs = [], []
        for _ in range(args.rounds):
            ours.append(trainer_speed(path, args.steps * args.batch, folder))
            theirs.append(eager_speed(args.width, args.batch, args.steps))
            print(f"trainer {ours[-1]:.0f}, PyTorch {theirs[-1]:.0f} images/s",
                  flush=True)
        ratio = [y / x for x, y in zip(ours, theirs)]
        median = statistics.median(theirs) / statistics.median(ours)
        print(f"width {args.width}: {median:.2f} of PyTorch's time "
              f"({min(ratio):.2f} .. {max(ratio):.2f} in {args.rounds} rounds)")


if __name__ == "__main__":
    main()
