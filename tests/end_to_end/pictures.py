"""Pictures for pictures.sh: draw makes them, same NAME compares NAME.png with
NAME.npy."""
import os
import sys

import numpy as np
from PIL import Image


def draw():
    r = np.random.default_rng(0)
    os.makedirs("files/inner")
    grey = []
    for name in "files/a.png", "files/b.png", "files/inner/c.png":
        picture = Image.fromarray(r.integers(0, 256, (8, 8, 3), np.uint8))
        picture.save(name)
        grey.append(np.asarray(picture.convert("L"))[..., None])
    np.save("files.npy", np.stack(grey))
    for name, channels, label in (
            ("map", 3, r.integers(0, 5, (2, 8, 8)).astype(np.int32)),
            ("values", 3, r.random((2, 8, 8, 3), np.float32)),
            ("labels", 1, r.integers(0, 2, (2, 8, 8, 1)).astype(np.float32))):
        os.mkdir(f"{name}.data")
        for part in "train", "test":
            np.save(f"{name}.data/{part}_x.npy",
                    r.integers(0, 256, (2, 8, 8, channels), np.uint8))
            np.save(f"{name}.data/{part}_y.npy", label)


def same(name):
    output = np.load(f"{name}.npy")
    for row, file in zip(output, ("files_a", "files_b", "files_inner_c")):
        picture = Image.open(f"{name}.png/{file}.png")
        found = np.asarray(picture)
        if name == "map":
            assert picture.mode == "P", picture.mode
            assert picture.getpalette()[:12] == [0, 0, 0, 128, 0, 0, 0, 128, 0,
                                                 128, 128, 0]
            wanted = row.argmax(-1)
            assert len(np.unique(wanted)) > 1
        else:
            share = 1 / (1 + np.exp(-row.astype(float))) if name == "labels" \
                else row.astype(float)
            wanted = np.floor(np.clip(share, 0, 1) * 255 + 0.5)
            wanted = wanted[..., 0] if name == "labels" else wanted
            assert picture.mode == ("L" if name == "labels" else "RGB")
        assert np.array_equal(found, wanted), (name, found, wanted)


if __name__ == "__main__":
    draw() if sys.argv[1] == "draw" else same(sys.argv[2])
