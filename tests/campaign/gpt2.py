"""Hugging Face's GPT-2 of random weights, and its logits beside those of
models/gpt2.net.

    gpt2.py save FOLDER            writes model.safetensors and texts.npy
    gpt2.py compare FOLDER LOGITS  the largest error is 2e-5 of the largest logit
"""
import sys

import numpy
import torch
import transformers


def save(folder):
    torch.manual_seed(1)
    model = transformers.GPT2Model(transformers.GPT2Config())
    with torch.no_grad():
        for name, value in model.named_parameters():
            if name.endswith("bias") or ".ln_" in name or name.startswith("ln_f"):
                value.add_(0.1 * torch.randn_like(value))
    model.save_pretrained(folder)
    texts = torch.randint(model.config.vocab_size, (2, 1024))
    numpy.save(f"{folder}/texts.npy", texts.numpy().astype(numpy.int32))


def compare(folder, path):
    model = transformers.GPT2Model.from_pretrained(folder).eval()
    texts = torch.from_numpy(numpy.load(f"{folder}/texts.npy")).long()
    with torch.no_grad():
        wanted = (model(texts).last_hidden_state @ model.wte.weight.T).numpy()
    logits = numpy.load(path).reshape(wanted.shape)
    error = abs(logits - wanted).max() / abs(wanted).max()
    print(f"transformers {transformers.__version__}: the largest error is "
          f"{error:.1e} of the largest logit")
    if not error < 2e-5:
        sys.exit("gpt2.net computes other logits")


if __name__ == "__main__":
    {"save": save, "compare": compare}[sys.argv[1]](*sys.argv[2:])
