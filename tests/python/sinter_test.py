"""The Python module beside a trainer: sinter_test.py MODELS.

It runs in a folder with two trainers: mlp, of models/mlp.net with batch=100,
and writer, of models/gpt_nano.net in a smaller size.
"""
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np

import sinter

models = Path(sys.argv[1])
draw = np.random.default_rng(0)
images = draw.integers(0, 256, (250, 28, 28, 1), np.uint8)
labels = draw.integers(0, 10, 250)


def raises(kind, text, call, *words, **named):
    try:
        call(*words, **named)
    except kind as error:
        assert text in str(error), error
        return error
    raise AssertionError(f"no {kind.__name__}: {text}")


# A prediction has the trainer's bits, before and after training.
model = sinter.build(models / "mlp.net", set={"batch": 100}, out="libkept",
                     threads=1)
assert (model.name, model.kind) == ("Mlp", "classes"), model.name
assert model.sample == (np.dtype(np.uint8), (28, 28, 1)), model.sample
assert model.label == (np.dtype(np.int32), ()), model.label
assert model.output == (np.dtype(np.float32), (10,)), model.output
first = model.predict(images)
model.begin(len(images))
losses = [model.train_step(images[i:i + 100], labels[i:i + 100])
          for i in (0, 100, 0, 100)]
assert all(np.isfinite(losses)) and model.step == 4, losses
later = model.predict(images)
assert not np.array_equal(first, later)
model.save("trained.safetensors")
np.save("images.npy", images)
subprocess.run(["./mlp", "--predict", "images.npy", "--threads=1", "--quiet",
                "--weights=trained.safetensors", "-o", "trainer.npy"],
               check=True)
assert np.array_equal(np.load("trainer.npy"), later), "other than the trainer's"

# Threads that wait sleep soon; the variable is there while libgomp is loaded.
shown = subprocess.run(
    [sys.executable, "-c", "import os, sinter; sinter.load('libkept.so'); "
     "assert 'GOMP_SPINCOUNT' not in os.environ"],
    env={name: value for name, value in os.environ.items()
         if name != "OMP_WAIT_POLICY"} | {"OMP_DISPLAY_ENV": "verbose"},
    check=True, capture_output=True, text=True).stderr
assert "GOMP_SPINCOUNT = '1000'" in shown, shown


def loads(path):
    time.sleep(0.05)
    return os.environ.get("GOMP_SPINCOUNT")


# So it is for each of several threads.
seen, load = [], sinter.ctypes.CDLL
kept = {name: os.environ.pop(name) for name in
        {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"} & os.environ.keys()}
sinter.ctypes.CDLL = loads
threads = [threading.Thread(target=lambda: seen.append(sinter._opened("")))
           for _ in range(3)]
for thread in threads:
    thread.start()
    time.sleep(0.02)
for thread in threads:
    thread.join()
sinter.ctypes.CDLL = load
os.environ.update(kept)
assert seen == ["1000"] * 3, seen

# Nothing is copied that need not be.
assert model._given(images, model.sample, "samples") is images
room = np.empty((250, 10), np.float32)
assert model.predict(images, out=room) is room and np.array_equal(room, later)
turned = np.ascontiguousarray(images.transpose(0, 2, 1, 3)).transpose(0, 2, 1, 3)
assert np.array_equal(model.predict(turned), later), "of another order"
assert model.predict(images[:0]).shape == (0, 10)

# Weights: a dict of arrays, which another instance takes.
other = sinter.load("libkept.so", threads=1)
assert np.array_equal(other.predict(images), first)
other.load_state_dict(model.state_dict())
assert np.array_equal(other.predict(images), later)
name = next(iter(model.weights))
other.weights[name] = 0 * other.weights[name]
assert not other.weights[name].any() and model.weights[name].any()
other.load("trained.safetensors")
assert other.step == 4 and np.array_equal(other.weights[name],
                                          model.weights[name])

# Instances in threads.
found = {}
threads = [threading.Thread(target=lambda m=m, i=i: found.update(
    {i: m.predict(images)})) for i, m in enumerate((model, other))]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert all(np.array_equal(found[i], later) for i in (0, 1))

# fit is the steps that it says.
rows = []
history = model.fit(images, labels, epochs=2, seed=3, report=rows.append,
                    validation=(images, labels))
assert rows == history and [row["epoch"] for row in rows] == [1, 2]
other.begin(len(images), 3, epochs=2)
assert other.steps == 2 * 3 and other.step == 0
order = np.random.default_rng(3)
for _ in range(2):
    mixed = order.permutation(250)
    for at in (0, 100) if model._whole else (0, 100, 200):
        chosen = mixed[at:at + 100]
        other.train_step(images[chosen], labels[chosen])
assert np.array_equal(model.predict(images), other.predict(images))
assert history[-1]["accuracy"] == model.accuracy(images, labels)

# It continues from the weights that a model has: loaded or trained ones.
other.load("trained.safetensors")
other.begin(len(images))
assert other.step == 0 and np.array_equal(other.predict(images), later)
assert len(other.fit(images, labels, epochs=11)) == 11  # the recipe has 10
assert other.step == other.steps == 33
raises(sinter.Error, "its run of 33 steps is over: begin starts another",
       other.train_step, images[:100], labels[:100])
before = other.predict(images)
other.begin(len(images), seed=9)
assert np.array_equal(other.predict(images), before)
for epochs in -1, 0, float("nan"):
    raises(ValueError, "epochs is a number above 0", other.fit, images, labels,
           epochs=epochs)
assert np.array_equal(other.predict(images), before)
assert len(other.fit(list(images), list(labels), epochs=1)) == 1

# Inputs that are not finite are refused; a loss that is not is an error, and one
# that masks targets takes NaN.
Path("line.net").write_text("""model Line(x: f32[N, 3]) -> f32[N, 1] {
  x |> linear(1)
}
train Line {
  data      = npy("data", targets=true)
  batch     = 4
  epochs    = 50
  loss      = mean(mse(where(label == label, output, 0),
                       where(label == label, label, 0)))
  optimizer = sgd(lr=1)
}
""")
line = sinter.build("line.net", threads=1)
x = draw.normal(size=(8, 3)).astype(np.float32)
y = x[:, :1].copy()
before = line.predict(x)
for value in np.nan, np.inf:
    was, x[5, 0] = x[5, 0], value
    says = f"samples: sample 5 has {value}, which is not finite"
    raises(ValueError, says, line.fit, x, y)
    assert raises(sinter.Error, says.replace("5", "1"), line.train_step, x[4:],
                  y[4:]).status == 3
    x[5, 0] = was
assert np.array_equal(line.predict(x), before)
masked = y.copy()
masked[5] = np.nan
assert all(np.isfinite(row["loss"]) for row in line.fit(x, masked, epochs=2))
assert not np.array_equal(line.predict(x), before)
raises(TypeError, "samples are float32, not float64: .astype(numpy.float32)",
       line.fit, x.astype(float), y)
assert np.array_equal(line.predict(x.tolist()), line.predict(x))
line.fit(x.tolist(), [[round(10 * float(of))] for of in y[:, 0]], epochs=1)
assert raises(sinter.Error, "the loss is", line.fit, 1e6 * x, y).status == 6

# Texts, of bytes: those of the trainer, and their tokens.
writer = sinter.build(models / "gpt_nano.net", out="libwriter", threads=1, set={
    "vocabulary": 256, "batch": 2, "layers": "[1]", "width": 24})
raises(sinter.Error, "no tokenizer", writer.generate, "ab")
writer.tokenizer()
writer.save("writer.safetensors")
said = subprocess.run(["./writer", "--generate=A b", "--tokens=200", "--seed=5",
                       "--weights=writer.safetensors", "--top-k=90",
                       "--threads=1", "--quiet"], check=True,
                      capture_output=True).stdout
found = writer.generate(list(b"A b"), 200, top_k=90, seed=5)
assert found.dtype == np.int32 and b"A b" + bytes(list(found)) + b"\n" == said
assert writer.generate("A b", 200, top_k=90, seed=5) == writer.decode(found)
Path("damaged").mkdir()
Path("damaged/tokenizer.json").write_text("{")
writer.save("damaged/weights")
beside = sinter.load("libwriter.so", threads=1)
for each in beside, writer:
    each.load("damaged/weights")
raises(sinter.Error, "damaged/tokenizer.json", beside.decode, [65])
assert writer.decode(writer.encode("\u00e4 b")) == "\u00e4 b"
writer.prompt("A b")
likely = writer.logits().argmax()
assert writer.next(temperature=0) == likely
writer.append(likely)
raises(sinter.Error, "256 is no token", writer.append, 256)
raises(sinter.Error, "cannot generate texts", model.generate, "ab")
writer.close()

# Mistakes are exceptions, and the model can go on.
raises(TypeError, "samples are uint8, not float64", model.predict, images / 255)
raises(TypeError, "samples are uint8, not float64", model.predict,
       (images[:1] / 255).tolist())
raises(TypeError, "samples are uint8, not int64", model.predict,
       (images[:1].astype(int) + 256).tolist())
assert np.array_equal(model.predict(images.tolist()), model.predict(images))
raises(ValueError, "samples have shape ('N', 28, 28, 1), not (250, 28, 28)",
       model.predict, images[..., 0])
raises(ValueError, "100 samples have 3 labels", model.train_step, images[:100],
       labels[:3])
raises(TypeError, "labels are int32, not float64: .astype(numpy.int32)",
       model.fit, images, labels.astype(float))
raises(ValueError, ".argmax(-1) gives the classes of one-hot labels", model.fit,
       images, np.eye(10, dtype=np.int32)[labels])
raises(ValueError, "250 samples have 50 labels", model.fit, images, labels[:50])
before = model.predict(images)
for wrong in 10, -1, 2**32:
    other_labels = labels.copy()
    other_labels[203] = wrong
    raises(ValueError, f"labels: sample 203 has {wrong}, but Mlp has 10 classes, "
           "0 to 9", model.fit, images, other_labels)
    raises(ValueError, f"labels: sample 3 has {wrong}", model.train_step,
           images[200:], other_labels[200:])
assert np.array_equal(model.predict(images), before)
raises(ValueError, "out must be", model.predict, images, out=room[:3])
raises(ValueError, "has shape", model.weights.__setitem__, name, np.zeros(3))
raises(KeyError, "nothing", model.weights.__getitem__, "nothing")
model.begin(len(images))
assert raises(sinter.Error, "an update takes", model.train_step,
              images, labels).status == 3
raises(sinter.Error, "nowhere", model.load, "nowhere.safetensors")
assert raises(sinter.Error, "E0", sinter.build, __file__).status == 1
raises(sinter.Error, "device", sinter.load, "libkept.so", device="nonsense")
raises(OSError, "libnone.so", sinter.load, "libnone.so")
assert np.isfinite(model.predict(images)).all()
with model:
    pass
raises(ValueError, "closed", model.predict, images)

# To predict only.
small = sinter.build(models / "mlp.net", set={"batch": 1}, inference=True)
small.load("trained.safetensors")
assert np.allclose(small.predict(images), later, atol=1e-4)
raises(sinter.Error, "cannot train", small.train_step, images[:1], labels[:1])
print("good")
