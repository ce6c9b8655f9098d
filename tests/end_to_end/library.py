#!/usr/bin/env python3
"""What must be true of the libraries that library.sh builds.

usage: library.py COMMAND FILE...
"""

import ctypes
import gc
import json
import os
import resource
import struct
import sys
import threading

import numpy as np

sys.path.insert(0, os.path.dirname(__file__))


class Model:
    """An instance, with the functions of the header."""

    def __init__(self, name, device="host", threads=0):
        self.name = name
        self.loaded = ctypes.CDLL(f"./lib{name}.so")
        create = self.function("create")
        create.restype = ctypes.c_void_p
        self.function("error").restype = ctypes.c_char_p
        self.at = create(device.encode(), threads)
        if not self.at:
            raise RuntimeError(self.error())
        self.at = ctypes.c_void_p(self.at)

    def function(self, name):
        return getattr(self.loaded, f"{self.name}_{name}")

    def error(self):
        return self.function("error")().decode()

    def call(self, name, *arguments):
        if self.function(name)(self.at, *arguments) != 0:
            raise RuntimeError(self.error())

    def free(self):
        self.function("free")(self.at)

    def load(self, path):
        self.call("load", path.encode())

    def save(self, path):
        self.call("save", path.encode())

    def begin(self, samples, seed, epochs=0):
        self.call("begin", ctypes.c_int64(samples), ctypes.c_double(epochs),
                  ctypes.c_int64(seed))

    def predict(self, x, numbers):
        output = np.full((len(x), numbers), np.nan, np.float32)
        self.call("predict", x.ctypes, ctypes.c_int64(len(x)), output.ctypes)
        return output

    def train(self, x, y):
        loss = ctypes.c_float()
        self.call("train", x.ctypes, y.ctypes, ctypes.c_int64(len(x)),
                  ctypes.byref(loss))
        return loss.value

    def weights(self):
        """Shapes by name."""
        rank, dim = ctypes.c_int(), ctypes.POINTER(ctypes.c_int64)()
        weight = self.function("weight")
        weight.restype = ctypes.c_char_p
        shapes = {}
        while name := weight(self.at, len(shapes), ctypes.byref(rank),
                             ctypes.byref(dim)):
            shapes[name.decode()] = tuple(dim[:rank.value])
        return shapes

    def read(self, name):
        value = np.empty(self.weights()[name], np.float32)
        self.call("read", name.encode(), value.ctypes,
                  ctypes.c_size_t(value.size))
        return value

    def write(self, name, value):
        self.call("write", name.encode(), value.ctypes,
                  ctypes.c_size_t(value.size))


def data(split):
    return np.load(f"data/{split}_x.npy"), np.load(f"data/{split}_y.npy")


def tensors(path):
    """The bytes of a checkpoint's tensors, by name."""
    with open(path, "rb") as file:
        length, = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        body = file.read()
    return {name: body[slice(*entry["data_offsets"])]
            for name, entry in header.items() if name != "__metadata__"}


def refused(says, call):
    try:
        call()
    except RuntimeError as error:
        assert says in str(error), error
        return
    raise AssertionError(f"nothing about {says}")


def close(one, other):
    """Equal but for the order of sums, of some hundred terms at most."""
    assert abs(one - other).max() < 2e-6 * abs(other).max(), abs(one - other)


def predicts(weights, array):
    """The trainer's predictions, from both libraries, in parts as well."""
    expected, x = np.load(array), data("test")[0]
    for name in "small", "predicts":
        model = Model(name)
        model.load(weights)
        all_of_them = model.predict(x, 3)
        if name == "small":
            assert (all_of_them == expected).all()
        close(all_of_them, expected)
        for some in 1, 31, 33:
            assert (model.predict(x[:some], 3) == all_of_them[:some]).all()
        model.load("run.folder")
        assert (model.predict(x, 3) == all_of_them).all()
        assert len(model.predict(x[:0], 3)) == 0
        model.free()


def same_weights(names):
    models = [Model(name) for name in names]
    models[0].save("shared.safetensors")
    models[1].load("shared.safetensors")
    return models


def own():
    """The plain contractions of the runtime, with one thread and several."""
    random = np.random.default_rng(1)
    x = random.integers(0, 256, (13, 11, 9, 3)).astype(np.uint8)
    one, other = same_weights(["plain", "own"])
    expected, found = one.predict(x, 7), other.predict(x, 7)
    assert (found != expected).any()  # it is not oneDNN
    close(found, expected)
    alone = Model("own", threads=1)
    alone.load("shared.safetensors")
    assert (alone.predict(x, 7) == found).all()


def large():
    """With oneDNN, a library that only predicts has the same bits, also after
    weights have changed that it keeps in oneDNN's layout."""
    random = np.random.default_rng(1)
    x = random.integers(0, 256, (70, 32, 32, 3)).astype(np.uint8)
    one, other = same_weights(["large", "larger"])
    first = one.predict(x, 10)
    assert (first == other.predict(x, 10)).all()
    name = next(name for name in one.weights() if name.startswith("layer1"))
    weight = np.float32(2) * one.read(name)
    fresh = same_weights(["large", "larger"])
    for model in one, other, *fresh:
        model.write(name, weight)
    second = fresh[0].predict(x, 10)
    assert (second != first).any()
    for model in one, other, fresh[1]:
        assert (second == model.predict(x, 10)).all()
    one.train(x[:64], random.integers(0, 10, 64).astype(np.int32))
    one.save("trained.safetensors")
    third = one.predict(x, 10)
    assert (third != second).any()
    for model in other, *fresh:
        model.load("trained.safetensors")
        assert (third == model.predict(x, 10)).all()


def samples_train(model, epochs):
    """The updates of the trainer's run: its order of samples, by numerics.md."""
    from order import order
    x, y = data("train")
    model.begin(len(x), 0)
    losses = []
    for epoch in range(epochs):
        for first in range(0, len(x), 32):
            rows = [order(0, epoch, first + i, len(x)) for i in range(32)]
            losses.append(model.train(np.ascontiguousarray(x[rows]),
                                      np.ascontiguousarray(y[rows])))
    return losses


def trains(checkpoint):
    """A run of the library leaves the trainer's checkpoint."""
    model = Model("small")
    losses = samples_train(model, 4)
    assert losses[-1] < losses[0], losses
    step, steps = model.function("step"), model.function("steps")
    assert step(model.at) == steps(model.at) == 16
    refused("over", lambda: model.train(*(a[:32] for a in data("train"))))
    model.save("own.safetensors")
    own, other = tensors("own.safetensors"), tensors(checkpoint)
    assert own.keys() == other.keys()
    for name, value in own.items():
        assert value == other[name] or name.startswith("metric."), name
    before = model.predict(data("test")[0], 3)
    again = Model("small")
    again.load("own.safetensors")
    assert (again.predict(data("test")[0], 3) == before).all()
    assert step(again.at) == 16
    for m in model, again:
        m.free()


def early():
    """Until averaging starts, a saved average is the weight."""
    model, (x, y) = Model("small"), data("train")
    model.begin(len(x), 0)
    model.train(x[:32], y[:32])
    model.save("early.safetensors")
    saved = tensors("early.safetensors")
    assert saved["conv_1.weight.average"] == saved["conv_1.weight"]
    model.free()


def continues(trained, run, array):
    """A new run starts with loaded weights, and new optimizer states, as the
    trainer's does with --init; a shorter one plans its schedules for it."""
    model, x = Model("small"), data("test")[0]
    model.load(run)
    samples_train(model, 4)
    model.save("again.safetensors")
    own, other = tensors("again.safetensors"), tensors(trained)
    assert own.keys() == other.keys()
    for name, value in own.items():
        assert value == other[name] or name.startswith("metric."), name
    assert (model.predict(x, 3) == np.load(array)).all()
    before = model.read("conv_1.weight")
    model.begin(128, 7, epochs=0.5)
    assert model.function("steps")(model.at) == 2
    assert model.function("step")(model.at) == 0
    averaged = tensors("again.safetensors").get("conv_1.weight.average")
    if averaged is not None:
        before = np.frombuffer(averaged, np.float32).reshape(before.shape)
    assert (model.read("conv_1.weight") == before).all()
    model.free()


def threads():
    """Instances in threads of their own compute what one alone computes."""
    alone = Model("small", threads=1)
    expected = samples_train(alone, 4)
    found = [None] * 4

    def work(i):
        model = Model("small", threads=1)
        found[i] = samples_train(model, 4)
        model.free()

    workers = [threading.Thread(target=work, args=[i]) for i in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert all(losses == expected for losses in found)
    alone.free()


def weights():
    """A weight that is written is read, and changes predictions."""
    model, x = Model("small"), data("test")[0]
    assert model.weights()["conv_1.weight"] == (8, 3, 3, 3)
    before = model.predict(x, 3)
    bias = model.read("linear_1.bias")
    model.write("linear_1.bias", bias + np.float32(1))
    assert (model.read("linear_1.bias") == bias + np.float32(1)).all()
    moved = model.predict(x, 3) - before
    assert (abs(moved - 0.125) < 1e-5).all(), moved
    model.free()


def errors():
    x, y = data("train")
    model = Model("small")
    refused("CUDA", lambda: Model("small", "cuda:99"))
    refused("nowhere", lambda: Model("small", "nowhere"))
    refused("missing", lambda: model.load("missing"))
    with open("broken", "wb") as file:
        file.write(b"garbage")
    refused("broken", lambda: model.load("broken"))
    refused("missing", lambda: model.save("missing/file"))
    refused("33", lambda: model.train(x[:33], y[:33]))
    refused("not 0", lambda: model.train(x[:0], y[:0]))
    before = model.predict(x, 3)
    for wrong in 3, -1:
        labels = y[:32].copy()
        labels[30] = wrong
        refused(f"sample 30 has label {wrong}, but Small has 3 classes, 0 to 2",
                lambda: model.train(x[:32], labels))
    assert (model.predict(x, 3) == before).all()
    refused("no weight", lambda: model.write("none", x[0]))
    refused("8 numbers, not 3", lambda: model.call(
        "read", b"batch_norm_1.scale", y.ctypes, ctypes.c_size_t(3)))
    refused("0 samples", lambda: model.begin(0, 1))
    refused("-1 epochs", lambda: model.begin(128, 1, epochs=-1))
    assert model.train(x[:32], y[:32]) > 0
    model.function("free")(None)
    model.free()
    model = Model("predicts")
    for call in (lambda: model.train(x[:32], y[:32]),
                 lambda: model.begin(128, 1), lambda: model.save("own")):
        refused("--inference", call)
    model.free()


def finite():
    random = np.random.default_rng(1)
    x = random.normal(size=(8, 3)).astype(np.float32)
    model, y = Model("line"), x[:, :1].copy()
    before = model.predict(x, 1)
    for value in np.nan, np.inf:
        was, x[5, 0] = x[5, 0], value
        refused(f"samples: sample 5 has {value}, which is not finite",
                lambda: model.train(x, y))
        x[5, 0] = was
    assert (model.predict(x, 1) == before).all()
    masked = y.copy()
    masked[5] = np.nan
    wanted = np.delete((before - y) ** 2, 5).sum() / 8
    assert abs(model.train(x, masked) - wanted) < 1e-5 * wanted
    assert np.isfinite(model.predict(x, 1)).all()

    def diverge():
        for _ in range(20):
            model.train(1e6 * x, y)
    refused("the loss is infinite after step", diverge)
    model.free()


class Mallinfo(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in (
        "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks",
        "uordblks", "fordblks", "keepcost")]


def bytes_used():
    """Of the address space, and of malloc."""
    mallinfo = ctypes.CDLL(None).mallinfo2
    mallinfo.restype = Mallinfo
    gc.collect()
    with open("/proc/self/statm", encoding="ascii") as file:
        mapped = int(file.read().split()[0]) * os.sysconf("SC_PAGESIZE")
    return mapped, mallinfo().uordblks + mallinfo().hblkhd


def memory():
    """With too little memory, create fails and the program goes on; it gets
    back all memory of an instance that failed, wherever that was."""
    kept, messages = [], set()
    try:
        while len(kept) < 10000:
            kept.append(Model("small", threads=1))
    except RuntimeError as error:
        messages.add(str(error))
    assert 0 < len(kept) < 10000, "there was no limit"
    for room in range(0, 24 << 20, 1 << 20):
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        resource.setrlimit(resource.RLIMIT_AS, (bytes_used()[0] + room, hard))
        used = []
        for _ in range(6):
            try:
                Model("small", threads=1).free()
            except RuntimeError as error:
                messages.add(str(error))
            used.append(bytes_used())
        mapped, own = (b - a for a, b in zip(used[2], used[-1]))
        # Of three instances: arenas of 2 MiB, plans of 18,000 bytes.
        assert room == 0 or (mapped < 2 << 20 and own < 18000), (
            room, mapped, own, messages)
    assert len(messages) > 1, messages
    assert all("memory" in m or "allocate" in m for m in messages), messages
    for model in kept:
        model.free()
    Model("small", threads=1).free()


def starts(checkpoint):
    model = Model("air")
    random = np.random.default_rng(1)
    x = random.integers(0, 256, (16, 32, 32, 3), np.uint8)
    y = random.integers(0, 10, 16, np.int32)
    refused("--init-only", lambda: model.train(x, y))
    model.load(checkpoint)
    first = model.train(x, y)
    assert 0 < first < 10, first
    model.begin(16, 1)
    assert 0 < model.train(x, y) < 10
    model.free()


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
