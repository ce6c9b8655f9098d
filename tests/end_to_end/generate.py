"""Checks generated texts by --predict.

    generate.py TEXT TOKENIZER PROMPT LENGTH TRAINER RUN
        after PROMPT characters, each of TEXT is the likeliest after the
        others, in windows of LENGTH positions
    generate.py draws TRAINER RUN TOKENIZER LENGTH
        the first tokens of many seeds have the probabilities of the scores
"""
import json
import math
import subprocess
import sys

import numpy


def predict(trainer, run, tokens, length):
    """Scores of the positions of a text that is at most `length` long."""
    whole = numpy.zeros((1, length), numpy.int32)
    whole[0, :len(tokens)] = tokens
    numpy.save("window.npy", whole)
    subprocess.run([trainer, "--predict", "window.npy", f"--weights={run}",
                    "--quiet", "-o", "scores.npy"], check=True)
    return numpy.load("scores.npy")[0]


def greedy(text, tokenizer, prompt, length, trainer, run):
    with open(tokenizer, encoding="utf-8") as f:
        number = json.load(f)["model"]["vocab"]
    with open(text, encoding="utf-8", newline="") as f:
        tokens = [number[c] for c in f.read()[:-1]]
    first = 0
    scores = predict(trainer, run, tokens[:length], length)
    for at in range(prompt, len(tokens)):
        if at - first > length:
            first = at - (length + 1) // 2
            scores = predict(trainer, run, tokens[first:first + length], length)
        row = scores[at - 1 - first]
        if row[tokens[at]] < row.max() - 1e-5 * abs(row).max():
            sys.exit(f"token {at} is {tokens[at]}, but {row.argmax()} is "
                     f"likelier: {row[tokens[at]]} and {row.max()}")
    assert first > 0, "the text fits into one window"


def draws(trainer, run, tokenizer, length):
    with open(tokenizer, encoding="utf-8") as f:
        number = json.load(f)["model"]["vocab"]
    scores = predict(trainer, run, [number["t"]], length)[0].astype(float) / 1.5
    share = numpy.exp(scores - scores.max())
    share /= share.sum()
    count, seen = 200, numpy.zeros(len(share))
    for seed in range(count):
        said = subprocess.run(
            [trainer, "--generate=t", f"--weights={run}", "--tokens=1",
             "--temperature=1.5", f"--seed={seed}", "--quiet"],
            check=True, capture_output=True).stdout.decode()
        seen[number[said[1]]] += 1
    # A chi-squared test over the likely tokens and the rest.
    likely = share * count >= 8
    wanted = numpy.append(share[likely], share[~likely].sum()) * count
    found = numpy.append(seen[likely], seen[~likely].sum())
    wanted, found = wanted[wanted > 0], found[wanted > 0]
    far = ((found - wanted) ** 2 / wanted).sum()
    free = len(wanted) - 1
    if far > free + 5 * math.sqrt(2 * free):
        sys.exit(f"chi-squared is {far} with {free} degrees of freedom")


if __name__ == "__main__":
    if sys.argv[1] == "draws":
        draws(*sys.argv[2:5], int(sys.argv[5]))
    else:
        greedy(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]),
               *sys.argv[5:])
