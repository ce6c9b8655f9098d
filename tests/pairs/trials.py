"""The relations that the table names, one function for each."""

import itertools
import math
import os
import random
import re
import shutil

from bench import *  # noqa: F403

LANGUAGE = open(f"{SOURCE}/docs/language.md").read()

OPTIMIZERS = {
    "sgd": "sgd(lr=rate, momentum=0.9, nesterov, weight_decay=0.01)",
    "adam": "adam(lr=0.1 * rate, eps=1e-3, weight_decay=0.01)",
    "adamw": "adamw(lr=0.1 * rate, eps=1e-3)",
    "lamb": "lamb(lr=0.1 * rate, eps=1e-3)",
    "lars": "lars(lr=rate, trust=0.1, weight_decay=0.01)",
    "muon": "muon(lr=0.1 * rate)",
    "rmsprop": "rmsprop(lr=0.01 * rate, eps=1e-2, momentum=0.9, centered)",
    "adagrad": "adagrad(lr=0.1 * rate, eps=1e-2, lr_decay=0.01)",
    "lion": "lion(lr=0.01 * rate, weight_decay=0.01)",
    "nadam": "nadam(lr=0.1 * rate, eps=1e-3)",
    "radam": "radam(lr=0.1 * rate, eps=1e-3)",
    "adan": "adan(lr=0.1 * rate, eps=1e-3, weight_decay=0.01)",
}
LOSSES = {
    "cross_entropy": "cross_entropy(output, label)",
    "mse": "mse(output, one_hot(label, %d))" % CLASSES,
    "l1": "l1(output, one_hot(label, %d))" % CLASSES,
    "bce_with_logits": "bce_with_logits(output, one_hot(label, %d))" % CLASSES,
    "sigmoid_focal_loss":
        "sigmoid_focal_loss(output, one_hot(label, %d))" % CLASSES,
    "softmax_focal_loss": "softmax_focal_loss(output, label)",
}


ALL = "PAIRS_ALL" in os.environ


def some(cases, step, first=0):
    """Every so many of the cases; PAIRS_ALL=1 takes each."""
    return list(cases) if ALL else list(cases)[first::step]


def in_turn():
    """Keys of a recipe with each optimizer, and the losses in turn."""
    for name, loss in zip(OPTIMIZERS, itertools.cycle(LOSSES.values())):
        yield dict(loss="mean(%s)" % loss, **of_optimizer(name))


# An update adds up some 600 terms in f32, in another order: sqrt(600) * 2^-24
# of their size, and sixteen follow one another.
REORDERED = 16 * 600 ** 0.5 * 2 ** -24


def table_is_whole():
    """Losses, optimizers and augmentations are those of the language."""
    for what, known, pattern in (
            ("optimizers", OPTIMIZERS, r"^\| `(\w+)\(lr"),
            ("losses", LOSSES, r"^\| `(\w+)\(output, label")):
        found = set(re.findall(pattern, LANGUAGE, re.M))
        insist(found == set(known), what, found ^ set(known))
    for name in AUGMENTATIONS:
        insist(name + "(" in EVERY or name + " |>" in EVERY, name,
               "is in no trial")


def of_optimizer(name):
    """The keys of a recipe; muon is for matrices."""
    if name != "muon":
        return {"optimizer": OPTIMIZERS[name]}
    return {"params": '"*.weight" { optimizer = %s }' % OPTIMIZERS[name]}


def start(text, data):
    """The --init option for the weights that a trainer begins with."""
    first = Run(build(text), data, "--init-only")
    return "--init=" + first.files[0]


# ---- runs that must be the same to the bit ----

def in_parts(trainer, data, *options):
    """A run that stops after each step and goes on."""
    first = [o for o in options if "--init=" not in o]
    run = Run(trainer, data, "--steps", "1", *options)
    rows = run.rows
    while "--resume continues" in run.said:
        run = Run(trainer, data, "--resume", "--steps", "1", *first,
                  folder=run.folder)
        rows = run.rows
    run.rows = rows
    return run


def resume():
    data = images("forty", 44)
    for k in (dict(accumulate="2", precision="f16", recompute="auto",
                   input=EVERY, average="lookahead(0.5, every=3 step)"),
              dict(average="ema(0.9, every=1 epoch)", precision="bf16",
                   optimizer="adamw(lr=0.1 * rate)", stop="loss <= 1.93"),
              dict(norm="batch_norm(ghost=2)", accumulate="3",
                   **of_optimizer("muon"))):
        text = recipe(epochs="3", **k)
        options = ("--validation=5", start(text, data))
        whole = Run(build(text), data, *options)
        parts = in_parts(build(text), data, *options)
        same_bits("in parts", whole.tensors(), parts.tensors())
        insist([r["loss"] for r in whole.of("test")] ==
               [r["loss"] for r in parts.of("test")], "evaluations differ")


def recompute():
    data = images("forty", 44)
    for k in (dict(accumulate="2", input=EVERY),
              dict(precision="f16", stop="loss <= 0")):
        init = start(recipe(recompute="none", **k), data)
        runs = [Run(build(recipe(recompute=r, **k)), data, "--validation=5",
                    init).tensors() for r in ("none", "auto")]
        same_bits("recompute", *runs)


def first_weights():
    """A run from the file of its first weights is the run that draws them."""
    data = images("forty", 44)
    for k in (dict(accumulate="2", precision="f16", stop="loss <= 0"),
              dict(average="lookahead(0.5, every=3 step)", input=EVERY)):
        text = recipe(**k)
        drawn = Run(build(text), data, "--validation=5")
        given = Run(build(text), data, "--validation=5", start(text, data))
        same_bits("--init", drawn.tensors(), given.tensors())


def shards():
    """The same bits for any number of ranks, of a run that goes on with another
    number, and for twice as many batches of an update in half as many shards."""
    data = images("forty", 44)
    for k in (dict(average="lookahead(0.5, every=3 step)", precision="f16"),
              dict(average="ema(0.9)", precision="bf16", recompute="auto",
                   norm="batch_norm(ghost=2)", stop="loss <= 0"),
              dict(rate="one_cycle(0.1)", input=EVERY,
                   **of_optimizer("muon"))):
        text = recipe(shards="4", batch="16", **k)
        options = ("--validation=5", start(text, data))
        one = Run(build(text), data, *options)
        four = Run(build(text), data, *options, ranks=4)
        same_bits("four ranks", one.tensors(), four.tensors())
        insist([r["loss"] for r in one.of("test")] ==
               [r["loss"] for r in four.of("test")], "evaluations differ")
        text = recipe(shards="2", batch="8", accumulate="2", **k)
        first = Run(build(text), data, *options, "--steps", "1", ranks=2)
        then = Run(build(text), data, "--validation=5", "--resume",
                   folder=first.folder)
        same_bits("batches of shards", one.tensors(), then.tensors())


def divided():
    """Shards of a batch do what the batch does: 44 is 16, 16, 12."""
    data = images("forty", 44)
    for k in (dict(average="lookahead(0.5, every=3 step)", precision="f16",
                   input=EVERY_ALONE),
              dict(batch="16, drop_last", precision="bf16",
                   average="ema(0.9, every=1 epoch)"),
              dict(batch="16, drop_last", norm="batch_norm(momentum=0.3)",
                   sync_batch_norm="true"),
              dict(batch="16, drop_last", norm="batch_norm(ghost=2)",
                   sync_batch_norm="true", loss="sum(%s)" % LOSSES["mse"],
                   rate="0.001"),
              dict(loss="sum(%s)" % LOSSES["mse"], rate="cosine(0.01)",
                   clip="value(0.01)")):
        k = {**PLAIN, "batch": "16", "epochs": "6", **k}
        init = start(recipe(**k), data)
        runs = [Run(build(recipe(shards=s, **k)), data, init)
                for s in (None, "4")]
        near(str(k), *(weights(r.tensors()) for r in runs), REORDERED)
        for one, other in zip(runs[0].of("train"), runs[1].of("train")):
            close("loss", one["loss"], other["loss"], REORDERED)
            close("accuracy", one["accuracy"], other["accuracy"], 0)


NEUTRAL = {  # what changes nothing: with it, and without
    "random_crop": ("input", "data.train |> random_crop(6, pad=0)", None),
    "random_translate": ("input", "data.train |> random_translate(0)", None),
    "flip_lr": ("input", "data.train |> flip_lr(p=0)", None),
    "cutmix": ("input", "data.train |> cutmix(2, p=0)", None),
    "mixup": ("input", "data.train |> mixup(0.4, until=0 step)", None),
    "views": ("views", "[identity]", None),
    "metrics": ("metrics", "[accuracy, loss]", EVERYTHING["metrics"]),
    "smoothing": ("loss", "mean(cross_entropy(output, label, smoothing=0))",
                  "mean(cross_entropy(output, label))"),
    "momentum": ("optimizer", "sgd(lr=rate, weight_decay=0)", "sgd(lr=rate)"),
    "constant": ("rate", "constant(0.05)", "0.05"),
    "cosine": ("rate", "cosine(0.05, to=0.05)", "0.05"),
    "f16": ("precision", "f16", None), "bf16": ("precision", "bf16", None),
    "accumulate": ("accumulate", "1", None),
    "freeze": ("freeze", '"b.*" after 99 step', None),
    "params": ("params", '"head.*" { lr = lr }', None),
    "ema": ("average", "ema(0)", None),
    "ema every": ("average", "ema(0, every=2 step)", None),
    "lookahead": ("average", "lookahead(0, every=2 step)", None),
    "clip": ("clip", "norm(1e9)", None), "value": ("clip", "value(1e9)", None),
    "stop": ("stop", "loss <= 0", None),
    "dropout": ("rand", "dropout(0)", None),
}


def groups_of_neutral():
    """Lists of names, each with one setting of a key, and whether sums are in
    another order.  PAIRS_ALL=1 has each name alone."""
    groups = {}
    for name, (key, _, _) in NEUTRAL.items():
        # Labels that may be mixed are shares of classes, and channels of 16
        # bits are padded: sums are added up otherwise.  A factor of a gradient
        # is another product, with which the update is fused.
        reordered = "mix" in name or "f16" in name or name in ("clip", "value")
        at = 0
        while any(ALL or NEUTRAL[n][0] == key
                  for n in groups.get((reordered, at), [])):
            at += 1
        groups.setdefault((reordered, at), []).append(name)
    return [(names, reordered) for (reordered, _), names in groups.items()]


def neutral():
    data = images("forty", 44)
    for names, reordered in groups_of_neutral():
        k = dict(accumulate="2", recompute="auto")
        if "momentum" in names:
            k["params"] = None
        runs = [Run(build(recipe(**{
            **k, **{NEUTRAL[n][0]: NEUTRAL[n][v] for n in names}})), data,
            "--validation=5") for v in (1, 2)]
        name = ", ".join(names)
        near(name, *(weights(r.tensors()) for r in runs),
             REORDERED if reordered else 0)
        close(name, runs[0].last()["loss"], runs[1].last()["loss"], REORDERED)


def held_out():
    """What is held out has no influence, and is what is evaluated."""
    held = [i for i in range(44) if (i + 1) * 5 // 44 > i * 5 // 44]
    data = images("forty", 44)
    black = images("black", 44, paint=lambda i: i in held)
    part = images("part", 44, test=held)
    for k in (dict(accumulate="2", precision="f16", stop="loss <= 0"),
              dict(average="lookahead(0.5, every=3 step)",
                   norm="batch_norm(ghost=2)", input=EVERY)):
        text = recipe(recompute="auto", **k)
        runs = [Run(build(text), d, "--validation=5") for d in (data, black)]
        same_bits("held out", *(weights(r.tensors()) for r in runs))
        insist(runs[0].last()["loss"] != runs[1].last()["loss"], "not seen")
        of = Run(build(text), part, "--init=" + runs[0].files[-1],
                 "--eval-only").last()
        for metric in "loss", "accuracy", "top5", "perplexity":
            close("held out " + metric, runs[0].last()[metric], of[metric],
                  1e-6)


# ---- batches ----

PLAIN = dict(norm="batch_norm(frozen)", rand=None, input=ALONE)


def halves():
    """Two batches are as good as one of twice the size: 44 is 16, 16, 8, 4.

    An optimizer sees the gradient of an update alone; short and frozen have
    others of them.
    """
    data = images("forty", 44)
    cases = [*some(in_turn(), 5), dict(input=EVERY_ALONE),
             dict(loss="sum(%s)" % LOSSES["mse"], rate="cosine(0.01)"),
             dict(average="lookahead(0.5, every=3 step)", precision="f16"),
             dict(average="ema(0.9, every=1 epoch)", precision="bf16"),
             dict(clip="value(0.01)", recompute="auto", stop="loss <= 0"),
             dict(rate="one_cycle(0.1)", freeze='"b.*" after 4 step')]
    for k in cases:
        k = {**PLAIN, "rate": "piecewise(0: 0.02, 1 epoch: 0.1, 100%: 0)", **k}
        init = start(recipe(batch="16", accumulate="1", **k), data)
        runs = [Run(build(recipe(batch=b, accumulate=a, **k)), data,
                    init).tensors() for b, a in (("16", "1"), ("8", "2"))]
        near(str(k), *(weights(t) for t in runs), REORDERED)
    text = recipe(**{**PLAIN, "batch": "8", "accumulate": "2"})
    twice = Run(build(text), data, "--validation=5")
    once = Run(build(text.replace("batch = 8", "batch = 16").replace(
        "  accumulate = 2\n", "")), data, "--validation=5")
    near("held out", weights(twice.tensors()), weights(once.tensors()),
         REORDERED)


def short():
    """A short batch is a full one of its size, 12 of 16."""
    data = images("twelve", 12)
    for k in (*some(in_turn(), 5, 1), dict(input=EVERY_ALONE),
              dict(precision="f16", average="lookahead(0.5, every=3 step)"),
              dict(recompute="auto", stop="loss <= 0", clip="value(0.01)")):
        k = {**PLAIN, "rand": "dropout(0.3)", "epochs": "6",
             "freeze": '"b.*" after 3 step', **k}
        init = start(recipe(**{**k, "batch": "12"}), data)
        runs = [Run(build(recipe(**{**k, "batch": b})), data, init)
                for b in ("12", "16")]
        near(str(k), *(weights(r.tensors()) for r in runs), REORDERED)
        close("loss", runs[0].last("train")["loss"],
              runs[1].last("train")["loss"], REORDERED)


def evaluation():
    """An evaluation says the same for any batch: of 20 samples and of 44."""
    data = images("forty", 44)
    crop = EVERY.replace("crop(6", "crop(4")
    # Every second loss; perfect has the others.
    cases = [dict(loss="mean(%s)" % x, input=ALONE)
             for x in some(LOSSES.values(), 2)]
    cases += [dict(loss="sum(cross_entropy(output, label))", precision="f16"),
              dict(average="lookahead(0.5)", precision="bf16"),
              dict(norm="batch_norm(ghost=2)", recompute="auto"),
              dict(eval="every 1 epoch on data.train", input=crop,
                   data='npy("data", shape=[6, 6, 2])',
                   image="u8[N, 4, 4, 2]", stop="loss <= 0")]
    for i, k in enumerate(cases):
        ran = Run(build(recipe(**k)), data)
        for batch in some(("10", "32"), 2, i % 2):
            again = Run(build(recipe(**{**k, "batch": batch})), data,
                        "--init=" + ran.files[-1], "--eval-only").last()
            for m in "loss", "accuracy", "top5", "perplexity":
                if ran.last()[m] is not None:
                    close(f"{k}, {batch}: {m}", again[m], ran.last()[m], 3e-6)


def statistics():
    """Running statistics follow each batch, however many an update takes."""
    data = images("forty", 44)
    for norm in "batch_norm", "batch_norm(ghost=2)":
        k = dict(norm=norm, rate="0", batch="8, drop_last", average=None)
        runs = [weights(Run(build(recipe(accumulate=a, **k)), data).tensors())
                for a in ("1", "5")]
        same_bits("statistics", *runs)


# ---- what does not change ----

def frozen():
    """A frozen parameter keeps its bits; what is not frozen moves."""
    data = images("forty", 44)
    cases = some(map(of_optimizer, OPTIMIZERS), 5, 2)
    cases += [dict(average="lookahead(0.5, every=2 step)", input=EVERY),
              dict(average="ema(0.9, every=2 step)", precision="f16"),
              dict(precision="bf16", norm="batch_norm(frozen)"),
              dict(clip="value(0.01)", recompute="auto", stop="loss <= 0")]
    for k in cases:
        k = dict(freeze='"a.conv_1.*"\n  freeze "b.*" after 3 step', keep="99",
                 accumulate="2", **k)
        for key in "average", "clip":
            k.setdefault(key, EVERYTHING[key])
        init = start(recipe(**k), data)
        run = Run(build(recipe(**k)), data, init, "--validation=5")
        at = [tensors(init[7:])] + [tensors(f) for f in run.files]
        insist(len(at) > 5, "too few steps")
        for step in range(1, len(at)):
            for name in weights(at[0]):
                holds = name.startswith("a.conv_1.") or (
                    name.startswith("b.") and step > 3)
                holds |= "running_" in name and "frozen" in k.get("norm", "")
                insist(holds == (at[step][name] == at[step - 1][name]),
                       k, name, "step", step)


def rates():
    """Each step has the rate of its number, whatever an epoch is made of."""
    data = images("forty", 44)
    for k, updates in ((dict(), 6), (dict(batch="8, drop_last"), 5),
                       (dict(accumulate="2"), 3), (dict(accumulate="4"), 2),
                       (dict(accumulate="2", batch="8, drop_last"), 2),
                       (dict(precision="f16", recompute="auto",
                             stop="loss <= 0"), 6)):
        for options, held in (((), 0), (("--validation=10",), 10)):
            if held:
                batches = (44 - held) / 8
                n = int(re.sub(r"\D", "", k.get("accumulate", "1")))
                whole = "drop_last" in k.get("batch", "")
                batches = int(batches) if whole else int(batches + 1)
                updates = batches // n if whole else -(-batches // n)
            run = Run(build(recipe(**k)), data, "--log-every", "1", *options)
            rows = run.of("step")
            insist(len(rows) == 2 * updates, k, len(rows), updates)
            for s, row in enumerate(rows):
                want = 0.05 * (1 + math.cos(math.pi * s / len(rows)))
                close("rate", row["lr"], want, 1e-5)


def draws():
    """Micro-batches of equal samples are left out differently; an evaluation
    has no dropout and no noise."""
    data = os.path.join(work, "equal")
    for part, n in ("train", 16), ("test", 4):
        npy(f"{data}/{part}_x.npy", "B", (n, SIDE, SIDE, CHANNELS),
            list(range(PIXELS)) * n)
        npy(f"{data}/{part}_y.npy", "i", (n,), [1] * n)
    add = "fn noise_of(x) = x + noise(x)\n"
    for rand in "dropout", "noise_of":
        body = ("\nx = image |> normalize(mean=128, std=64) |> flatten |> %s\n"
                "x |> linear(%d, init=ones) as head\n" % (rand, CLASSES))
        k = dict(body=body, epochs="1", norm=None, rand=None, input=None,
                 views=None, freeze=None, params=None, average=None)
        left = [Run(build(add * ("noise" in rand) + recipe(
            batch=b, accumulate=a, **k)), data).tensors()["head.weight"]
            for b, a in (("8", "1"), ("8", "2"))]
        insist(left[0] != left[1], rand, "is the same in both batches")
    forty = images("forty", 44)
    still = dict(rate="0", average=None, input=None, norm="batch_norm(frozen)",
                 freeze=None, params=None, clip=None,
                 optimizer="sgd(lr=rate)")
    losses = [Run(build(recipe(rand=r, **still)), forty).last()["loss"]
              for r in ("dropout(0.5)", None)]
    insist(losses[0] == losses[1], "an evaluation leaves numbers out")


# ---- known results ----

def perfect():
    """Who gives each class its pixel is always right, however it is asked."""
    data = os.path.join(work, "perfect")
    for part, n in ("train", 44), ("test", TEST):
        label = [i * 5 % CLASSES for i in range(n)]
        npy(f"{data}/{part}_y.npy", "i", (n,), label)
        npy(f"{data}/{part}_x.npy", "B", (n, SIDE, SIDE, CLASSES),
            [200 if c == k else 20 for k in label for _ in range(SIDE * SIDE)
             for c in range(CLASSES)])
    body = ("\nh = image |> normalize(mean=110, std=90) "
            "|> {norm} |> mean([height, width]) |> {rand}\n"
            "h * parameter([%d], init=1)\n" % CLASSES)
    kept = re.sub(r" \|> random_resized.*", "", EVERY_ALONE).replace(
        "reflect", "edge")
    common = dict(body=body, image="u8[N, 6, 6, %d]" % CLASSES, rand=None,
                  rate="cosine(1e-4)", freeze=None, norm="batch_norm(frozen)",
                  params='"*" { weight_decay = 0 }')
    cases = [dict(loss="mean(%s)" % x, input=kept)
             for x in some(LOSSES.values(), 2, 1)]
    cases += [dict(loss="sum(cross_entropy(output, label))", precision="f16"),
              dict(precision="bf16", average="lookahead(0.5)",
                   recompute="auto"),
              dict(norm="batch_norm", rand="dropout(0.1)"),
              dict(input="data.train |> mixup(1) |> cutmix(2)",
                   accumulate="2", stop="loss <= 0")]
    for k in cases:
        text = recipe(**{**common, **k})
        run = Run(build(text, "--act=recipe"), data, "--validation=7",
                  start(text, data))
        rows = run.of("test")
        if "cutout" in k.get("input", ""):
            rows = rows + run.of("train")
        for row in rows:
            insist(row["accuracy"] == 1, k, row)
            insist(row.get("top5", 1) in (1, None), k, row)
            close("perplexity", row["perplexity"], math.exp(row["loss"]), 1e-6)


def sides():
    """A single output is judged by its label, where samples may be mixed too:
    it is on its side, and has the same loss in an evaluation."""
    data = os.path.join(work, "sides")
    for part, n in ("train", 44), ("test", TEST):
        label = [i * 5 % 3 % 2 for i in range(n)]
        npy(f"{data}/{part}_y.npy", "i", (n,), label)
        npy(f"{data}/{part}_x.npy", "B", (n, SIDE, SIDE, 1),
            [200 if k else 20 for k in label for _ in range(SIDE * SIDE)])
    body = ("\nh = image |> normalize(mean=110, std=90) "
            "|> mean([height, width])\nh * parameter([1], init=1)\n")
    loss = None
    for chain in None, "flip_lr |> mixup(0.4, p=0)", "cutmix(2) |> mixup(0.4)":
        run = Run(build(recipe(
            body=body, image="u8[N, 6, 6, 1]", output="f32[N, 1]", norm=None,
            rand=None, rate="0", freeze=None, params=None,
            loss="mean(bce_with_logits(output, label))", precision="bf16",
            metrics="[accuracy, loss, perplexity]", stop="loss <= 0",
            input=chain and "data.train |> " + chain)), data)
        rows = run.of("test") + (run.of("train") if "(2)" not in str(chain)
                                 else [])
        for row in rows:
            insist(row["accuracy"] == 1, chain, row)
            loss = loss or row["loss"]
            if row["split"] == "test":
                close("loss", row["loss"], loss, 1e-6)


def chance():
    """top5 of fewer than five classes is everything, of seven it is not."""
    data = images("forty", 44)
    body = BODY.replace("linear(%d)" % CLASSES, "linear(%d)")
    few = os.path.join(work, "few")
    if not os.path.exists(few):
        shutil.copytree(data, few)
        for part, n in ("train", 44), ("test", TEST):
            npy(f"{few}/{part}_y.npy", "i", (n,), [i % 3 for i in range(n)])
    top5 = Run(build(recipe(body=body % 3, output="f32[N, 3]")), few)
    insist(top5.last()["top5"] == 1, top5.last())
    top5 = Run(build(recipe()), data)
    insist(top5.last()["accuracy"] <= top5.last()["top5"] < 1, top5.last())


def scales():
    """Equivalent recipes: a sum at a rate so many times smaller, a loss that is
    clipped, groups at once, a group that stands still, labels as numbers."""
    data = images("forty", 44)
    common = dict(average="lookahead(0.5)", batch="8, drop_last",
                  optimizer="sgd(lr=rate, momentum=0.9)", recompute="auto",
                  stop="loss <= 0")
    e = "cross_entropy(output, label)"
    one = "one_hot(label, %d)" % CLASSES
    k = {**common, **PLAIN, "rand": "dropout(0.3)"}
    for what, a, b in (
        ("sum", dict(loss="mean(%s)" % e, clip=None),
         dict(loss="sum(%s)" % e, clip=None, rate="0.125 * cosine(0.1)")),
        ("clipped", dict(loss="mean(%s)" % e, clip="norm(1e-3)"),
         dict(loss="mean(64 * %s)" % e, clip="norm(1e-3)")),
        ("value", dict(loss="mean(%s)" % e, clip="value(0.5)"),
         dict(loss="mean(2 * %s)" % e, clip="value(1)", rate="cosine(0.05)")),
        ("group", dict(params='"*" { lr = 2 * lr }'),
         dict(params=None, rate="cosine(0.2)")),
        ("still", dict(clip=None, freeze='"b.*"', params=None),
         dict(clip=None, freeze=None, params='"b.*" { lr = 0 }')),
        ("classes", dict(loss="mean(%s)" % e),
         dict(loss="mean(cross_entropy(output, %s))" % one)),
        ("ends", dict(rate="cosine(0.1)"),
         dict(rate="0.05 + 0.05 * cos(3.14159265358979 * progress)"))):
        runs = [Run(build(recipe(**{**k, **c})), data) for c in (a, b)]
        near(what, *(weights(r.tensors()) for r in runs),
             1e-3 if what == "clipped" else REORDERED)


def narrow():
    """Activations of 16 bits come close to f32.

    The logits follow from four tensors that are rounded by a unit when they are
    stored, each again in the backward pass, and a loss changes by at most twice
    what its logits do, which are below 1 here.
    """
    data = images("forty", 44)
    # Losses once: the states of optimizers have 32 bits.
    cases = [dict(input=ALONE, accumulate="2", **k)
             for k in some(itertools.islice(in_turn(), len(LOSSES)), 2)]
    cases += [dict(norm="batch_norm(frozen)", stop="loss <= 0",
                   average="lookahead(0.5)", recompute="auto", input=EVERY)]
    for k in cases:
        runs = {p: Run(build(recipe(precision=p, rate="cosine(0.01)",
                                    **k), "--act=recipe"), data,
                       "--validation=5")
                for p in ("f32", "f16", "bf16")}
        for p, unit in ("f16", 2 ** -11), ("bf16", 2 ** -8):
            for split in "train", "test":
                for a, b in zip(runs[p].of(split), runs["f32"].of(split)):
                    insist(not a.get("skipped"), p, "skips steps")
                    close(f"{p} {k}", a["loss"], b["loss"], 2 * 2 * 4 * unit)


def goal():
    """A run that stops leaves what met its goal."""
    data = images("forty", 44)
    # The class is a brightness, which policies change.
    kept = re.sub(r" \|> rotate.*(?= \|> mixup)", "", EVERY)
    for k in (dict(), dict(average="lookahead(0.5, every=4 step)"),
              dict(accumulate="2", average="ema(0.5, every=2 step)"),
              dict(precision="f16", recompute="auto")):
        text = recipe(stop="loss <= 1.94", eval="every 1 step", epochs="40",
                      freeze='"b.*" after 30 epoch', input=kept, **k)
        run = Run(build(text), data, "--validation=9", start(text, data))
        met = run.last()
        insist(met.get("stops") and met["loss"] <= 1.94 and
               met["epoch"] < 40, k, met)
        again = Run(build(text), data, "--eval-only", "--validation=9",
                    folder=run.folder).last()
        insist(again["loss"] == met["loss"], k, again, met)


# ---- what others mend ----

def places():
    """Targets that are the image itself follow it: a loss of zero."""
    data = os.path.join(work, "places")
    draw = random.Random(3)
    for part, n in ("train", 44), ("test", TEST):
        pixel = [draw.randrange(256) for _ in range(n * PIXELS)]
        npy(f"{data}/{part}_x.npy", "B", (n, SIDE, SIDE, CHANNELS), pixel)
        npy(f"{data}/{part}_y.npy", "f", (n, SIDE, SIDE, CHANNELS), pixel)
    body = "\nh = image * 1\nh * parameter([%d], init=1)\n" % CHANNELS
    k = dict(body=body, data='npy("data", targets)', norm=None, rand=None,
             output="f32[N, 6, 6, 2]", loss="mean(mse(output, label))",
             rate="cosine(1e-9)", metrics="[loss]", freeze=None, params=None,
             optimizer="sgd(lr=rate)")
    moves = ["random_crop(6, pad=2, mode=edge)", "random_crop(6, pad=2)",
             "random_crop(6, pad=2, mode=reflect)", "random_translate(2)",
             "random_resized_crop(6)", "flip_lr", "alternating_flip",
             "rotate(30)", "affine(20, shear=9, interpolation=\"bilinear\")",
             "cutmix(2)", "cutmix(alpha=1)", "mixup(0.4)"]
    chains = moves if ALL else map(" |> ".join, (moves[::2], moves[1::2]))
    for chain in *chains, " |> ".join(moves):
        run = Run(build(recipe(**{**k, "input": "data.train |> " + chain},
                               accumulate="2", stop="loss <= -1")), data)
        # Pixels are below 256: an f32 blend rounds to 2^-16 of them at most.
        for row in run.of("train") + run.of("test"):
            insist(row["loss"] < (256 * 2 ** -16) ** 2, chain, row)


def drift():
    """The mean of equal losses is that loss, of however many samples."""
    data = os.path.join(work, "equal_losses")
    n = 200000
    for part, count in ("train", 100), ("test", n):
        npy(f"{data}/{part}_x.npy", "f", (count, 2), [1.0, 0.5] * count)
        npy(f"{data}/{part}_y.npy", "i", (count,), [1] * count)
    k = dict(body="\nimage |> linear(%d) as head\n" % CLASSES,
             image="f32[N, 2]", norm=None, rand=None, input=None, views=None,
             freeze=None, params=None, batch="10", average=None,
             stop="loss <= 0")
    run = Run(build(recipe(**k)), data)
    one = os.path.join(work, "one_loss")
    for part in "train", "test":
        npy(f"{one}/{part}_x.npy", "f", (10, 2), [1.0, 0.5] * 10)
        npy(f"{one}/{part}_y.npy", "i", (10,), [1] * 10)
    of_one = Run(build(recipe(**k)), one, "--init=" + run.files[-1],
                 "--eval-only").last()["loss"]
    close("mean", run.last()["loss"], of_one, 2 ** -22)


def alone():
    """Samples that see one another see no others in a short batch."""
    data = images("twelve", 12)
    body = BODY.replace("|> relu as b", "|> {rest} |> relu as b").replace(
        "{rest}", "centred")
    add = "fn centred(x) = x - mean(x, batch, keep)\n"
    k = {**PLAIN, "body": body, "epochs": "3"}
    runs = [Run(build(add + recipe(**{**k, "batch": b})), data)
            for b in ("12", "16")]
    near("centred", *(weights(r.tensors()) for r in runs), REORDERED)
