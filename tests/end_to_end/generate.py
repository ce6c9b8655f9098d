"""Checks generated texts by --predict.

    generate.py TEXT TOKENIZER PROMPT LENGTH TRAINER RUN
        after PROMPT characters, each of TEXT is the likeliest after the
        others, in windows of LENGTH positions
    generate.py draws TRAINER RUN TOKENIZER LENGTH
        the first tokens of many seeds have the probabilities of the scores
    generate.py library TRAINER CHECKPOINT TOKENIZER
        libgpt.so generates the trainer's texts, and libsmall.so has its logits
"""
import ctypes
import json
import math
import os
import shutil
import subprocess
import sys

import numpy

from library import Model, refused


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
            first += (length + 1) // 2
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
    count, seen = 100, numpy.zeros(len(share))
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


class Writer(Model):
    """An instance that continues texts."""

    def __init__(self, name, checkpoint):
        super().__init__(name)
        decode = self.function("decode")
        decode.restype = ctypes.POINTER(ctypes.c_char)
        self.refuses("tokenizer(PATH) reads one")
        self.load(checkpoint)

    def refuses(self, says):
        """No call has a tokenizer."""
        refused(says, lambda: self.encode("| tool"))
        assert not self.function("decode")(self.at, 0, None)
        assert says in self.error() and self.function("end")(self.at) == -1

    def encode(self, text):
        data, room = text.encode(), (ctypes.c_int32 * len(text))()
        encode = self.function("encode")
        encode.restype = ctypes.c_int64
        count = encode(self.at, data, ctypes.c_size_t(len(data)), room,
                       ctypes.c_int64(len(room)))
        if count < 0:
            raise RuntimeError(self.error())
        assert count == encode(self.at, data, ctypes.c_size_t(len(data)), None,
                               ctypes.c_int64(0))
        return list(room)[:count]

    def prompt(self, tokens):
        self.call("prompt", (ctypes.c_int32 * len(tokens))(*tokens),
                  ctypes.c_int64(len(tokens)))

    def next(self, temperature=1., top_k=0, top_p=0., seed=-1):
        token = ctypes.c_int32()
        self.call("next", ctypes.c_double(temperature), ctypes.c_int64(top_k),
                  ctypes.c_double(top_p), ctypes.c_int64(seed),
                  ctypes.byref(token))
        return token.value

    def decode(self, tokens):
        length, text = ctypes.c_size_t(), b""
        for token in tokens:
            data = self.function("decode")(self.at, token, ctypes.byref(length))
            text += data[:length.value]
        return text.decode()

    def logits(self, kinds):
        scores = numpy.full(kinds + 1, numpy.nan, numpy.float32)
        self.call("logits", scores.ctypes)
        assert numpy.isnan(scores[-1]) and numpy.isfinite(scores[:-1]).all()
        return scores[:-1]


def library(trainer, checkpoint, tokenizer):
    with open(tokenizer, encoding="utf-8") as f:
        kinds = len(json.load(f)["model"]["vocab"])
    one, other = (Writer("gpt", checkpoint) for _ in range(2))
    folder = os.getcwd()
    os.chdir("/")
    start, length = one.encode("| tool"), 60
    os.chdir(folder)

    # A tokenizer is that of the last weights, unless one was chosen.
    one.call("tokenizer", tokenizer.encode())
    assert one.encode("| tool") == start == other.encode("| tool")
    for name in "bare", "damaged":
        os.mkdir(name)
        shutil.copy(checkpoint, f"{name}/weights")
    with open("damaged/tokenizer.json", "w", encoding="utf-8") as f:
        f.write("{")
    other.load("bare/weights")
    other.refuses("tokenizer(PATH) reads one")
    other.load("damaged/weights")
    other.refuses("damaged/tokenizer.json")
    one.load("damaged/weights")
    assert one.encode("| tool") == start
    other.load(checkpoint)
    window = numpy.zeros((1, 24), numpy.int32)
    for options in ({"temperature": 0.}, {"seed": 3}, {},
                    {"temperature": 1.5, "top_k": 5, "top_p": .9, "seed": 4}):
        words = [f"--{key.replace('_', '-')}={value}"
                 for key, value in options.items()]
        said = subprocess.run(
            [trainer, "--generate=| tool", f"--weights={checkpoint}", "--quiet",
             f"--tokens={length}", f"--tokenizer={tokenizer}", *words],
            check=True, capture_output=True).stdout.decode()
        # Other steps of the instance, or another one's, change nothing.
        one.prompt(start)
        other.prompt(start[:1])
        found = []
        for i in range(length):
            found.append(one.next(**options))
            other.next(seed=7)
            if i % 20 == 19:
                one.predict(window, 24 * kinds)
        assert one.decode(start + found) + "\n" == said, (options, said)

    # Logits are those of a prediction, and of the draw.
    one.prompt(start)
    window[0, :len(start)] = start
    rows = one.predict(window, 24 * kinds).reshape(24, kinds)
    logits, row = one.logits(kinds), rows[len(start) - 1]
    assert abs(logits - row).max() < 1e-5 * abs(row).max(), logits - row
    small = Writer("small", checkpoint)
    small.prompt(start)
    far = small.logits(kinds) - logits
    assert 0 < abs(far).max() < 1e-5 * abs(row).max(), far
    text = list(start)
    for _ in range(length):
        text.append(int(one.logits(kinds).argmax()))
        one.call("append", text[-1])
    other.prompt(start)
    assert text == start + [other.next(temperature=0.) for _ in range(length)]

    # Weights that change count from the next token on.
    weight = one.read("linear_1.bias")
    for model in one, other:
        model.write("linear_1.bias", weight + numpy.float32(1))
    other.prompt(text)
    one.prompt(text[:-1])
    one.write("linear_1.bias", weight)
    one.logits(kinds)
    one.write("linear_1.bias", weight + numpy.float32(1))
    one.call("append", text[-1])
    assert (one.logits(kinds) == other.logits(kinds)).all()

    # A refused prompt leaves the text as it is.
    refused(f"has tokens 0 to {kinds - 1}", lambda: one.prompt([0, kinds]))
    assert (one.logits(kinds) == other.logits(kinds)).all()
    one.prompt([])
    refused("no token yet", lambda: one.logits(kinds))
    one.prompt(start)
    refused("the temperature is -1", lambda: one.next(temperature=-1.))
    refused("top-p is 2", lambda: one.next(top_p=2.))
    refused("top-k is -3", lambda: one.next(top_k=-3))
    refused("no token for '~'", lambda: one.encode("~"))
    refused("nowhere", lambda: one.call("tokenizer", b"nowhere"))
    for model in one, other, small:
        model.free()


if __name__ == "__main__":
    if sys.argv[1] == "library":
        library(*sys.argv[2:])
    elif sys.argv[1] == "draws":
        draws(*sys.argv[2:5], int(sys.argv[5]))
    else:
        greedy(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]),
               *sys.argv[5:])
