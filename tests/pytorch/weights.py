"""A trainer's checkpoint as PyTorch tensors."""

import torch

import checkpoint


def load(path):
    return {
        name: torch.from_numpy(value.copy())
        for name, value in checkpoint.load(path).items()
    }


class Net:
    """Layers over weights that are found by their sinter names.

    Images are [N, C, H, W] here; convolutions' weights, which sinter has as
    [K, R, S, C], are turned once.  Tensors that no layer asks for are optimizer
    state or of the run.
    """

    def __init__(self, tensors, frozen=()):
        self.tensors = tensors
        self.frozen = frozen
        self.parameters, self.statistics = {}, {}
        self.turned = set()
        self.training = True

    def parameter(self, name, images=False):
        if name not in self.parameters:
            value = self.tensors[name]
            if images:
                value = value.permute(0, 3, 1, 2).contiguous()
                self.turned.add(name)
            self.parameters[name] = value.requires_grad_(
                name not in self.frozen
            )
        return self.parameters[name]

    def optional(self, name):
        return self.parameter(name) if name in self.tensors else None

    def conv(self, x, path, **options):
        w = self.parameter(path + ".weight", images=True)
        if options.pop("same", True):
            options["padding"] = tuple(k // 2 for k in w.shape[2:])
        b = self.optional(path + ".bias")
        return torch.nn.functional.conv2d(x, w, b, **options)

    def linear(self, x, path):
        w = self.parameter(path + ".weight")
        b = self.optional(path + ".bias")
        return torch.nn.functional.linear(x, w, b)

    def batch_norm(self, x, path, eps=1e-5, momentum=0.1, ghost=1):
        """With ghost, samples i, i + ghost and so on are a batch of their own;
        an evaluation has the mean of their statistics."""
        for name in (".running_mean", ".running_var"):
            self.statistics.setdefault(path + name, self.tensors[path + name])
        mean = self.statistics[path + ".running_mean"].view(-1)
        var = self.statistics[path + ".running_var"].view(-1)
        scale, bias = self.optional(path + ".scale"), self.optional(path + ".bias")
        if not self.training:
            mean, var = (v.view(ghost, -1).mean(0) for v in (mean, var))
            ghost = 1
        splits = x.reshape(-1, ghost * x.shape[1], *x.shape[2:])
        return torch.nn.functional.batch_norm(
            splits,
            mean,
            var,
            None if scale is None else scale.repeat(ghost),
            None if bias is None else bias.repeat(ghost),
            self.training,
            momentum,
            eps,
        ).view_as(x)

    def trained(self):
        """The parameters that a forward pass has used, and their names."""
        return {n: p for n, p in self.parameters.items() if p.requires_grad}

    def gradients(self):
        """The gradients there are, in sinter's order of dimensions."""
        return {
            name: p.grad.permute(0, 2, 3, 1) if name in self.turned else p.grad
            for name, p in self.parameters.items()
            if p.grad is not None
        }
