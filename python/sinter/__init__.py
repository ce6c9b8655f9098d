"""Models that sinter compiles, on numpy arrays.

    import sinter
    model = sinter.build("mlp.net")
    model.fit(images, labels, epochs=3)
    output = model.predict(images)

A thin layer over the library of `sinter build --library`: arrays of the model's
types go to it as they are, without a copy.  docs/python.md describes it.
"""
import atexit
import ctypes
import json
import os
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import MutableMapping
from pathlib import Path

import numpy as np

__all__ = ["Error", "Model", "Weights", "build", "executable", "load"]

_types = {"U8": np.uint8, "I32": np.int32, "F32": np.float32}
_pointer, _count = ctypes.c_void_p, ctypes.c_int64
_opening = threading.Lock()
_functions = {
    "about": (ctypes.c_char_p, []),
    "error": (ctypes.c_char_p, []),
    "create": (_pointer, [ctypes.c_char_p, ctypes.c_int]),
    "free": (None, [_pointer]),
    "load": (ctypes.c_int, [_pointer, ctypes.c_char_p]),
    "save": (ctypes.c_int, [_pointer, ctypes.c_char_p]),
    "predict": (ctypes.c_int, [_pointer, _pointer, _count, _pointer]),
    "begin": (ctypes.c_int, [_pointer, _count, ctypes.c_double, _count]),
    "train": (ctypes.c_int, [_pointer, _pointer, _pointer, _count, _pointer]),
    "step": (_count, [_pointer]),
    "steps": (_count, [_pointer]),
    "weight": (ctypes.c_char_p, [_pointer, ctypes.c_int,
                                 ctypes.POINTER(ctypes.c_int),
                                 ctypes.POINTER(ctypes.POINTER(_count))]),
    "read": (ctypes.c_int, [_pointer, ctypes.c_char_p, _pointer,
                            ctypes.c_size_t]),
    "write": (ctypes.c_int, [_pointer, ctypes.c_char_p, _pointer,
                             ctypes.c_size_t]),
}
_of_texts = {
    "tokenizer": (ctypes.c_int, [_pointer, ctypes.c_char_p]),
    "encode": (_count, [_pointer, ctypes.c_char_p, ctypes.c_size_t, _pointer,
                        _count]),
    "decode": (ctypes.POINTER(ctypes.c_char),
               [_pointer, ctypes.c_int32, ctypes.POINTER(ctypes.c_size_t)]),
    "end": (ctypes.c_int32, [_pointer]),
    "prompt": (ctypes.c_int, [_pointer, _pointer, _count]),
    "append": (ctypes.c_int, [_pointer, ctypes.c_int32]),
    "logits": (ctypes.c_int, [_pointer, _pointer]),
    "next": (ctypes.c_int, [_pointer, ctypes.c_double, _count, ctypes.c_double,
                            _count, _pointer]),
}


class Error(RuntimeError):
    """An error of the compiler or of a model; status: its exit status."""

    def __init__(self, message, status):
        super().__init__(message)
        self.status = status


def executable():
    """The path of sinter: $SINTER, the one of this package, or of PATH."""
    own = Path(__file__).parent / "root" / "bin" / "sinter"
    found = os.environ.get("SINTER") or (own if own.exists() else
                                         shutil.which("sinter"))
    if not found:
        raise Error("sinter is not in PATH; SINTER=PATH names it", 2)
    return str(found)


def build(path, *, set={}, out=None, inference=False, march="native",
          device="auto", threads=0):
    """Compiles a model file and returns a Model with initial weights.

    set: keys of the recipe and parameters of the model, as {"batch": 64}.
    out: the library's path without .so; None: it is removed at exit.
    """
    if out is None:
        folder = tempfile.mkdtemp(prefix="sinter-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        stem = re.sub(r"\W", "_", Path(path).stem)
        out = os.path.join(folder, "lib" + stem)
    words = [executable(), "build", str(path), "--library", "-o", str(out),
             f"--march={march}"]
    words += ["--inference"] if inference else []
    for key, value in set.items():
        words += ["--set", f"{key}={value}"]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        raise Error(done.stderr.strip() or "sinter build failed",
                    done.returncode)
    return load(f"{out}.so", device=device, threads=threads)


def load(path, *, device="auto", threads=0):
    """A Model of a library that was built before."""
    return Model(path, device=device, threads=threads)


class Model:
    """An instance of a compiled model, with its memory on one device.

    Calls on one instance must not overlap; instances may run in different
    threads.
    """

    def __init__(self, path, *, device="auto", threads=0):
        self._self = None
        self._library = _opened(os.path.abspath(path))
        stem = re.sub(r"^lib", "", Path(path).stem)
        self._name = re.sub(r"\W", "_", stem, flags=re.ASCII)
        self._bind(_functions)
        about = json.loads(self._about())
        self.generates = about["generates"]
        if self.generates:
            self._bind(_of_texts)
        self.name, self.kind = about["model"], about["kind"]
        self.batch, self.update = about["batch"], about["update"]
        self._whole = about["whole"]
        labels = about.get("labels") or {"labels": about.get("label") or {}}
        self._classes = {name: (of["classes"], of.get("ignored"))
                         for name, of in labels.items() if "classes" in of}
        self.sample, self.label, self.output = (
            self._array(about.get(part))
            for part in ("sample", "label", "output"))
        self.inputs, self.labels, self.outputs = (
            {name: self._array(of) for name, of in about.get(part, {}).items()}
            for part in ("inputs", "labels", "outputs"))
        if self.inputs:
            self._bind_several()
        self._self = self._create(device.encode(), threads)
        if not self._self:
            raise Error(self._error().decode(), 1)

    def _bind(self, functions):
        for name, (result, arguments) in functions.items():
            function = getattr(self._library, f"{self._name}_{name}")
            function.restype, function.argtypes = result, arguments
            setattr(self, "_" + name, function)

    def _bind_several(self):
        """predict and train have an argument for each array."""
        given = [_pointer] * (1 + len(self.inputs))
        self._predict.argtypes = [*given, _count,
                                  *[_pointer] * len(self.outputs)]
        self._train.argtypes = [*given, *[_pointer] * len(self.labels), _count,
                                _pointer]

    @staticmethod
    def _array(of):
        """The dtype and shape of one sample's numbers."""
        return of and (np.dtype(_types[of["type"]]), tuple(of["shape"]))

    def _check(self, status):
        if status != 0:
            raise Error(self._error().decode(), status)

    def _instance(self):
        if not self._self:
            raise ValueError("the model is closed")
        return self._self

    def _checked(self, array, of, what, classes=None):
        """The array itself if it has the type and shape, and each number is one
        of the classes: their number, and a label outside of them or None."""
        dtype, shape = of
        array = _listed(array, dtype)
        if array.dtype != dtype and (dtype != np.int32 or
                                     array.dtype.kind not in "iu"):
            advice = ("" if dtype == np.uint8 else
                      f": .astype(numpy.{dtype}) converts them")
            raise TypeError(f"{what} are {dtype}, not {array.dtype}{advice}")
        if array.shape[1:] != shape or array.ndim == 0:
            advice = ""
            if classes and array.shape[1:] == shape + (classes[0],):
                advice = (": .argmax(-1) gives the classes of one-hot labels, "
                          "and npy(..., targets=true) of the model file "
                          "takes probabilities")
            raise ValueError(f"{what} have shape {('N',) + shape}, not "
                             f"{array.shape}{advice}")
        if classes is not None:
            count, ignored = classes
            wrong = (array < 0) | (array >= count)
            if ignored is not None:
                wrong &= array != ignored
            if wrong.any():
                at = tuple(np.argwhere(wrong)[0])
                raise ValueError(f"{what}: sample {at[0]} has {array[at]}, but "
                                 f"{self.name} has {count} classes, 0 to "
                                 f"{count - 1}")
        return array

    def _given(self, array, of, what, classes=None):
        """The array itself if it is C-contiguous, else a copy."""
        array = self._checked(array, of, what, classes)
        return np.ascontiguousarray(array, of[0])

    def _all(self, arrays, of, what, count=None):
        """The arrays of a dict as `_checked` returns them, in the order of
        `of`, and their length."""
        if not hasattr(arrays, "keys") or set(arrays) != set(of):
            raise TypeError(f"{what} are a dict with {', '.join(of)}")
        classes = self._classes if of is self.labels else {}
        arrays = [self._checked(arrays[name], of[name], name, classes.get(name))
                  for name in of]
        lengths = {len(array) for array in arrays}
        lengths |= set() if count is None else {count}
        if len(lengths) > 1:
            raise ValueError(f"arrays have {sorted(lengths)} samples")
        return arrays, lengths.pop() if lengths else 0

    # ---- predict and train ----

    def _predict_all(self, samples):
        samples, count = self._all(samples, self.inputs, "samples")
        samples = _contiguous(samples, self.inputs.values())
        out = {name: np.empty((count,) + shape, np.float32)
               for name, (_, shape) in self.outputs.items()}
        self._check(self._predict(self._instance(),
                                  *[array.ctypes.data for array in samples],
                                  count,
                                  *[array.ctypes.data for array in
                                    out.values()]))
        return out

    def predict(self, samples, out=None):
        """The output for samples, f32 of (N,) + output shape.

        Of a model with several inputs or outputs: a dict of outputs for a dict
        of inputs, without `out`.
        """
        if self.inputs:
            if out is not None:
                raise ValueError("out is for a model with one output")
            return self._predict_all(samples)
        samples = self._given(samples, self.sample, "samples")
        shape = (len(samples),) + self.output[1]
        if out is None:
            out = np.empty(shape, np.float32)
        elif (out.dtype != np.float32 or out.shape != shape or
              not out.flags.c_contiguous):
            raise ValueError(f"out must be a C array of f32 of {shape}")
        self._check(self._predict(self._instance(), samples.ctypes.data,
                                  len(samples), out.ctypes.data))
        return out

    def begin(self, samples, seed=-1, epochs=None):
        """Begins a run over a data set of that many samples: from the model's
        weights, with new states of the optimizer.

        epochs: the length of the run; None: the recipe's.  seed: also of the
        initial weights, if none were loaded, assigned or trained.
        """
        if epochs is not None and not 0 < epochs < np.inf:
            raise ValueError(f"epochs is a number above 0, not {epochs}")
        self._check(self._begin(self._instance(), samples, epochs or 0, seed))

    def _train_arrays(self, samples, labels):
        """Arrays of samples and labels as `_checked` returns them, in the order
        of the library's arguments, and their length."""
        if self.inputs:
            samples, count = self._all(samples, self.inputs, "samples")
            labels, _ = self._all(labels or {}, self.labels, "labels", count)
            return samples + labels, count
        samples = self._checked(samples, self.sample, "samples")
        if self.label is None:
            return [samples, None], len(samples)
        labels = self._checked(labels, self.label, "labels",
                               self._classes.get("labels"))
        if len(labels) != len(samples):
            raise ValueError(f"{len(samples)} samples have {len(labels)} "
                             "labels")
        return [samples, labels], len(samples)

    def _update(self, arrays, count):
        """One update on arrays that were checked; returns their mean loss."""
        arrays = _contiguous(arrays, [*self.inputs.values(),
                                      *self.labels.values()] or
                             [self.sample, self.label])
        loss = ctypes.c_float()
        self._check(self._train(
            self._instance(),
            *[None if array is None else array.ctypes.data for array in arrays],
            count, ctypes.addressof(loss)))
        return loss.value

    def train_step(self, samples, labels=None):
        """One update on at most `update` samples; returns their mean loss.

        Of a model with several inputs or outputs: samples and labels are dicts.
        """
        return self._update(*self._train_arrays(samples, labels))

    def fit(self, samples, labels, *, epochs=None, validation=None, seed=-1,
            report=None):
        """Trains the model's weights for `epochs`, or the recipe's length, on
        arrays that it shuffles; returns a list with a dict for each epoch.

        validation: a pair of arrays, on which accuracy is measured after each
        epoch; report: a function that is given each dict.
        """
        arrays, count = self._train_arrays(samples, labels)
        _finite(self.inputs or ["samples"], arrays)
        self.begin(count, seed, epochs)
        history, order = [], np.random.default_rng(max(seed, 0))
        last = count - count % self.update
        while self.step < self.steps:
            mixed, losses = order.permutation(count), []
            mixed = mixed[:last] if self._whole else mixed
            for at in range(0, len(mixed), self.update):
                if self.step == self.steps:
                    break
                chosen = mixed[at:at + self.update]
                losses.append(self._update(
                    [array if array is None else array[chosen]
                     for array in arrays], len(chosen)))
            if not losses:
                raise ValueError(f"{count} samples do not make one "
                                 f"update of {self.update}")
            row = {"epoch": len(history) + 1, "loss": float(np.mean(losses))}
            if validation is not None:
                row["accuracy"] = self.accuracy(*validation)
            history.append(row)
            if report is not None:
                report(row)
        return history

    def accuracy(self, samples, labels):
        """The share of samples whose highest score is the label's."""
        if self.kind != "classes" or self.inputs:
            raise ValueError("accuracy needs a model with one input and "
                             "scores of classes")
        return float((self.predict(samples).argmax(-1) ==
                      np.asarray(labels)).mean())

    @property
    def step(self):
        """Updates done."""
        return self._step(self._instance())

    @property
    def steps(self):
        """Updates of the run."""
        return self._steps(self._instance())

    # ---- texts ----

    def _texts(self):
        if not self.generates:
            raise Error(f"{self.name} cannot generate texts", 2)
        return self._instance()

    def _encoded(self, data, tokens=None):
        """How many tokens bytes have, which an array takes."""
        count = self._encode(self._texts(), data, len(data),
                             *((None, 0) if tokens is None else
                               (tokens.ctypes.data, tokens.size)))
        if count < 0:
            raise Error(self._error().decode(), 3)
        return count

    def tokenizer(self, path=None):
        """Reads a tokenizer.json; None: tokens are bytes."""
        of = self._texts()
        self._check(self._tokenizer(of, path and os.fsencode(path)))

    def encode(self, text):
        """The tokens of a text, i32."""
        data = text.encode()
        tokens = np.empty(self._encoded(data), np.int32)
        self._encoded(data, tokens)
        return tokens

    def decode(self, tokens):
        """The text of tokens."""
        of, data, length = self._texts(), b"", ctypes.c_size_t()
        self._encoded(b"")  # raises without a tokenizer
        for token in tokens:
            start = self._decode(of, token, length)
            data += start[:length.value] if start else b""
        return data.decode(errors="replace")

    def prompt(self, text):
        """Begins a text: a str, or tokens."""
        of = self._texts()
        tokens = self.encode(text) if isinstance(text, str) else text
        tokens = np.ascontiguousarray(tokens, np.int32)
        self._check(self._prompt(of, tokens.ctypes.data, tokens.size))

    def logits(self):
        """The logits of the next token, f32."""
        of, logits = self._texts(), np.empty(self.output[1][-1], np.float32)
        self._check(self._logits(of, logits.ctypes.data))
        return logits

    def append(self, token):
        """Adds a token to the text."""
        of = self._texts()
        self._check(self._append(of, token))

    def next(self, *, temperature=1.0, top_k=0, top_p=0.0, seed=-1):
        """Draws the next token, adds it to the text and returns it."""
        of, token = self._texts(), ctypes.c_int32()
        self._check(self._next(of, temperature, top_k, top_p, seed,
                               ctypes.addressof(token)))
        return token.value

    def generate(self, prompt, count=256, **sampling):
        """Continues a text by `count` tokens, or up to the token that ends
        texts: a str by a str, tokens by an array.  sampling: as in next."""
        self.prompt(prompt)
        tokens, end = [], self._end(self._texts())
        while len(tokens) < count and (token := self.next(**sampling)) != end:
            tokens.append(token)
        return (self.decode(tokens) if isinstance(prompt, str) else
                np.array(tokens, np.int32))

    # ---- weights ----

    @property
    def weights(self):
        """A dict of the weights: reading copies one, assigning replaces it."""
        return Weights(self)

    def state_dict(self):
        """All weights as arrays."""
        return dict(self.weights)

    def load_state_dict(self, weights):
        """Replaces the weights that a dict names."""
        for name, array in weights.items():
            self.weights[name] = array

    def save(self, path):
        """Writes a checkpoint, which a trainer reads too."""
        self._check(self._save(self._instance(), os.fsencode(path)))

    def load(self, path):
        """Reads a checkpoint, the newest one in the folder of a run, or the
        weights of a safetensors file."""
        self._check(self._load(self._instance(), os.fsencode(path)))

    # ---- lifetime ----

    def close(self):
        """Releases the model's memory."""
        if self._self:
            self._free(self._self)
        self._self = None

    def __enter__(self):
        return self

    def __exit__(self, *ignored):
        self.close()

    def __del__(self):
        self.close()


def _opened(path):
    """A library whose threads sleep after a short wait, as those of a trainer:
    libgomp reads its variables when it is loaded."""
    with _opening:
        own = not {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"} & os.environ.keys()
        if own:
            os.environ["GOMP_SPINCOUNT"] = "1000"
        try:
            return ctypes.CDLL(path)
        finally:
            if own:
                os.environ.pop("GOMP_SPINCOUNT", None)


def _listed(given, dtype):
    """An array: that of a list is of `dtype` if all its numbers are."""
    array, real = np.asarray(given), dtype.kind == "f"
    if (isinstance(given, (list, tuple)) and
        array.dtype.kind in ("biuf" if real else "biu")):
        own = array.astype(dtype)
        return own if real or np.array_equal(own, array) else array
    return array


def _contiguous(arrays, of):
    """C-contiguous arrays of the types of `of`, copied if they are not."""
    return [array if array is None else np.ascontiguousarray(array, dtype)
            for array, (dtype, _) in zip(arrays, of)]


def _finite(names, arrays):
    """Raises for the first sample with a number that is not finite."""
    for name, array in zip(names, arrays):
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            at = tuple(np.argwhere(~np.isfinite(array))[0])
            raise ValueError(f"{name}: sample {at[0]} has {array[at]}, which "
                             "is not finite")


class Weights(MutableMapping):
    """The weights of a model by their names."""

    def __init__(self, model):
        self._model = model
        self._shape = {}
        rank, dim = ctypes.c_int(), ctypes.POINTER(_count)()
        while name := model._weight(model._instance(), len(self._shape), rank,
                                    dim):
            self._shape[name.decode()] = tuple(dim[:rank.value])

    def __getitem__(self, name):
        array = np.empty(self._shape[name], np.float32)
        self._model._check(self._model._read(
            self._model._instance(), name.encode(), array.ctypes.data,
            array.size))
        return array

    def __setitem__(self, name, array):
        array = np.ascontiguousarray(array, np.float32)
        if array.shape != self._shape[name]:
            raise ValueError(f"{name} has shape {self._shape[name]}, not "
                             f"{array.shape}")
        self._model._check(self._model._write(
            self._model._instance(), name.encode(), array.ctypes.data,
            array.size))

    def __delitem__(self, name):
        raise TypeError("a model keeps its weights")

    def __iter__(self):
        return iter(self._shape)

    def __len__(self):
        return len(self._shape)
