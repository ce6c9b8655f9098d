#!/usr/bin/env python3
"""Random models with `shards`: the same bits for any number of ranks.

    ranks.py FIRST COUNT      the models of some seeds
    ranks.py --models         resnet9, gpt_nano and airbench94, small
    ranks.py --show SEED      prints a seed's model

Each model is trained by one process and by up to 8 ranks; then a run stops and
goes on with another number of them.  A model whose optimizer is divided is
compared with one whose optimizer is whole.  Checkpoints are compared to the byte,
and every row of metrics but its times.  A run that diverges must do so for any
number of ranks, after equal rows.
"""

import itertools
import json
import os
import random
import re
import shutil
import subprocess
import sys

SOURCE = os.environ["SINTER_SOURCE"]
sys.path.insert(0, os.path.join(SOURCE, "tests", "pairs"))
sys.dont_write_bytecode = True
import bench  # noqa: E402
import trials  # noqa: E402

RANKS = 1, 2, 3, 4, 5, 6, 8  # as far as shards allow
DIVERGED = 6  # an exit status
IMPORTS = """\
import "std/recurrent.net" { gru, lstm }
import "std/transformers.net" { rms_norm, swiglu, grouped_attention }
"""

# ---- models ----

CONVS = ["conv(%d, 3)", "conv(%d, 1, bias=false)", "conv(%d, 3, groups=2)",
         "conv(%d, 3, dilation=2)", "conv(%d, [1, 3], bias=false)"]
BETWEEN = ["batch_norm", "batch_norm(momentum=0.3, scale=false)",
           "batch_norm(frozen)", "layer_norm", "group_norm(2)", "relu", "gelu",
           "silu", "leaky_relu", "tanh", "hard_swish", "dropout(0.2)"]
SEQUENCES = ["attention(2)", "attention(2, causal, dropout=0.1)",
             "linear(4) |> gelu", "rms_norm |> linear(4)", "gru(4)", "lstm(4)",
             "grouped_attention(2, kv_heads=1)", "swiglu(6)"]


def block(draw, channels):
    """Layers that keep the size of an image."""
    return " |> ".join([draw.choice(CONVS) % channels] +
                       draw.sample(BETWEEN, draw.randrange(4)))


def body(draw, samples):
    """The lines of a model, from images to classes, for so many of a shard."""
    channels = 4
    lines = ["h = image |> normalize(mean=128, std=64) |> conv(4, 3)"]
    for i in range(draw.randrange(4)):
        if draw.random() < 0.5:
            channels = draw.choice([4, 6, 8])
            lines.append("h = h |> %s as b%d" % (block(draw, channels), i))
        else:
            lines.append("h = h + (h |> %s as b%d)" % (block(draw, channels),
                                                       i))
    end = draw.choice(["max_pool(2) |> flatten", "global_avg_pool",
                       "global_max_pool", ""])
    if end:
        lines.append("h = h |> " + end)
    else:
        lines.append("h = h |> avg_pool(2) |> reshape([N, 9, %d]) |> linear(4)"
                     % channels)
        for i in range(1 + draw.randrange(2)):
            lines.append("h = h + (h |> %s as t%d)" % (draw.choice(SEQUENCES),
                                                       i))
        lines.append("h = h |> mean(positions)")
    if samples > 1 and draw.random() < 0.3:
        lines.append("h = h |> linear(6) |> batch_norm |> relu")
    lines.append("h |> linear(%d) as head" % bench.CLASSES)
    return "\n" + "".join("  %s\n" % line for line in lines)


def settings(draw):
    """Keys of a recipe, None for those that are left out."""
    def some(*values):
        return draw.choice(values)
    loss = some(*trials.LOSSES.values())
    mixes = "one_hot" not in loss  # which makes shares of whole numbers
    chain = (bench.EVERYTHING["input"] if mixes else bench.ALONE).split(" |> ")
    kept = draw.sample(range(1, len(chain)), draw.randrange(4))
    shards, samples = some(8, 8, 8, 16, 3, 5, 6), some(1, 2, 3)
    keys = {
        "body": body(draw, samples), "norm": None, "rand": None,
        "batch": "%d%s" % (shards * samples, some("", "", ", drop_last")),
        "shards": str(shards), "accumulate": some(None, None, "2", "3"),
        "sync_batch_norm": some(None, "true"),
        "input": " |> ".join([chain[0]] + [chain[i] for i in sorted(kept)]),
        "epochs": some("2", "3", "1.5"),
        "loss": "%s(%s)" % (some("mean", "mean", "sum"), loss),
        "rate": some("cosine(0.02)", "0.01", "one_cycle(0.02)",
                     "piecewise(0: 0, 1 epoch: 0.02, 100%: 0)"),
        "clip": some(None, None, "norm(0.5)", "norm(1e-3)", "value(0.01)"),
        "average": some(None, "ema(0.9)", "ema(0.5, every=2 step)",
                        "lookahead(0.5, every=3 step)", "lookahead(0.7)"),
        "freeze": some(None, None, '"head.*"', '"head.bias" after 1 epoch',
                       '"conv_1.*" after 3 step'),
        "metrics": some(None, "[accuracy, loss, top5, perplexity]"),
        "views": some(None, None, "[identity, flip_lr]"),
        "precision": some(None, None, "f16", "bf16"),
        "recompute": some(None, None, "auto"),
        "eval": some("every 1 epoch", "every 3 step"),
        "seed": str(draw.randrange(1000)),
    }
    optimizer = some(*trials.OPTIMIZERS)  # muon is a group's
    keys.update({"params": None, **trials.of_optimizer(optimizer)})
    if optimizer != "muon" and "head.*" not in str(keys["freeze"]):
        keys["params"] = some(None, '"head.*" { lr = 2 * lr }')
    keys["optimizer_shards"] = some(None, "2", "3", "7")
    return keys


def model_of(seed):
    """The text of a seed's model, its number of samples, the numbers of ranks,
    and the step of a stop."""
    draw = random.Random(seed)
    keys = settings(draw)
    shards = int(keys["shards"])
    update = int(keys["batch"].split(",")[0]) * int(keys["accumulate"] or 1)
    samples = draw.randrange(update, 4 * update)
    ranks = [r for r in RANKS if r == 1 or shards % r == 0 and
             (shards // r).bit_count() == 1]
    return IMPORTS + bench.recipe(**keys), samples, ranks, 1 + draw.randrange(3)


# ---- runs ----

def start(path, data, folder, ranks, options):
    """Runs a trainer as so many ranks: their exit status."""
    status, said = bench.launch(path, ["--data", data, "--out", folder,
                                       "--quiet", "--log-every", "1",
                                       *options], ranks)
    bench.insist(len(set(status)) == 1 and status[0] in (0, DIVERGED),
                 ranks, "ranks end with", status, said)
    return status[0]


def rows_of(folder):
    """Metrics, without times."""
    rows = [json.loads(line)
            for line in open(os.path.join(folder, "metrics.jsonl"))]
    return [{k: v for k, v in row.items()
             if not re.search("second|wait|elapsed", k)}
            for row in rows if row["split"] != "time"]


def checkpoint_of(folder):
    files = sorted(f for f in os.listdir(folder) if f.endswith(".safetensors"))
    return bench.tensors(os.path.join(folder, files[-1])) if files else {}


def same(what, one, other):
    for a, b in itertools.zip_longest(rows_of(one), rows_of(other)):
        bench.insist(a == b, what, "have other metrics:", a, b)
    bench.same_bits(what, checkpoint_of(one), checkpoint_of(other))


def compare_ranks(path, data, ranks, stop, draw):
    """Whether the trainer runs to its end."""
    alone, *others = (os.path.join(bench.work, "run.%d" % n) for n in ranks)
    status = start(path, data, alone, 1, [])
    for count, own in zip(ranks[1:], others):
        bench.insist(start(path, data, own, count, []) == status,
                     count, "ranks do not diverge, or alone do")
        same("%d ranks" % count, alone, own)
    if status == DIVERGED:
        return False
    first, then = draw.sample(ranks, 2)
    resumed = os.path.join(bench.work, "run.resumed")
    start(path, data, resumed, first, ["--steps", str(stop)])
    start(path, data, resumed, then, ["--resume"])
    bench.same_bits("%d ranks, then %d" % (first, then),
                    checkpoint_of(alone), checkpoint_of(resumed))
    return True


def clear():
    for name in os.listdir(bench.work):
        if name.startswith("run."):
            shutil.rmtree(os.path.join(bench.work, name))


def compare_whole(text, data):
    """With the same model, whose optimizer is not divided."""
    path, _ = bench.build(re.sub("  optimizer_shards = .*\n", "", text),
                          "--act=recipe")
    alone, whole = (os.path.join(bench.work, "run." + name)
                    for name in ("1", "whole"))
    start(path, data, whole, 1, [])
    same("the whole optimizer and its shards", whole, alone)


def try_seed(seed):
    text, samples, ranks, stop = model_of(seed)
    data = bench.images("of %d" % samples, samples)
    path, _ = bench.build(text, "--act=recipe")
    good = compare_ranks(path, data, ranks, stop, random.Random(seed))
    # Matrices that muon updates together are those of a shard.
    if good and "optimizer_shards" in text and "muon" not in text:
        compare_whole(text, data)
    return good


# Small forms of models, which end with a short batch: the settings.
MODELS = {
    "resnet9": ["width=16", "lr=piecewise(0: 0, 5/24: 0.002, 1: 0)"],
    "gpt_nano": ["data=synthetic(vocabulary=65, shape=[32])"],
    "airbench94": [],
}


def try_model(name, precision):
    path = os.path.join(bench.work, name)
    settings = ["batch=16", "shards=8", "optimizer_shards=3", "epochs=3",
                "precision=" + precision]
    command = [bench.SINTER, "build", "%s/models/%s.net" % (SOURCE, name), "-o",
               path, "--act=recipe"]
    for setting in settings + MODELS[name]:
        command += ["--set", setting]
    p = subprocess.run(command, capture_output=True, text=True)
    bench.insist(p.returncode == 0, p.stderr)
    return compare_ranks(path, "synthetic:41", (1, 2, 4, 8), 4,
                         random.Random(name + precision))


def main(trials):
    failed = diverged = 0
    for name, trial, *arguments in trials:
        try:
            diverged += not trial(*arguments)
        except bench.Failure as failure:
            failed += 1
            print("%s: %s" % (name, failure), flush=True)
        clear()
    print("%d models, %d of them diverged; %d failed" %
          (len(trials), diverged, failed), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        if sys.argv[1] == "--show":
            print(model_of(int(sys.argv[2]))[0])
        elif sys.argv[1] == "--models":
            sys.exit(main([(name + " " + precision, try_model, name, precision)
                           for name in MODELS
                           for precision in ("f32", "f16", "bf16")]))
        else:
            first, count = map(int, sys.argv[1:])
            sys.exit(main([("seed %d" % seed, try_seed, seed)
                           for seed in range(first, first + count)]))
    finally:
        shutil.rmtree(bench.work)
