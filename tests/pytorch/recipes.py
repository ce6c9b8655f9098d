"""How each model of models/ is judged: its build, and its training step.

A model is built in f32, without augmentation, and where it would be too slow
for a test narrower or smaller; `build` says how.  `update` makes a PyTorch
optimizer, and a function that sets its numbers for a step.
"""

import math
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F

import augment
import data
import imagenet
import nets
import records
import transformers
import unet
from evaluation import MIRRORED, PLAIN, SHIFTED, TURNED
from groups import Orthogonal, Sgd, by_group, ema, lookahead

STEPS = 20


@dataclass
class Recipe:
    forward: callable
    loss: callable
    update: callable
    batch: int = 16
    samples: int = 16  # of the data set: the same batch again and again
    data: callable = data.Synthetic
    shape: tuple = (32, 32, 3)  # of a sample
    settings: dict = field(default_factory=dict)  # of the build
    classes: int = 10
    frozen: tuple = ()
    clip: float = None  # the largest norm of all gradients
    average: callable = None  # of the weights
    views: tuple = PLAIN  # of an image in an evaluation
    whitening: tuple = ()  # of the first layer: normalization, eps
    scenes: str = None  # labels of scenes.py
    classes_of: callable = None  # the scores and the classes, of rows of several
    interacts: bool = False  # the loss is of a batch, also in evaluation


def mean_loss(logits, labels):
    return F.cross_entropy(logits, labels)


def coin_of(output, labels):
    return output[:, :8], labels[:, 0].long()


def loss_of_two(output, labels):
    box = labels[:, 1:].to(output.dtype)
    return F.cross_entropy(*coin_of(output, labels)) + 5 * F.l1_loss(
        output[:, 8:], box
    )


def smoothed_loss(logits, labels):
    return F.cross_entropy(logits, labels, label_smoothing=0.1)


def mean_loss_of_places(logits, labels):
    return F.cross_entropy(logits.flatten(0, 1), labels.flatten())


def focal_loss_of_pixels(logits, labels, alpha=(0.5, 1, 2, 1)):
    """Lin et al. (2017), equation 5, with alpha by class and gamma 2."""
    p = logits.softmax(1).gather(1, labels.long()[:, None])[:, 0]
    alpha = torch.tensor(alpha, dtype=p.dtype)[labels.long()]
    return (-alpha * (1 - p) ** 2 * p.log()).mean()


def loss_of_pixels(logits, labels):
    return F.cross_entropy(logits, labels, ignore_index=augment.OUT)


def loss_of_targets(output, labels):
    error = output.permute(0, 2, 3, 1) - labels.to(output.dtype)
    return error[~error.isnan()].square().mean()


def sum_loss(logits, labels):
    return F.cross_entropy(logits, labels, reduction="sum")


def sum_smooth_loss(logits, labels):
    return F.cross_entropy(
        logits, labels, label_smoothing=0.2, reduction="sum"
    )


def sum_half_smooth_loss(logits, labels):
    return sum_smooth_loss(logits, labels) / 2


def contrastive_loss(logits, labels):
    """Beside that of classes InfoNCE: each sample among those of its batch."""
    scores = logits @ logits.T / 10
    own = F.cross_entropy(scores, torch.arange(len(scores)))
    return F.cross_entropy(logits, labels) + own / 2


def piecewise(*knots):
    """The line through (share of the run, value)."""

    def at(progress):
        for (a, u), (b, v) in zip(knots, knots[1:]):
            if progress < b:
                return u + (v - u) * (progress - a) / (b - a)
        return knots[-1][1]

    return at


def cosine(start):
    return lambda progress: start * (1 + math.cos(math.pi * progress)) / 2


def steps(start, gamma, every):
    return lambda progress: start * gamma ** (progress * STEPS // every)


def warmup(rate, length):
    """From 0 up to the rate, over a number of steps."""
    return lambda progress: rate(progress) * min(1, progress * STEPS / length)


def with_rate(make, rate):
    """An optimizer of all that trains, under a schedule."""

    def update(net):
        optimizer = make(net.trained().values())
        return optimizer, scheduled(optimizer, rate)

    return update


def scheduled(optimizer, rate):
    def set_step(step):
        for group in optimizer.param_groups:
            group["lr"] = rate(step / STEPS)

    return set_step


def sgd(rate, momentum=0.9, nesterov=False, decay=5e-4):
    def make(parameters):
        return torch.optim.SGD(
            parameters,
            lr=1,
            momentum=momentum,
            nesterov=nesterov,
            weight_decay=decay,
        )

    return with_rate(make, rate)


def summed(peak, batch, *knots):
    """Nesterov under a summed loss: the rate per sample, decay per batch."""
    lr = piecewise(*((place, share * peak) for place, share in knots))
    return sgd(lambda p: lr(p) / batch, nesterov=True, decay=5e-4 * batch)


def gpt_update(net, rate=5e-4):
    """AdamW that leaves biases and norms as large as they are."""
    kept, decayed = [], []
    for name, p in net.trained().items():
        keep = (
            name.endswith((".bias", ".bias.value", ".scale"))
            or name.startswith("layer_norm_")
            or ".rms_norm." in name
        )
        (kept if keep else decayed).append(p)
    groups = [
        {"params": decayed, "weight_decay": 0.1},
        {"params": kept, "weight_decay": 0},
    ]
    optimizer = torch.optim.AdamW(groups, betas=(0.9, 0.95))
    return optimizer, scheduled(optimizer, lambda progress: rate)


def biases_faster(rate, momentum, decay, *more):
    """The rate is of the share of the run that is over."""
    return by_group(
        Sgd("*", lambda s: rate(s / STEPS), momentum, decay),
        Sgd("*.bias", lambda s: 64 * rate(s / STEPS), momentum, decay / 64),
        *more,
    )


def cubed(done):
    """The decay of averages in the records."""
    return 0.95**5 * (done / STEPS) ** 3


def airbench(peak, decay, *knots):
    ramp = piecewise(*knots)
    decay *= 1024 / peak

    def rate(progress):
        return peak / 7850.67 * ramp(progress)

    whiten = Sgd("whiten.bias", lambda s: rate(s / STEPS), 0.85, decay, until=3)
    return biases_faster(rate, 0.85, decay, whiten)


def muon_groups(batch, share):
    """Everything but the whitening's bias at a share of the recipe's rates."""
    decay = 2e-6 * batch

    def ramp(s):
        return share * (1 - s / STEPS)

    return by_group(
        Sgd("*.bias", lambda s: 0.053 * ramp(s), 0.85, decay / 0.053),
        Sgd("whiten.bias", lambda s: 0.053 * (1 - s / 3), 0.85, decay / 0.053, 3),
        Sgd("head.weight", lambda s: 0.67 * ramp(s), 0.85, decay / 0.67),
        Orthogonal(
            "group*.conv_*.weight",
            lambda s: 0.24 * ramp(s),
            momentum=0.6,
            renormalize=True,
            iterations=3,
        ),
    )


def on_scenes(kind, chain, steps, forward, test_steps=(), **more):
    """Two batches of 16 an epoch, under the chain of `input`."""
    settings = {"input": f"data.train |> {chain}", **more.pop("settings", {})}
    return Recipe(
        forward=forward,
        loss=more.pop(
            "loss", loss_of_pixels if kind == "masks" else loss_of_targets
        ),
        update=sgd(lambda p: 0.05, decay=0),
        samples=32,
        data=lambda shape, classes, count, test=False: data.Scenes(
            kind, steps, test_steps, count, test
        ),
        settings=settings,
        scenes=kind,
        views=TURNED if kind == "masks" else PLAIN,
        **more,
    )


RECIPES = {
    "lenet": Recipe(
        forward=nets.lenet,
        loss=mean_loss,
        update=with_rate(
            lambda p: torch.optim.AdamW(p, weight_decay=0.01), lambda p: 1e-3
        ),
        shape=(28, 28, 1),
    ),
    "multitask": Recipe(
        forward=nets.multitask,
        loss=loss_of_two,
        update=with_rate(torch.optim.Adam, cosine(2e-3)),
        data=data.Several,
        classes=8,
        classes_of=coin_of,
        settings={"width": "4"},
    ),
    "mlp": Recipe(
        forward=nets.mlp,
        loss=mean_loss,
        update=with_rate(torch.optim.Adam, lambda p: 1e-3),
        shape=(28, 28, 1),
    ),
    "mlp-epochs": Recipe(
        forward=nets.mlp,
        loss=mean_loss,
        update=with_rate(torch.optim.Adam, lambda p: 1e-3),
        samples=80,
        shape=(28, 28, 1),
    ),
    "mlp-tails": Recipe(  # the last batch of an epoch has 8 samples
        forward=nets.mlp,
        loss=mean_loss,
        update=with_rate(torch.optim.Adam, lambda p: 1e-3),
        samples=72,
        shape=(28, 28, 1),
        settings={"epochs": "4"},
    ),
    "mlp-contrast": Recipe(  # samples interact, and the last batch has 8
        forward=nets.mlp,
        loss=contrastive_loss,
        update=with_rate(torch.optim.Adam, lambda p: 1e-3),
        samples=72,
        shape=(28, 28, 1),
        settings={
            "epochs": "4",
            "loss": "mean(cross_entropy(output, label) + 0.5 * "
            "cross_entropy(output @ transpose(output, [1, 0]) / 10, "
            "where(reshape(tensor(range(16)), [16, 1]) "
            "== tensor(range(16)), 1, 0)))",
        },
        interacts=True,
    ),
    "mlp-gathered": Recipe(  # two batches of 8 are one of 16, also 8 and 4
        forward=nets.mlp,
        loss=mean_loss,
        update=with_rate(torch.optim.Adam, lambda p: 1e-3),
        samples=60,
        shape=(28, 28, 1),
        settings={"batch": "8", "accumulate": "2", "epochs": "5"},
    ),
    "resnet9": Recipe(
        forward=nets.resnet9,
        loss=sum_loss,
        update=summed(0.002, 16, (0, 0), (5 / 24, 1), (1, 0)),
        settings={"width": "16", "lr": "piecewise(0: 0, 5/24: 0.002, 1: 0)"},
    ),
    "resnet9-wide": Recipe(  # convolutions by Winograd's method
        forward=nets.resnet9,
        loss=sum_loss,
        update=summed(0.002, 32, (0, 0), (5 / 24, 1), (1, 0)),
        batch=32,
        samples=32,
        settings={"width": "32", "lr": "piecewise(0: 0, 5/24: 0.002, 1: 0)"},
    ),
    "resnet18": Recipe(
        forward=nets.resnet18,
        loss=mean_loss,
        update=sgd(cosine(3e-4)),
        settings={"width": "8", "lr": "cosine(3e-4)"},
    ),
    "vgg16_bn": Recipe(
        forward=nets.vgg16_bn,
        loss=mean_loss,
        update=sgd(cosine(1e-4)),
        settings={"width": "8", "lr": "cosine(1e-4)"},
    ),
    "preact_resnet18": Recipe(
        forward=nets.preact_resnet18,
        loss=sum_loss,
        update=summed(0.0005, 16, (0, 0), (15 / 35, 1), (30 / 35, 0.05), (1, 0)),
        settings={
            "width": "8",
            "lr": "piecewise(0: 0, 15/35: 0.0005, 30/35: 0.000025, 1: 0)",
        },
    ),
    "resnet50": Recipe(
        forward=imagenet.resnet50,
        loss=mean_loss,
        update=sgd(warmup(steps(1e-7, 0.1, 10), 5), decay=1e-4),
        shape=(64, 64, 3),
        settings={
            "width": "8",
            "classes": "10",
            "data": "synthetic(shape=[64, 64, 3])",
            "lr": "warmup(step(1e-7, gamma=0.1, every=10 epoch), 5 epoch)",
        },
    ),
    "mobilenetv2": Recipe(
        forward=imagenet.mobilenetv2,
        loss=mean_loss,
        update=sgd(cosine(3e-6), decay=4e-5),
        shape=(64, 64, 3),
        settings={
            "width": "0.25",
            "divisor": "2",
            "classes": "10",
            "drop": "0",
            "data": "synthetic(shape=[64, 64, 3])",
            "lr": "cosine(3e-6)",
        },
    ),
    "denoise": Recipe(
        forward=unet.denoise,
        loss=loss_of_targets,
        update=with_rate(
            lambda p: torch.optim.AdamW(p, weight_decay=1e-4), cosine(2e-3)
        ),
        data=data.Clean,
        settings={"width": "8", "level": "0"},
    ),
    "unet_seg": Recipe(
        forward=unet.unet_seg,
        loss=mean_loss,
        update=with_rate(
            lambda p: torch.optim.AdamW(p, weight_decay=1e-4), cosine(1e-3)
        ),
        data=data.Places,
        settings={
            "width": "4",
            "classes": "10",
            "data": "synthetic(shape=[32, 32, 3])",
        },
    ),
    "vit_tiny": Recipe(
        forward=transformers.vit(depth=2, heads=3, patch=8),
        loss=smoothed_loss,
        update=with_rate(
            lambda p: torch.optim.AdamW(p, weight_decay=0.05),
            warmup(cosine(1e-3), 5),
        ),
        clip=1,
        settings={
            "width": "24",
            "depth": "[1, 2]",
            "patch": "8",
            "classes": "10",
            "data": "synthetic(shape=[32, 32, 3])",
        },
    ),
    "gpt2": Recipe(
        forward=transformers.gpt2,
        loss=mean_loss_of_places,
        update=lambda net: gpt_update(net, 6e-4),
        clip=1,
        data=data.Sequences,
        shape=(32,),
        classes=65,
        settings={
            "drop": "0",
            "layers": "[1, 2]",
            "heads": "2",
            "width": "48",
            "context": "40",
            "vocabulary": "65",
            "lr": "6e-4",
            "data": "synthetic(vocabulary=65, shape=[32])",
        },
    ),
    "gpt_nano": Recipe(
        forward=transformers.gpt_nano,
        loss=mean_loss_of_places,
        update=gpt_update,
        clip=1,
        data=data.Sequences,
        shape=(32,),
        classes=65,
        settings={
            "drop": "0",
            "data": "synthetic(vocabulary=65, shape=[32])",
        },
    ),
    "gru_text": Recipe(
        forward=transformers.gru_text,
        loss=mean_loss_of_places,
        update=with_rate(
            lambda parameters: torch.optim.AdamW(parameters, weight_decay=0.01),
            cosine(5e-3),
        ),
        clip=1,
        data=data.Sequences,
        shape=(32,),
        classes=256,
        settings={
            "data": "synthetic(vocabulary=256, shape=[32])",
        },
    ),
    "llama_nano": Recipe(
        forward=transformers.llama_nano,
        loss=mean_loss_of_places,
        update=gpt_update,
        clip=1,
        data=data.Sequences,
        shape=(32,),
        classes=65,
        settings={
            "data": "synthetic(vocabulary=65, shape=[32])",
        },
    ),
    "resnet9_tricks": Recipe(
        forward=records.resnet9_tricks,
        loss=sum_smooth_loss,
        update=biases_faster(
            lambda p: piecewise((0, 0), (0.2, 0.05), (0.8, 0.005))(p) / 64,
            0.9,
            5e-4 * 64,
        ),
        batch=64,
        samples=64,
        settings={
            "width": "8",
            "lr": "piecewise(0: 0, 20%: 0.05, 80%: 0.005)",
        },
        frozen=("whiten.weight",),
        whitening=(records.normalize_page, 1e-2),
        average=ema(0.99**5),
        views=MIRRORED,
    ),
    "hlb": Recipe(
        forward=records.hlb,
        loss=sum_half_smooth_loss,
        update=biases_faster(
            lambda p: 1.525 / 512 * piecewise((0, 0), (0.23, 1), (1, 0.07))(p),
            0.85,
            6.687e-4 * 32,
        ),
        batch=32,
        samples=32,
        settings={"width": "16"},
        frozen=("whiten.weight",),
        whitening=(records.normalize, 1e-2),
        average=lookahead(cubed, start=2),
        views=MIRRORED,
    ),
    "airbench94": Recipe(
        forward=records.airbench94,
        loss=sum_smooth_loss,
        update=airbench(11.5, 0.0153, (0, 0.2), (0.23, 1), (1, 0.07)),
        frozen=("whiten.weight",),
        whitening=(records.normalize, 5e-4),
        average=lookahead(cubed),
        views=SHIFTED,
    ),
    "airbench94_muon": Recipe(
        forward=records.airbench94_muon,
        loss=sum_smooth_loss,
        update=muon_groups(32, 0.05),
        batch=32,
        samples=32,
        settings={"width": "16", "ramp": "0.05 * (1 - progress)"},
        frozen=("whiten.weight",),
        whitening=(records.normalize, 5e-4),
        views=SHIFTED,
    ),
    "airbench96": Recipe(
        forward=records.airbench96,
        loss=sum_smooth_loss,
        update=airbench(9, 0.012, (0, 0.2), (0.1, 1), (1, 0)),
        batch=32,
        samples=32,
        settings={"width": "16"},
        frozen=("whiten.weight",),
        whitening=(records.normalize, 5e-4),
        average=lookahead(cubed),
        views=SHIFTED,
    ),
    "segment-zero": on_scenes(
        "masks",
        "flip_lr(p=0.4) |> random_crop(20, pad=5)",
        (augment.flip_lr(0.4), augment.random_crop(20, 5)),
        unet.segment,
        (augment.middle(20, 20),),
    ),
    "segment-focal": on_scenes(
        "masks",
        "flip_lr(p=0.4)",
        (augment.flip_lr(0.4),),
        unet.segment,
        loss=focal_loss_of_pixels,
        settings={
            "loss": "mean(softmax_focal_loss(output, label, [0.5, 1, 2, 1]))"
        },
    ),
    "segment-reflect": on_scenes(
        "masks",
        "alternating_flip |> random_translate(3, mode=reflect) "
        "|> resize([24, 40], mode=bilinear) |> random_crop(24, pad=2, mode=edge)",
        (
            augment.alternating_flip,
            augment.random_translate(3, "reflect"),
            augment.resize(24, 40),
            augment.random_crop(24, 2, "edge"),
        ),
        unet.segment,
        (augment.resize(24, 40), augment.middle(24, 24)),
    ),
    "segment-resized": on_scenes(
        "masks",
        "cutmix(9) |> random_translate(4) "
        "|> random_resized_crop(20, scale=[0.1, 0.5])",
        (
            augment.cutmix(9),
            augment.random_translate(4),
            # No side is the image's, where pixels would be equally near.
            augment.random_resized_crop(20, (0.1, 0.5)),
        ),
        unet.segment,
        (augment.middle(20, 20),),
    ),
    "restore-zero": on_scenes(
        "clean",
        "random_crop(22, pad=6) |> flip_lr",
        (augment.random_crop(22, 6), augment.flip_lr(0.5)),
        unet.restore(1),
        (augment.middle(22, 22),),
    ),
    "restore-resized": on_scenes(
        "clean",
        "mixup(1) |> random_resized_crop(18, scale=[0.3, 0.9]) |> cutmix(6)",
        (
            augment.mixup_evenly,
            augment.random_resized_crop(18, (0.3, 0.9)),
            augment.cutmix(6),
        ),
        unet.restore(1),
        (augment.middle(18, 18),),
    ),
    "restore-large": on_scenes(
        "large",
        "random_translate(3, mode=reflect) |> flip_lr |> cutmix(7) "
        "|> random_resized_crop(21)",
        (
            augment.random_translate(3, "reflect"),
            augment.flip_lr(0.5),
            augment.cutmix(7),
            augment.random_resized_crop(21),
        ),
        unet.restore(2),
        (augment.middle(21, 21),),
        settings={"factor": "2"},
    ),
}
