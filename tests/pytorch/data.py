"""What a sinter trainer is fed, without the trainer.

The synthetic data set and the order of its samples are functions of numbers
(runtime/data/synthetic.c, runtime/data/shuffle.c); here they are once more, so that PyTorch
sees the same batches.
"""

import numpy as np

import augment
import scenes

MASK = (1 << 64) - 1
KEY = 0x73796E7468657469
TEXTURES, WAVES, TILE = 2, 3, 32


def mix(x):
    x = (x + 0x9E3779B97F4A7C15) & MASK
    x = ((x ^ x >> 30) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ x >> 27) * 0x94D049BB133111EB) & MASK
    return x ^ x >> 31


def random(key, counter):
    return mix(mix(key) ^ counter)


def uniform(key, counter):
    return (random(key, counter) >> 11) * 2.0**-53


def below(key, counter, n):
    return int(uniform(key, counter) * n)


def permute(key, x, bits):
    low = bits // 2
    high = bits - low
    a, b = x >> low, x & ((1 << low) - 1)
    for i in range(0, 6, 2):
        a ^= random((key + i) & MASK, b) & ((1 << high) - 1)
        b ^= random((key + i + 1) & MASK, a) & ((1 << low) - 1)
    return a << low | b


def order(seed, epoch, position, count):
    bits = (count - 1).bit_length()
    key = random(random(seed, 0x6F72646572), epoch)
    x = permute(key, position, bits)
    while x >= count:
        x = permute(key, x, bits)
    return x


def wave(shape, key):
    h, w = shape
    across, down = below(key, 0, 5), below(key, 1, 9) - 4
    if across == 0 and down == 0:
        across = 2
    phase, height = uniform(key, 2), 0.5 + uniform(key, 3)
    x, y = np.arange(w)[None, :], np.arange(h)[:, None]
    turns = (across * x) / w + (down * y) / h + phase
    return (height * np.cos(2 * np.pi * turns)).astype(np.float32)


class Samples:
    """A split, of which each sample is drawn when it is asked for."""

    def __init__(self, classes, count, test=False):
        self.classes, self.count = classes, count
        self.key = random(KEY, MASK - test)

    def batch(self, step, size, seed=0):
        """Samples and labels of a step; the last of an epoch may be short."""
        epoch, batch = divmod(step, -(-self.count // size))
        places = range(batch * size, min((batch + 1) * size, self.count))
        numbers = [order(seed, epoch, place, self.count) for place in places]
        return self.augmented(epoch, numbers, *self.chosen(numbers))

    def augmented(self, epoch, numbers, samples, labels):
        return samples, labels

    def whole(self):
        return self.chosen(range(self.count))

    def chosen(self, numbers):
        samples, labels = zip(*map(self.sample, numbers))
        return np.stack(samples), np.array(labels)


class Synthetic(Samples):
    """Images of a class."""

    def __init__(self, shape, classes, count, test=False):
        super().__init__(classes, count, test)
        self.h, self.w, self.c = shape
        self.tile = (min(self.h, TILE), min(self.w, TILE))
        self.textures = {}

    def texture(self, label, number):
        index = label * TEXTURES + number
        if index not in self.textures:
            key = random(KEY, index)
            texture = np.zeros(self.tile + (self.c,), np.float32)
            for c in range(self.c):
                for i in range(WAVES):
                    texture[:, :, c] += wave(
                        self.tile, random(key, c * WAVES + i)
                    )
            self.textures[index] = texture
        return self.textures[index]

    def layer(self, label, key, least, most):
        texture = self.texture(label, below(key, 0, TEXTURES))
        down, right = below(key, 1, self.tile[0]), below(key, 2, self.tile[1])
        height = np.float32(least + (most - least) * uniform(key, 3))
        rows = (np.arange(self.h) + down) % self.tile[0]
        columns = (np.arange(self.w) + right) % self.tile[1]
        return height * texture[rows][:, columns]

    def box(self, key):
        h = 1 + below(key, 0, self.h // 2 + 1)
        w = 1 + below(key, 1, self.w // 2 + 1)
        top, left = below(key, 2, self.h - h + 1), below(key, 3, self.w - w + 1)
        return slice(top, top + h), slice(left, left + w)

    def noise(self, key):
        count = self.h * self.w * self.c
        sums = np.empty(count, np.float32)
        for at in range(0, count, 4):
            bits = random(key, at)
            for k in range(min(4, count - at)):
                part = bits >> 16 * k
                sums[at + k] = (part & 255) + (part >> 8 & 255)
        noise = (sums - np.float32(255)) * (np.float32(1) / np.float32(104.5))
        return noise.reshape(self.h, self.w, self.c)

    def sample(self, number):
        """The image, h x w x c bytes, and the label of a sample."""
        key = random(self.key, number)
        label = below(key, 8, self.classes)
        other = (label + 1 + below(key, 0, self.classes - 1)) % self.classes
        layers = self.layer(label, random(key, 1), 16, 34) + self.layer(
            other, random(key, 2), 0, 14
        )
        box_key = random(key, 5)
        light = np.float32(128 + 50 * (uniform(key, 6) - 0.5))
        strength = np.float32(20 + 20 * uniform(key, 7))
        v = light + strength * self.noise(random(key, 4))
        colour = [80 * (uniform(box_key, c) - 0.5) for c in range(self.c)]
        inside = self.box(random(key, 3))
        boxed = v[inside] + np.array(colour, np.float32)
        v = v + layers
        v[inside] = boxed
        v = np.where(v < 0, 0, np.where(v > 255, 255, v + np.float32(0.5)))
        return v.astype(np.uint8), label


class Clean(Synthetic):
    """Each image is its own target, from 0 to 1."""

    def sample(self, number):
        image, _ = super().sample(number)
        return image, image.astype(np.float32) / np.float32(255)


class Places(Synthetic):
    """Images with the class at each pixel, and 0 where a rectangle hides it."""

    def sample(self, number):
        image, label = super().sample(number)
        labels = np.full((self.h, self.w), label)
        labels[self.box(random(random(self.key, number), 3))] = 0
        return image, labels


class Several(Synthetic):
    """Images with a row of numbers, and classes with a row of targets, each as
    one row of both: the arrays input.meta, label.class and label.box."""

    META, BOX = 2, 4

    def target(self, label, count):
        turns = (label + 1) * (np.arange(count) % 7 + 1) / 11
        return 0.5 + 0.5 * np.cos(2 * 3.14159265358979 * turns)

    def sample(self, number):
        image, label = super().sample(number)
        key = random(random(self.key, number), 1)
        noise = [uniform(key, 16 + i) - 0.5 for i in range(self.META)]
        meta = (self.target(label, self.META) + noise).astype(np.float32)
        box = self.target(label, self.BOX).astype(np.float32)
        return (np.concatenate([image.ravel(), meta]).astype(np.float64),
                np.concatenate([[label], box]).astype(np.float64))


class Sequences(Samples):
    """Numbers that mostly follow from the one before; labels are the next."""

    def __init__(self, shape, classes, count, test=False):
        super().__init__(classes, count, test)
        (self.length,) = shape

    def follow(self, token, key):
        if uniform(key, 0) < 0.2:
            return below(key, 1, self.classes)
        return random(KEY, token) % self.classes

    def sample(self, number):
        key = random(self.key, number)
        tokens = [below(key, 9, self.classes)]
        for i in range(self.length):
            tokens.append(self.follow(tokens[-1], random(key, 16 + i)))
        return np.array(tokens[:-1]), np.array(tokens[1:])


class Scenes(Samples):
    """Those of scenes.py, through the steps of a chain of `input`, and in an
    evaluation through those of `test_steps`."""

    def __init__(self, kind, steps, test_steps, count, test=False):
        super().__init__(None, count, test)
        self.steps, self.test_steps = steps, test_steps
        self.images, self.labels = scenes.samples(kind, count, test)
        if kind == "masks":
            self.labels = self.labels.astype(np.int64)
        else:
            self.labels = self.labels.astype(np.float64)

    def chosen(self, numbers):
        numbers = list(numbers)
        return self.images[numbers], self.labels[numbers]

    def augmented(self, epoch, numbers, samples, labels):
        return augment.applied(self.steps, epoch, numbers, samples, labels)

    def whole(self):
        return augment.applied(self.test_steps, 0, [], *super().whole())
