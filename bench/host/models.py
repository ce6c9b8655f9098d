#!/usr/bin/python3
"""Training steps of all models on the host beside PyTorch, interleaved.

usage: models.py SINTER [NAME...] [--batch 80] [--seconds 1] [--rounds 3]
                 [--threads 1] [--python PROGRAM] [--before SINTER]

The models have the settings and the networks in PyTorch with which
tests/pytorch compares losses, but other batches.  Builds the trainer of each
model, then runs it and PyTorch in turn, and prints the time of a step, and the
CPU time, relative to PyTorch's: the ratio of the medians.  A turn takes about
--seconds.  PyTorch's images and filters are channels_last.  With --before, another compiler's trainer has a
turn, too, and its ratio stands in parentheses.

The trainer loads its batches meanwhile; PyTorch repeats one.
"""
import argparse
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
WARM = 2


def model_of(name):
    return ROOT / f"models/{name}.net"


def names():
    """Of the models that tests/golden/losses has."""
    losses = sorted((ROOT / "tests/golden/losses").glob("*.losses"))
    return [f.stem for f in losses if model_of(f.stem).exists()]


def build(args, sinter, name, path):
    """The trainer of a model with the settings of its losses; whether there is
    one."""
    first = (ROOT / f"tests/golden/losses/{name}.losses").read_text()
    options = first.split("\n")[0].removeprefix("# build: ").split(" --set=")
    options[0] = options[0].removeprefix("--set=")
    settings = {o.split("=", 1)[0]: o.split("=", 1)[1] for o in options}
    settings |= {"batch": str(args.batch), "epochs": "2"}
    sets = [f"--set={key}={value}" for key, value in settings.items()]
    run = subprocess.run([sinter, "build", model_of(name), *sets, "-o", path],
                         stderr=subprocess.DEVNULL)
    return run.returncode == 0


def trainer_step(args, name, path, folder):
    sys.path.append(str(HERE))
    import compare
    evaluates = "eval every 1 epoch" in model_of(name).read_text()
    data = f"synthetic:{args.steps * args.batch}"
    return compare.epoch_step(args, path, folder, data, 1 + evaluates)


def pytorch_step(args, name, start):
    run = subprocess.run([args.python, __file__, start, name,
                          f"--pytorch={args.steps}", f"--batch={args.batch}",
                          f"--threads={args.threads}"],
                         check=True, text=True, stdout=subprocess.PIPE)
    return tuple(map(float, run.stdout.split()))


def measure_pytorch(args):
    """Seconds and CPU seconds of a step in PyTorch, after warm-up."""
    import time

    import torch
    from torch.nn.utils import clip_grad_norm_

    sys.path.append(str(ROOT / "tests/pytorch"))
    import weights
    from losses import as_tensors
    from recipes import RECIPES

    torch.set_num_threads(args.threads)
    recipe = RECIPES[args.name[0]]
    net = weights.Net(weights.load(args.sinter), recipe.frozen)
    samples = recipe.data(recipe.shape, recipe.classes, args.batch)
    x, labels = as_tensors(*samples.batch(0, args.batch), torch.float32)
    if x.dim() == 4:
        x = x.contiguous(memory_format=torch.channels_last)
    recipe.forward(net, x)  # finds the parameters
    for name in net.turned:
        p = net.parameters[name]
        p.data = p.data.contiguous(memory_format=torch.channels_last)
    optimizer, set_step = recipe.update(net)
    average = recipe.average(net) if recipe.average else None
    for step in range(WARM + args.pytorch):
        if step == WARM:
            began, used = time.perf_counter(), time.process_time()
        loss = recipe.loss(recipe.forward(net, x), labels)
        set_step(step)
        optimizer.zero_grad()
        loss.backward()
        if recipe.clip is not None:
            clip_grad_norm_(net.trained().values(), recipe.clip)
        optimizer.step()
        if average:
            average.step(step + 1)
        loss.item()
    print((time.perf_counter() - began) / args.pytorch,
          (time.process_time() - used) / args.pytorch)


def measure(args, name, folder):
    """Times of each side, in rounds: ours, PyTorch's, and those of --before."""
    path, old = folder / "trainer", folder / "before"
    if not build(args, args.sinter, name, path):
        raise SystemExit(f"{name} does not build")
    before = args.before and build(args, args.before, name, old)
    subprocess.run([path, f"--data=synthetic:{args.batch}", "--init-only",
                    "--device=host", "--quiet", f"--out={folder}"], check=True,
                   stderr=subprocess.DEVNULL)
    start = folder / "step-00000000.safetensors"
    args.steps = WARM
    seconds, _ = pytorch_step(args, name, start)
    args.steps = max(WARM, round(args.seconds / seconds))
    sides = [[], [], []] if before else [[], []]
    for _ in range(args.rounds):
        sides[0].append(trainer_step(args, name, path, folder))
        sides[1].append(pytorch_step(args, name, start))
        if before:
            sides[2].append(trainer_step(args, name, old, folder))
    return sides


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("sinter")
    ap.add_argument("name", nargs="*")
    ap.add_argument("--batch", type=int, default=80)
    ap.add_argument("--seconds", type=float, default=1)
    ap.add_argument("--rounds", type=int, default=3)
    ap.add_argument("--threads", type=int, default=1)
    ap.add_argument("--python", default="/usr/bin/python3")
    ap.add_argument("--before")
    ap.add_argument("--pytorch", type=int, help=argparse.SUPPRESS)
    args = ap.parse_args()
    if args.pytorch:
        measure_pytorch(args)
        return
    print(f"{'model':16}{'time':>16}{'CPU time':>16}  of PyTorch's")
    for name in args.name or names():
        with tempfile.TemporaryDirectory() as folder:
            sides = measure(args, name, pathlib.Path(folder))
        row = f"{name:16}"
        for i in range(2):
            ours, theirs, *before = (
                statistics.median(x[i] for x in side) for side in sides)
            old = f" ({before[0] / theirs:.2f})" if before else ""
            row += f"{ours / theirs:.2f}{old}".rjust(16)
        print(row, flush=True)


if __name__ == "__main__":
    main()
