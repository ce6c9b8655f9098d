"""Loads the same images with PyTorch's DataLoader and with sinter, in turns.

    loader.py [SINTER]          needs PyTorch, torchvision and Pillow

Records: CIFAR's format, with random crop, flip and cutout, then with rotation,
with colour jitter and with RandAugment; of sinter the step of a network of one
linear layer is timed, as augmentation is a part of the step.
Files: a folder of JPEG files, with the middle cut out at 224 pixels.
"""
import os
import re
import subprocess
import sys
import tempfile
import time

import numpy as np
import torch
import torchvision
from PIL import Image
from torchvision import transforms

sinter = sys.argv[1] if len(sys.argv) > 1 else "sinter"
cores = os.cpu_count()
ROUNDS, RECORDS, FILES = 3, 10000, 600


def write(folder):
    r = np.random.default_rng(0)
    os.makedirs("records")
    for name, count in [(f"data_batch_{i}", RECORDS // 5) for i in
                        range(1, 6)] + [("test_batch", 100)]:
        rows = r.integers(0, 256, (count, 3073), np.uint8)
        rows[:, 0] %= 10
        rows.tofile(f"records/{name}.bin")
    for part, count in ("train", FILES), ("test", 2):
        for i in range(count):
            os.makedirs(f"files/{part}/{i % 2}", exist_ok=True)
            small = Image.fromarray(r.integers(0, 256, (24, 32, 3), np.uint8))
            small.resize((500, 375), Image.BICUBIC).save(
                f"files/{part}/{i % 2}/{i}.jpg", quality=90)


CIFAR = ("32, 32, 3", "cifar10(\"records\")", 10)
NETS = {"records": (*CIFAR,
                    " |> random_crop(32, pad=4) |> flip_lr |> cutout(8)"),
        "rotation": (*CIFAR, " |> rotate(15, interpolation=\"bilinear\")"),
        "jitter": (*CIFAR, " |> color_jitter(0.4, 0.4, 0.4, 0.1)"),
        "policy": (*CIFAR, " |> rand_augment"),
        "files": ("224, 224, 3", "image_folder(\"files\", size=224)", 2, "")}
BEFORE = {"records": [transforms.RandomCrop(32, 4),
                      transforms.RandomHorizontalFlip()],
          "rotation": [transforms.RandomRotation(
              15, transforms.InterpolationMode.BILINEAR)],
          "jitter": [transforms.ColorJitter(0.4, 0.4, 0.4, 0.1)],
          "policy": [transforms.RandAugment()]}
AFTER = {"records": [transforms.RandomErasing(1.0, (0.06, 0.06), (1, 1))]}


def build(name):
    shape, data, classes, augment = NETS[name]
    with open(f"{name}.net", "w") as f:
        f.write(f"""import "std/vision.net" {{
  random_crop, flip_lr, cutout, rotate, color_jitter, rand_augment
}}

model Net(image: u8[N, {shape}]) -> f32[N, {classes}] {{
  image |> normalize(mean=128, std=64) |> global_avg_pool
        |> linear({classes})
}}

train Net {{
  data      = {data}
  input     = data.train{augment}
  batch     = 100, drop_last
  epochs    = 1
  loss      = mean(cross_entropy(output, label))
  optimizer = sgd(lr=0.01)
}}
""")
    subprocess.run([sinter, "build", f"{name}.net", "--march=native", "-o",
                    f"{name}.bin"], check=True, capture_output=True)


class Records(torch.utils.data.Dataset):
    def __init__(self, name):
        rows = np.concatenate([np.fromfile(f"records/data_batch_{i}.bin",
                                           np.uint8) for i in range(1, 6)])
        rows = rows.reshape(-1, 3073)
        self.label = rows[:, 0].astype(np.int64)
        self.image = rows[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
        self.change = transforms.Compose(BEFORE[name] + [
            transforms.ToTensor(), transforms.Normalize((0.5,) * 3, (0.25,) * 3)
        ] + AFTER.get(name, []))

    def __len__(self):
        return len(self.label)

    def __getitem__(self, i):
        return self.change(Image.fromarray(self.image[i])), self.label[i]


def torch_loader(name):
    data = Records(name) if name in BEFORE else torchvision.datasets.ImageFolder(
        "files/train", transforms.Compose([
            transforms.Resize(224), transforms.CenterCrop(224),
            transforms.ToTensor()]))
    return torch.utils.data.DataLoader(
        data, 100, shuffle=True, num_workers=cores, persistent_workers=True,
        drop_last=True)


def torch_speed(loader):
    since, count = time.perf_counter(), 0
    for image, _ in loader:
        count += len(image)
    return count / (time.perf_counter() - since)


def sinter_speed(name):
    """Of records, the images of a step; of files, those that are loaded."""
    data = "records" if name in BEFORE else name
    words = [f"./{name}.bin", f"--data={data}"]
    if name == "files":
        said = subprocess.run(words + ["--load-only", f"--loaders={cores}"],
                              check=True, capture_output=True, text=True)
        return float(re.search(r"([0-9]+) images/s", said.stdout + said.stderr
                               ).group(1))
    subprocess.run(words + ["--times=times", "--out=run", "--quiet"],
                   check=True, capture_output=True)
    subprocess.run(["rm", "-rf", "run"], check=True)
    return 100 / np.median(np.loadtxt("times")[2:]) * 1000


def main():
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        write(folder)
        for name in NETS:
            build(name)
            loader = torch_loader(name)
            torch_speed(loader)  # workers start
            ours, theirs = [], []
            for _ in range(ROUNDS):
                theirs.append(torch_speed(loader))
                ours.append(sinter_speed(name))
            a, b = np.median(ours), np.median(theirs)
            print(f"{name}: sinter {a:.0f}, DataLoader {b:.0f} images a second "
                  f"on {cores} cores, {a / b:.1f} times; rounds "
                  + ", ".join(f"{x / y:.1f}" for x, y in zip(ours, theirs)))
        os.chdir("/")


if __name__ == "__main__":
    main()
