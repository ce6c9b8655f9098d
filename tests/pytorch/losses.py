"""The losses of 20 steps in PyTorch, from a sinter trainer's starting weights.

    losses.py SINTER SOURCE NAME...

builds models/NAME.net, or tests/end_to_end/NAME.net where the data is that of
scenes.py, saves what it would start from, trains the same network
in PyTorch on the same batches, and writes tests/golden/losses/NAME.losses: how
to build and run the trainer, the loss of each step, and the loss of the test
split after the last one with the least and the largest share that is right, as
ties are broken.  With --compare the trainer is run as well, and the largest
relative difference is shown.  NAME may go on after a dash: a model in another
setting.
"""

import json
import os
import subprocess
import sys
import tempfile

import torch
from torch.nn.utils import clip_grad_norm_

import data
import evaluation
import scenes
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
    where = "tests/end_to_end" if recipe.scenes else "models"
    model = os.path.join(source, where, name.split("-")[0] + ".net")
    trainer = os.path.join(folder, name)
    subprocess.run(
        [sinter, "build", model, *build_options(recipe), "-o", trainer],
        check=True,
    )
    return trainer


def run(trainer, recipe, folder, *options):
    files = f"synthetic:{recipe.samples}"
    if recipe.scenes:
        files = os.path.join(folder, "scenes")
        scenes.write(files, recipe.scenes, recipe.samples, recipe.samples)
    subprocess.run(
        [trainer, f"--data={files}", "--device=host",
         "--quiet", f"--out={folder}", *options],
        check=True,
        stdout=subprocess.DEVNULL,
    )  # fmt: skip


def as_tensors(samples, labels, dtype):
    x, labels = torch.from_numpy(samples), torch.from_numpy(labels)
    if x.dim() == 4:
        x = x.permute(0, 3, 1, 2).to(dtype)
    return x, labels


def one_loss(recipe, output, labels):
    """The mean, also of what a step takes the sum of."""
    loss = recipe.loss(output, labels).item()
    return loss / len(labels) if recipe.loss.__name__[:3] == "sum" else loss


def evaluate(recipe, net, dtype):
    """The loss of the test split, and the share that is right."""
    samples = recipe.data(
        recipe.shape, recipe.classes, recipe.samples, test=True
    )
    x, labels = as_tensors(*samples.whole(), dtype)
    net.training = False
    output, right = evaluation.evaluated(
        lambda x: recipe.forward(net, x), recipe.views, x, labels
    )
    if recipe.classes_of:
        right = evaluation.right(*recipe.classes_of(output, labels))
    if not recipe.interacts:
        return one_loss(recipe, output, labels), right
    batches = zip(output.split(recipe.batch), labels.split(recipe.batch))
    losses = [one_loss(recipe, *batch) * len(batch[1]) for batch in batches]
    return sum(losses) / len(labels), right


def judged(recipe, tensors, dtype):
    """The loss of each step, and the evaluation after the last."""
    torch.set_default_dtype(dtype)
    tensors = {
        n: t.to(dtype, copy=True) if t.is_floating_point() else t
        for n, t in tensors.items()
    }
    net = weights.Net(tensors, recipe.frozen)
    samples = recipe.data(recipe.shape, recipe.classes, recipe.samples)
    evaluate(recipe, net, dtype)  # so that the net knows what it has
    net.training = True
    optimizer, set_step = recipe.update(net)
    average = recipe.average(net) if recipe.average else None
    losses = []
    for step in range(STEPS):
        x, labels = as_tensors(*samples.batch(step, recipe.batch), dtype)
        output = recipe.forward(net, x)
        set_step(step)
        optimizer.zero_grad()
        recipe.loss(output, labels).backward()
        if recipe.clip is not None:
            clip_grad_norm_(net.trained().values(), recipe.clip)
        optimizer.step()
        if average:
            average.step(step + 1)
        losses.append(one_loss(recipe, output, labels))
    if average:
        average.use()
    return losses, evaluate(recipe, net, dtype)


def check_whitening(recipe, weight):
    """The filters that a trainer starts from are PyTorch's."""
    torch.set_default_dtype(torch.float64)
    samples = data.Synthetic(recipe.shape, recipe.classes, recipe.samples)
    found = whitening.apart(weight, samples, *recipe.whitening)
    print("whitening", found)
    if found > 1e-3:
        raise ValueError("the whitening filters are wrong")


def data_line(recipe):
    if recipe.scenes:
        return f"# scenes: {recipe.scenes} {recipe.samples} {recipe.samples}\n"
    return f"# run: --data=synthetic:{recipe.samples}\n"


def write(source, name, recipe, losses, loss, right):
    folder = os.path.join(source, "tests", "golden", "losses")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name + ".losses"), "w") as f:
        f.write(f"# build: {' '.join(build_options(recipe))}\n")
        f.write(data_line(recipe))
        if recipe.samples == recipe.batch:
            f.write("# the same batch in each step\n")
        f.writelines(f"{loss:.7g}\n" for loss in losses)
        shares = f" {right[0]:.6g} {right[1]:.6g}" if right else ""
        f.write(f"# evaluation: {loss:.7g}{shares}\n")


def trained(trainer, recipe, folder):
    metrics = os.path.join(folder, "metrics")
    run(trainer, recipe, folder, "--log-every=1", f"--metrics={metrics}")
    with open(metrics) as f:
        rows = list(map(json.loads, f))
    tests = [row for row in rows if row["split"] == "test"]
    steps = [row["loss"] for row in rows if row["split"] == "step"]
    return steps, (tests[-1]["loss"], tests[-1].get("accuracy"))


def apart(a, b):
    """The largest relative difference of two lists."""
    return max(abs(x / y - 1) for x, y in zip(a, b))


def judge(sinter, source, name, folder, compare):
    recipe = RECIPES[name]
    trainer = build(sinter, source, name, recipe, folder)
    run(trainer, recipe, folder, "--init-only")
    start = os.path.join(folder, "step-00000000.safetensors")
    tensors = weights.load(start)
    if recipe.whitening:
        check_whitening(recipe, tensors["whiten.weight"])
    losses, (loss, right) = judged(recipe, tensors, torch.float64)
    single, (single_loss, _) = judged(recipe, tensors, torch.float32)
    print(f"{name}: f32 {apart(single, losses):.1e}, "
          f"in evaluation {apart([single_loss], [loss]):.1e}")  # fmt: skip
    write(source, name, recipe, losses, loss, right)
    if compare:
        steps, (mine, accuracy) = trained(trainer, recipe, folder)
        print(f"{name}: {len(steps)} steps, {apart(steps, losses):.1e}, "
              f"{losses[0]:.4f} to {losses[-1]:.4f}; evaluation "
              f"{apart([mine], [loss]):.1e}, {accuracy} of {right}")  # fmt: skip


def main(sinter, source, *names):
    compare = "--compare" in names
    torch.manual_seed(0)
    torch.set_num_threads(2)
    for name in [n for n in names if n != "--compare"] or RECIPES:
        with tempfile.TemporaryDirectory() as folder:
            judge(sinter, source, name, folder, compare)


if __name__ == "__main__":
    main(*sys.argv[1:])
