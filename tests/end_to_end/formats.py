"""Images for formats.sh: draw makes them, same compares pixels.npy."""
import os
import sys

import numpy as np
from PIL import Image, ImageOps


def draw():
    r = np.random.default_rng(0)
    os.makedirs("files")
    os.makedirs("data")
    blocks = r.integers(0, 256, (4, 4, 3), np.uint8)
    picture = Image.fromarray(np.kron(blocks, np.ones((4, 4, 1), np.uint8)))
    for turn in range(1, 9):
        exif = Image.Exif()
        exif[0x112] = turn
        picture.save(f"files/turn{turn}.jpg", exif=exif.tobytes(), quality=95)
    picture.save("files/unknown.jpg", quality=95)
    noise = r.integers(0, 256, (16, 16, 4), np.uint8)
    Image.fromarray(noise[..., :3]).save("files/plain.webp", lossless=True)
    Image.fromarray(noise[..., :3]).save("files/lossy.webp", quality=80)
    Image.fromarray(noise).save("files/clear.webp", lossless=True, exact=True)
    for part in "train", "test":
        np.save(f"data/{part}_x.npy", np.zeros((4, 16, 16, 3), np.uint8))
        np.save(f"data/{part}_y.npy", np.zeros((4, 16, 16, 3), np.float32))


def pixels(path):
    picture = ImageOps.exif_transpose(Image.open(path))
    if picture.mode == "RGBA":
        a = np.asarray(picture).astype(int)
        return (a[..., :3] * a[..., 3:] + 127) // 255
    return np.asarray(picture)


def same():
    found = np.load("pixels.npy")
    names = sorted(os.listdir("files"))
    assert len(names) == len(found) == 12
    for name, own in zip(names, found):
        wanted = pixels(f"files/{name}").astype(float)
        most = np.abs(own - wanted).max()
        assert most <= 0.01, f"{name}: {most}"
    upright = pixels("files/turn1.jpg")
    assert not np.array_equal(upright, pixels("files/turn6.jpg"))


if __name__ == "__main__":
    draw() if sys.argv[1] == "draw" else same()
