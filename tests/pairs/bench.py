"""Builds small trainers, runs them, and reads what they leave.

Each run notes which features it has, so that a cell of the table is known to
have been tried.
"""

import array
import hashlib
import itertools
import json
import math
import os
import random
import re
import struct
import subprocess
import tempfile
import threading

SINTER = os.environ["SINTER"]
SOURCE = os.environ["SINTER_SOURCE"]
# They run briefly.
os.environ["LINKER"] = os.environ.get("CC", "cc")
os.environ["CC"] = f"{SOURCE}/tests/random/tcc/cc"
work = tempfile.mkdtemp(prefix="sinter-pairs-")
trial = threading.local()  # the features that its runs had


def trial_begin():
    trial.seen, trial.of_folder = [], {}


class Failure(Exception):
    pass


def insist(holds, *said):
    if not holds:
        raise Failure(" ".join(str(s) for s in said))


# ---- data ----

def npy(path, kind, shape, values):
    """Writes a file of NumPy's: kind is B, i or f."""
    descr = {"B": "|u1", "i": "<i4", "f": "<f4"}[kind]
    head = "{'descr': '%s', 'fortran_order': False, 'shape': (%s)}" % (
        descr, "".join("%d," % s for s in shape))
    head += " " * (-(len(head) + 11) % 64) + "\n"
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head.encode())
        f.write(array.array(kind, values).tobytes())


SIDE, CHANNELS, CLASSES, TEST = 6, 2, 7, 20
PIXELS = SIDE * SIDE * CHANNELS


def images(name, count, paint=lambda i: False, test=None):
    """A folder of images whose mean tells their class.

    Samples that paint(i) names are black; test replaces the test set by the
    training samples it names.
    """
    folder = os.path.join(work, name)
    if os.path.exists(folder):
        return folder
    draw = random.Random(1)
    label = [i % CLASSES for i in range(count + TEST)]
    pixel = [[min(255, max(0, int(draw.gauss(60 + 20 * k, 40))))
              for _ in range(PIXELS)] for k in label]
    for i in range(count):
        if paint(i):
            pixel[i], label[i] = [0] * PIXELS, 0
    parts = {"train": range(count), "test": test or range(count, count + TEST)}
    for part, samples in parts.items():
        npy(f"{folder}/{part}_x.npy", "B", (len(samples), SIDE, SIDE, CHANNELS),
            [x for i in samples for x in pixel[i]])
        npy(f"{folder}/{part}_y.npy", "i", (len(samples),),
            [label[i] for i in samples])
    return folder


# ---- models ----

AUGMENTATIONS = re.findall(
    r"^fn (\w+)", open(f"{SOURCE}/frontend/std/vision.net").read(), re.M)

BODY = """
  image
    |> normalize(mean=128, std=64)
    |> conv(4, 3) |> {norm} |> {rand} |> relu as a
    |> conv(4, 3) |> relu as b
    |> global_avg_pool
    |> linear(%d) as head
""" % CLASSES

MIXED = " |> mixup(0.4, p=0.5) |> cutmix(alpha=1, p=0.5)"
ALONE = ("data.train |> random_crop(6, pad=2, mode=reflect) |> flip_lr "
         "|> cutout(2)")  # no sample sees another
# Every augmentation.  Half of a trainer is these, so a trial has one case of
# them.
EVERY_ALONE = (
    ALONE + " |> alternating_flip |> random_translate(1) "
    "|> random_resized_crop(6) |> brightness(10) |> contrast(0.2) "
    "|> rotate(20) |> affine(9, shear=5, interpolation=\"bilinear\") "
    "|> color_jitter(0.2, 0.2, 0.2, 0.1) |> grayscale |> solarize(99) "
    "|> posterize(5) |> autocontrast |> random_erasing "
    "|> rand_augment |> trivial_augment_wide")
EVERY = EVERY_ALONE + MIXED

# Everything at once; a trial leaves out or replaces what it must.
EVERYTHING = {
    "norm": "batch_norm",
    "rand": "dropout(0.3)",
    "input": ALONE + MIXED,
    "batch": "8",
    "epochs": "2",
    "loss": "mean(cross_entropy(output, label, smoothing=0.1))",
    "optimizer": "sgd(lr=rate, momentum=0.9, nesterov, weight_decay=0.01)",
    "rate": "cosine(0.1)",
    "clip": "norm(0.5)",
    "average": "ema(0.9)",
    "freeze": '"b.*" after 1.5 epoch',
    "params": '"head.*" { lr = 2 * lr }',
    "metrics": "[accuracy, loss, top5, perplexity]",
    "views": "[0.5: identity, 0.25: flip_lr, 0.25: shift(1) |> flip_lr]",
}


def recipe(**changes):
    """The text of EVERYTHING with changes; None leaves a key out."""
    keys = {k: v for k, v in {**EVERYTHING, **changes}.items() if v is not None}
    body = keys.pop("body", BODY).format(norm=keys.pop("norm", "unchanged"),
                                         rand=keys.pop("rand", "unchanged"))
    image = keys.pop("image", "u8[N, %d, %d, %d]" % (SIDE, SIDE, CHANNELS))
    output = keys.pop("output", "f32[N, %d]" % CLASSES)
    clauses = ["data = " + keys.pop("data", 'npy("data")')]
    for name, clause in (("freeze", "freeze"), ("params", "params"),
                         ("stop", "stop when"),
                         ("keep", "checkpoint every 1 step keep")):
        if name in keys:
            clauses.append(clause + " " + keys.pop(name))
    block = "; ".join("%s = %s" % (k, keys.pop(k))
                      for k in ("metrics", "views") if k in keys)
    when = keys.pop("eval", "every 1 epoch")
    clauses.append("eval %s { %s }" % (when, block))
    clauses += ["%s = %s" % k for k in keys.items()]
    return "\n".join([
        'import "std/vision.net" { %s }' % ", ".join(AUGMENTATIONS),
        'import "std/losses.net" { sigmoid_focal_loss, softmax_focal_loss }',
        "fn unchanged(x) = x" if "unchanged" in body else "",
        "model M(image: %s) -> %s {%s}" % (image, output, body),
        "", "train M {", *("  " + c for c in clauses), "}", ""])


building, built = threading.Lock(), {}


def build(text, *options):
    """Compiles once; the trainer's path and text, or the refusal."""
    key = hashlib.sha1((text + repr(options)).encode()).hexdigest()[:16]
    with building:
        mine = built.setdefault(key, threading.Lock())
    path = os.path.join(work, key)
    with mine:
        if not os.path.exists(path):
            with open(path + ".net", "w") as f:
                f.write(text)
            p = subprocess.run([SINTER, "build", path + ".net", "-o", path,
                                *options], capture_output=True, text=True)
            insist(p.returncode == 0, text, p.stderr)
    return path, text


# ---- runs ----

MARKS = {  # what shows that a run has a feature, in its text or its options
    "aug": r"data\.train \|>", "view": r"views = ", "met": r"metrics = ",
    "loss": r"  loss = ", "opt": r"  optimizer = ",
    "rate": r"cosine|one_cycle|warmup|piecewise|progress",
    "prec": r"precision = b?f16", "acc": r"accumulate = [2-9]",
    "shrd": r"shards = \d",
    "frz": r"  freeze ", "grp": r"  params ", "avg": r"  average = ",
    "clip": r"  clip = ", "rec": r"recompute = auto", "norm": r"batch_norm",
    "rand": r"dropout|noise", "stop": r"stop when", "res": r"--resume",
    "val": r"--validation", "init": r"--init=",
}


def features(text, options, samples):
    whole = text + " ".join(options)
    has = {name for name, mark in MARKS.items() if re.search(mark, whole)}
    batch = int(re.search(r"batch = (\d+)", text).group(1))
    return has | ({"tail"} if samples % batch and "drop_last" not in text
                  else set())


jobs = itertools.count()


def launch(path, options, ranks=1):
    """Runs a trainer as so many ranks: their exit statuses, and what they say,
    rank 0 first."""
    job = "%d.%d" % (os.getpid(), next(jobs))
    place = {"WORLD_SIZE": str(ranks), "LOCAL_WORLD_SIZE": str(ranks),
             "MASTER_ADDR": "localhost", "MASTER_PORT": "1",
             "TORCHELASTIC_RUN_ID": job} if ranks > 1 else {}
    running = [subprocess.Popen(
        [path, "--threads", "1", *options], text=True, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **place, **({"RANK": str(r)} if place else {})})
        for r in range(ranks)]
    said = [out for p in running for out in p.communicate()]
    return [p.returncode for p in running], "".join(said)


class Run:
    """A run of a trainer: rows of --metrics, and its newest checkpoint."""

    def __init__(self, trainer, data, *options, folder=None, ranks=1):
        path, text = trainer
        self.folder = folder or tempfile.mkdtemp(dir=work)
        rows = self.folder + ".rows"
        status, self.said = launch(
            path, ["--data", data, "--out", self.folder, "--metrics", rows,
                   *options], ranks)
        insist(not any(status), text, options, self.said)
        self.rows = [json.loads(line) for line in open(rows)]
        self.files = sorted(os.path.join(self.folder, f)
                            for f in os.listdir(self.folder)
                            if f.startswith("step-"))
        samples = re.search(r"(\d+) training", self.said)
        has = features(text, options, int(samples.group(1)) if samples else 0)
        # A run that goes on has what it had.
        has |= trial.of_folder.get(self.folder, set())
        trial.of_folder[self.folder] = has
        trial.seen.append(has)

    def of(self, split):
        return [r for r in self.rows if r["split"] == split]

    def last(self, split="test"):
        return self.of(split)[-1]

    def tensors(self, file=-1):
        return tensors(self.files[file])


def tensors(path):
    """What a checkpoint holds: bytes by name."""
    content = open(path, "rb").read()
    size = struct.unpack("<Q", content[:8])[0]
    return {name: content[8 + size:][slice(*t["data_offsets"])]
            for name, t in json.loads(content[8:8 + size]).items()
            if name != "__metadata__"}


def weights(t):
    """Parameters and statistics, without what is kept beside them."""
    return {k: v for k, v in t.items() if re.search(
        r"\.(weight|bias|scale|value|running_\w+)$", k)}


def same_bits(what, a, b):
    for k in a:
        insist(a[k] == b.get(k), what + ":", k, "differs")


def near(what, a, b, most):
    """Tensors differ by at most that share, root mean square."""
    for k in a:
        x, y = array.array("f", a[k]), array.array("f", b[k])
        size = math.fsum(v * v for v in y)
        error = math.fsum((u - v) ** 2 for u, v in zip(x, y))
        insist(error <= most * most * size, what + ":", k, "is off by",
               math.sqrt(error / size) if size else error)


def close(what, a, b, most):
    insist(abs(a - b) <= most * abs(b), what + ":", a, "is not", b)
