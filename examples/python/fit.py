"""Trains a small network on drawn digits, and predicts: fit.py [MODEL.net]."""
import sys
from pathlib import Path

import numpy as np

import sinter

here = Path(__file__).parent
model = sinter.build(sys.argv[1] if len(sys.argv) > 1
                     else here / "../../models/mlp.net",
                     set={"batch": 100, "epochs": 3})

# Rings of ten sizes, with noise.
draw = np.random.default_rng(0)
labels = draw.integers(0, 10, 4000)
row, column = np.mgrid[-14:14, -14:14]
distance = np.hypot(row, column)[None] - (2 + labels[:, None, None])
images = 200 * np.exp(-distance ** 2) + draw.uniform(0, 50, (4000, 28, 28))
images = images.astype(np.uint8)[..., None]

with model:
    model.fit(images[:3000], labels[:3000],
              validation=(images[3000:], labels[3000:]), report=print)
    model.save("rings.safetensors")
    print(len(model.weights), "weights;", model.predict(images[:5]).argmax(1),
          "are", labels[:5])
