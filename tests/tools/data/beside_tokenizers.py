"""Hugging Face's tokenizers beside sinter's.

    beside_tokenizers.py make FILE...      writes NAME.json for several kinds of
                                  tokenizers, trained on the files
    beside_tokenizers.py same NAME DIR FILE...
                                  DIR has the tokens that NAME.json gives the
                                  files, and its tokens are the files' text
"""
import sys

try:
    import tokenizers
except ImportError:
    sys.exit(77)
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

SPLIT = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
         r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")


def read(files):
    text = []
    for name in files:
        with open(name, encoding="utf-8", newline="") as f:
            text.append(f.read())
    return text


def tokenizer(pre, files, special=()):
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator(read(files), trainers.BpeTrainer(
        vocab_size=1500, special_tokens=list(special), show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    return t


def make(files):
    bytes_of = pre_tokenizers.ByteLevel
    tokenizer(bytes_of(add_prefix_space=False), files).save("gpt2.json")
    tokenizer(bytes_of(add_prefix_space=True), files,
              ["<|endoftext|>", "model"]).save("special.json")
    tokenizer(pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(SPLIT), "isolated"),
        bytes_of(add_prefix_space=False, use_regex=False)]),
        files).save("split.json")
    # merges over a whole text, without a pre-tokenizer
    characters = Tokenizer(models.BPE(unk_token="?"))
    characters.train_from_iterator(
        [line for text in read(files) for line in text.split("\n")[:400]],
        trainers.BpeTrainer(vocab_size=600, special_tokens=["?"],
                            show_progress=False))
    characters.save("characters.json")


def same(name, folder, files):
    t = Tokenizer.from_file(name + ".json")
    wide = t.get_vocab_size() > 256
    found = []
    for part in "train", "val":
        with open(f"{folder}/{part}.bin", "rb") as f:
            data = f.read()
        found += (list(memoryview(data).cast("H")) if wide else list(data))
    wanted = []
    end = t.token_to_id("<|endoftext|>")
    for text in read(files):
        wanted += t.encode(text, add_special_tokens=False).ids
        wanted += [end] if end is not None else []
    if found != wanted:
        first = next((i for i, pair in enumerate(zip(found, wanted))
                      if pair[0] != pair[1]), min(len(found), len(wanted)))
        sys.exit(f"{name}: {len(found)} and {len(wanted)} tokens; number "
                 f"{first} is {found[first:first + 5]}, not "
                 f"{wanted[first:first + 5]}")
    print(name, len(found), "tokens")


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(sys.argv[2:])
    else:
        same(sys.argv[2], sys.argv[3], sys.argv[4:])
