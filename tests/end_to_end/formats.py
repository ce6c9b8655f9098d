"""Images for formats.sh: draw makes them, same compares pixels.npy, and wide
pixels of 12 x 20."""
import os
import sys

import numpy as np
from PIL import Image, ImageOps


def turns(r, folder, height, width):
    """Images that have this size when they are upright."""
    os.makedirs(folder, exist_ok=True)
    for turn in range(8, 0, -1):
        size = (height, width) if turn < 5 else (width, height)
        blocks = r.integers(0, 256, (size[0] // 4, size[1] // 4, 3), np.uint8)
        picture = Image.fromarray(np.kron(blocks, np.ones((4, 4, 1), np.uint8)))
        exif = Image.Exif()
        exif[0x112] = turn
        picture.save(f"{folder}/turn{turn}.jpg", exif=exif.tobytes(),
                     quality=95)
    return picture


def draw():
    r = np.random.default_rng(0)
    os.makedirs("data")
    picture = turns(r, "files", 16, 16)
    picture.save("files/unknown.jpg", quality=95)
    noise = r.integers(0, 256, (16, 16, 4), np.uint8)
    Image.fromarray(noise[..., :3]).save("files/plain.webp", lossless=True)
    Image.fromarray(noise[..., :3]).save("files/lossy.webp", quality=80)
    Image.fromarray(noise).save("files/clear.webp", lossless=True, exact=True)
    for part in "train", "test":
        np.save(f"data/{part}_x.npy", np.zeros((4, 16, 16, 3), np.uint8))
        np.save(f"data/{part}_y.npy", np.zeros((4, 16, 16, 3), np.float32))
    turns(r, "wide", 12, 20)


def pixels(path):
    picture = ImageOps.exif_transpose(Image.open(path))
    if picture.mode == "RGBA":
        a = np.asarray(picture).astype(int)
        return (a[..., :3] * a[..., 3:] + 127) // 255
    return np.asarray(picture)


def compare(file, folder, count):
    found = np.load(file)
    names = sorted(os.listdir(folder))
    assert len(names) == len(found) == count
    for name, own in zip(names, found):
        wanted = pixels(f"{folder}/{name}").astype(float)
        assert own.shape == wanted.shape
        most = np.abs(own - wanted).max()
        assert most <= 0.01, f"{name}: {most}"


if __name__ == "__main__":
    if sys.argv[1] == "draw":
        draw()
    elif sys.argv[1] == "same":
        compare("pixels.npy", "files", 12)
    else:
        compare("wide.npy", "wide", 8)
