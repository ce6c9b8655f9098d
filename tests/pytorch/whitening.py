"""Whitening filters, as eigenvectors that PyTorch finds."""

import numpy as np
import torch
import torch.nn.functional as F


def filters(images, size, eps):
    """One for each number of a patch, by descending variance."""
    patches = F.unfold(images, size).transpose(1, 2).flatten(0, 1)
    values, vectors = torch.linalg.eigh(patches.T @ patches / len(patches))
    found = (vectors / (values + eps).sqrt()).T.flip(0)
    return found.view(-1, images.shape[1], size, size)


def apart(weight, samples, normalize, eps):
    """The largest difference of a filter from PyTorch's, whose sign is free,
    relative to the filter; the negations must be exact."""
    images = np.stack([samples.sample(i)[0] for i in range(samples.count)])
    images = normalize(torch.from_numpy(images).permute(0, 3, 1, 2).double())
    right = filters(images, weight.shape[1], eps).flatten(1)
    weight = weight.permute(0, 3, 1, 2).double().flatten(1)
    half = weight[: len(right)]
    if not torch.equal(weight[len(right) :], -half[: len(weight) - len(right)]):
        raise ValueError("the second half is not the negation of the first")
    sign = (half * right).sum(1, keepdim=True).sign()
    return ((half - sign * right).norm(dim=1) / right.norm(dim=1)).max().item()
