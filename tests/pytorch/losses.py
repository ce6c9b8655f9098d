"""The losses of 20 steps in PyTorch, from a sinter trainer's starting weights.

    losses.py SINTER SOURCE NAME...

builds models/NAME.net, saves what it would start from, trains the same network
in PyTorch on the same batches, and writes tests/golden/losses/NAME.losses: how
to build and run the trainer, and the loss of each step.  With --compare the
trainer is run as well, and the largest relative difference is shown.
"""

import json
import os
import subprocess
import sys
import tempfile

import torch
from torch.nn.utils import clip_grad_norm_

import data
import weights
import whitening
from recipes import RECIPES, STEPS


def build_options(recipe):
    settings = {
        "batch": str(recipe.batch),
        "epochs": str(STEPS * recipe.batch // recipe.samples),
        "precision": "f32",
        "input": "data.train",
        **recipe.settings,
    }
    return [f"--set={k}={v}" for k, v in settings.items()]


def build(sinter, source, name, recipe, folder):
    model = os.path.join(source, "models", name + ".net")
    trainer = os.path.join(folder, name)
    subprocess.run(
        [sinter, "build", model, *build_options(recipe), "-o", trainer],
        check=True,
    )
    return trainer


def run(trainer, recipe, folder, *options):
    subprocess.run(
        [trainer, f"--data=synthetic:{recipe.samples}", "--device=host",
         "--quiet", f"--out={folder}", *options],
        check=True,
        stdout=subprocess.DEVNULL,
    )  # fmt: skip


def judged(recipe, tensors, dtype):
    torch.set_default_dtype(dtype)
    tensors = {
        n: t.to(dtype, copy=True) if t.is_floating_point() else t
        for n, t in tensors.items()
    }
    net = weights.Net(tensors, recipe.frozen)
    samples = recipe.data(recipe.shape, recipe.classes, recipe.samples)
    optimizer = None
    losses = []
    for step in range(STEPS):
        x, labels = map(torch.from_numpy, samples.batch(step, recipe.batch))
        if x.dim() == 4:
            x = x.permute(0, 3, 1, 2).to(dtype)
        loss = recipe.loss(recipe.forward(net, x), labels)
        if optimizer is None:
            optimizer, set_step = recipe.update(net)
            average = recipe.average(net) if recipe.average else None
        set_step(step)
        optimizer.zero_grad()
        loss.backward()
        if recipe.clip is not None:
            clip_grad_norm_(net.trained().values(), recipe.clip)
        optimizer.step()
        if average:
            average.step(step + 1)
        per_sample = recipe.batch if recipe.loss.__name__[:3] == "sum" else 1
        losses.append(loss.item() / per_sample)
    return losses


def check_whitening(recipe, weight):
    """The filters that a trainer starts from are PyTorch's."""
    torch.set_default_dtype(torch.float64)
    samples = data.Synthetic(recipe.shape, recipe.classes, recipe.samples)
    found = whitening.apart(weight, samples, *recipe.whitening)
    print("whitening", found)
    if found > 1e-3:
        raise ValueError("the whitening filters are wrong")


def write(source, name, recipe, losses):
    folder = os.path.join(source, "tests", "golden", "losses")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name + ".losses"), "w") as f:
        f.write(f"# build: {' '.join(build_options(recipe))}\n")
        f.write(f"# run: --data=synthetic:{recipe.samples}\n")
        if recipe.samples == recipe.batch:
            f.write("# the same batch in each step\n")
        f.writelines(f"{loss:.7g}\n" for loss in losses)


def trained(trainer, recipe, folder):
    metrics = os.path.join(folder, "metrics")
    run(trainer, recipe, folder, "--log-every=1", f"--metrics={metrics}")
    with open(metrics) as f:
        rows = map(json.loads, f)
        return [row["loss"] for row in rows if row["split"] == "step"]


def apart(a, b):
    """The largest relative difference of two lists."""
    return max(abs(x / y - 1) for x, y in zip(a, b))


def main(sinter, source, *names):
    compare = "--compare" in names
    torch.manual_seed(0)
    torch.set_num_threads(2)
    for name in [n for n in names if n != "--compare"] or RECIPES:
        recipe = RECIPES[name]
        with tempfile.TemporaryDirectory() as folder:
            trainer = build(sinter, source, name, recipe, folder)
            run(trainer, recipe, folder, "--init-only")
            start = os.path.join(folder, "step-00000000.safetensors")
            tensors = weights.load(start)
            if recipe.whitening:
                check_whitening(recipe, tensors["whiten.weight"])
            losses = judged(recipe, tensors, torch.float64)
            single = judged(recipe, tensors, torch.float32)
            print("f32", apart(single, losses))
            write(source, name, recipe, losses)
            if compare:
                mine = trained(trainer, recipe, folder)
                print(f"{name}: {len(mine)} steps, {apart(mine, losses):.1e}, "
                      f"{losses[0]:.4f} to {losses[-1]:.4f}")  # fmt: skip


if __name__ == "__main__":
    main(*sys.argv[1:])
